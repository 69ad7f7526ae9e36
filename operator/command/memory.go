package command

import (
	"bufio"
	"bytes"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// memoryShare is the part of the memory limit of its container that Go's collector keeps to. The rest is for what it does not know of.
const memoryShare = 0.9

// limitMemory has Go's collector work harder before the process is ended for lack of memory: the limit is that of the container. It returns the
// limit in bytes, or 0 if there is none, or GOMEMLIMIT has set one.
func limitMemory() int64 {
	limit := int64(float64(cgroupMemoryLimit(os.DirFS("/"))) * memoryShare)
	if limit == 0 || os.Getenv("GOMEMLIMIT") != "" {
		return 0
	}
	debug.SetMemoryLimit(limit)
	return limit
}

// cgroupMemoryLimit returns the least memory limit of the control groups of the process, of either version, in bytes; 0 is none. The format of
// the files is that of cgroups(7).
func cgroupMemoryLimit(root fs.FS) int64 {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	least := int64(math.MaxInt64)
	for lines := bufio.NewScanner(bytes.NewReader(groups)); lines.Scan(); {
		fields := strings.SplitN(lines.Text(), ":", 3)
		if len(fields) != 3 {
			continue
		}
		folder, file := "sys/fs/cgroup", "memory.max"
		switch {
		case fields[1] == "memory":
			folder, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		case fields[0] != "0":
			continue
		}
		// In a container the path may be that of the host, of which only the end is there.
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			if text, err := fs.ReadFile(root, path.Join(folder, group, file)); err == nil {
				if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && limit > 0 {
					least = min(least, limit)
				}
			}
			if group == "/" {
				break
			}
		}
	}
	// Version 1 writes a number near the largest for no limit.
	if least > math.MaxInt64/2 {
		return 0
	}
	return least
}
