package command

import (
	"testing"
	"testing/fstest"
)

func TestTheMemoryLimitIsTheLeastOfTheControlGroups(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, tt := range map[string]struct {
		files fstest.MapFS
		want  int64
	}{
		"no control groups": {fstest.MapFS{}, 0},
		"in a container":    {fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("268435456\n")}, 256 << 20},
		"without a limit":   {fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("max\n")}, 0},
		"a limit above": {fstest.MapFS{
			"proc/self/cgroup":                  file("0::/pods/one\n"),
			"sys/fs/cgroup/pods/memory.max":     file("1000\n"),
			"sys/fs/cgroup/pods/one/memory.max": file("2000\n"),
		}, 1000},
		"a limit below": {fstest.MapFS{
			"proc/self/cgroup":                  file("0::/pods/one\n"),
			"sys/fs/cgroup/pods/memory.max":     file("2000\n"),
			"sys/fs/cgroup/pods/one/memory.max": file("1000\n"),
		}, 1000},
		"the path of the host": {fstest.MapFS{"proc/self/cgroup": file("0::/kubepods/pod1/abc\n"), "sys/fs/cgroup/memory.max": file("3000\n")}, 3000},
		"version 1": {fstest.MapFS{
			"proc/self/cgroup": file("5:cpu:/\n4:memory:/docker/abc\n0::/\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("4000\n"),
		}, 4000},
		"version 1 without a limit": {fstest.MapFS{
			"proc/self/cgroup": file("4:memory:/\n"), "sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n"),
		}, 0},
	} {
		if got := cgroupMemoryLimit(tt.files); got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
}
