package operatortest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// helperReport is what the helper program tells about its control plane.
type helperReport struct {
	DataDir, Kubeconfig string
}

// runHelper is a program that a test kills or pauses.
func runHelper(name string) int {
	switch name {
	case "run a control plane":
		return runControlPlane()
	case "paint", "paint while the lease lasts":
		return paint(name == "paint")
	}
	fmt.Fprintf(os.Stderr, "unknown helper %q\n", name)
	return 2
}

func runControlPlane() int {
	instance, err := operatortest.Run(context.Background(), operatortest.Config{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := json.NewEncoder(os.Stdout).Encode(helperReport{DataDir: instance.DataDir(), Kubeconfig: instance.Kubeconfig()}); err != nil {
		return 1
	}
	select {} // until it is killed
}

func TestNoProcessOutlivesAParentThatIsKilled(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("finding the processes takes /proc")
	}
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), helperVariable+"=run a control plane")
	parent.Stderr = os.Stderr
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = parent.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatalf("the helper said nothing: %v", err)
	}
	var report helperReport
	if err := json.Unmarshal(line, &report); err != nil {
		t.Fatal(err)
	}
	if got := processesOf(t, report.DataDir); len(got) != 3 {
		t.Fatalf("processes of the control plane: %v, want three", got)
	}

	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()

	operatortest.Eventually(t, "no process is left", func() bool { return len(processesOf(t, report.DataDir)) == 0 })
	operatortest.Eventually(t, "the data folder is gone", func() bool {
		_, err := os.Stat(report.DataDir)
		return os.IsNotExist(err)
	})
}

// processesOf returns the ids of the processes that have dir in their command
// line. One that has ended has no command line any more.
func processesOf(t *testing.T, dir string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var ids []int
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(line, []byte(dir)) {
			continue
		}
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}
