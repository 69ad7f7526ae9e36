// Package demotest runs the demos of examples as "make run" does, for tests and pictures.
//
//	story := demotest.Once(t, demotest.Build(t))
//
//	d := demotest.Start(t, demotest.Build(t))
//	look(d.Kubeconfig, d.Page)
//	d.Interrupt()
package demotest

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Build builds the demo of the example in the current folder, and returns the path of the program.
func Build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "demo")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/demo").CombinedOutput(); err != nil {
		t.Fatalf("build the demo: %v\n%s", err, out)
	}
	return program
}

// Once runs a demo that ends by itself, and returns its story. The test fails unless the exit status is 0 and nothing is left behind.
func Once(t *testing.T, program string) string {
	t.Helper()
	d := newDemo(t, program, "--once")
	var stdout bytes.Buffer
	d.cmd.Stdout = &stdout
	if err := d.cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, &stdout, &d.stderr)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the story:\n%s%s", &stdout, &d.stderr)
		}
	})
	d.nothingIsLeft()
	return stdout.String()
}

// Demo is a demo that has told its story and goes on. It ends with the test, as Ctrl-C would end it.
type Demo struct {
	// Kubeconfig is the path of the kubeconfig that it says, and Page the address of its page.
	Kubeconfig, Page string

	t         *testing.T
	cmd       *exec.Cmd
	lines     *bufio.Scanner
	told      strings.Builder
	stderr    bytes.Buffer
	temporary string
}

func newDemo(t *testing.T, program string, args ...string) *Demo {
	t.Helper()
	// The path of t.TempDir has the name of the test in it, which is too long for sockets.
	temporary, err := os.MkdirTemp("", "demo") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temporary) })
	d := &Demo{t: t, temporary: temporary, cmd: exec.CommandContext(t.Context(), program, args...)}
	d.cmd.Env = append(os.Environ(), "TMPDIR="+d.temporary)
	d.cmd.Stderr = &d.stderr
	d.cmd.Cancel = func() error { return d.cmd.Process.Signal(syscall.SIGINT) }
	d.cmd.WaitDelay = 2 * time.Minute
	return d
}

// Start runs a demo until it says that it goes on until Ctrl-C.
func Start(t *testing.T, program string) *Demo {
	t.Helper()
	d := newDemo(t, program)
	stdout, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.drain()
		_ = d.cmd.Wait() // an error if Interrupt has waited already
	})
	d.lines = bufio.NewScanner(stdout)
	for d.lines.Scan() {
		fmt.Fprintln(&d.told, d.lines.Text())
		if _, path, ok := strings.Cut(d.lines.Text(), "KUBECONFIG="); ok {
			d.Kubeconfig = path
		}
		if _, address, ok := strings.Cut(d.lines.Text(), "watch it at "); ok {
			d.Page = strings.TrimSpace(address)
		}
		if strings.Contains(d.lines.Text(), "until Ctrl-C") {
			return d
		}
	}
	t.Fatalf("it has ended: %v\n%s%s", d.cmd.Wait(), &d.told, &d.stderr)
	return nil
}

// Story returns what was told so far.
func (d *Demo) Story() string { return d.told.String() }

// Interrupt ends the demo as Ctrl-C does, and returns what it has written to its standard error. The test fails unless the exit status is 0
// and nothing is left behind.
func (d *Demo) Interrupt() (stderr string) {
	d.t.Helper()
	if err := d.cmd.Process.Signal(syscall.SIGINT); err != nil {
		d.t.Fatal(err)
	}
	d.drain()
	if err := d.cmd.Wait(); err != nil {
		d.t.Errorf("after Ctrl-C: %v", err)
	}
	if d.t.Failed() {
		d.t.Logf("the story:\n%s%s", &d.told, &d.stderr)
	}
	d.nothingIsLeft()
	return d.stderr.String()
}

// drain reads the rest of the output, so that the demo does not wait for it.
func (d *Demo) drain() {
	for d.lines.Scan() {
		fmt.Fprintln(&d.told, d.lines.Text())
	}
}

// nothingIsLeft checks that the folder for temporary files is empty.
func (d *Demo) nothingIsLeft() {
	d.t.Helper()
	left, err := os.ReadDir(d.temporary)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, file := range left {
		d.t.Errorf("%s is left in the folder for temporary files", file.Name())
	}
}
