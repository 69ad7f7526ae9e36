package gobuild

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestProgressOfABuildIsALineEveryFewSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, writer := io.Pipe()
		go func() {
			defer func() { _ = writer.Close() }()
			fmt.Fprintln(writer, "go: downloading k8s.io/api v0.36.3")
			time.Sleep(4 * time.Second)
			for i := range 30 {
				fmt.Fprintf(writer, "k8s.io/api/%d\n", i)
			}
			time.Sleep(4 * time.Second)
			fmt.Fprintln(writer, "# k8s.io/api/31")
			fmt.Fprintln(writer, "it does not compile")
		}()
		var progress bytes.Buffer
		last := watch(reader, "the control plane", 2700, &progress)
		want := []string{
			"building the control plane (once; some minutes)",
			"building the control plane: 3s, 0 of at most about 2700 packages compiled, now downloading k8s.io/api v0.36.3",
			"building the control plane: 6s, 30 of at most about 2700 packages compiled, now k8s.io/api/29",
			"build of the control plane ended after 8s",
			"",
		}
		if diff := cmp.Diff(want, strings.Split(progress.String(), "\n")); diff != "" {
			t.Errorf("progress (-want +got):\n%s", diff)
		}
		if len(last) != 20 || last[19] != "it does not compile" {
			t.Errorf("last lines: %q", last)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var progress bytes.Buffer
		watch(strings.NewReader("a/package\n"), "a program", 1, &progress)
		if progress.Len() > 0 {
			t.Errorf("a build that took no time is told: %s", &progress)
		}
	})
}
