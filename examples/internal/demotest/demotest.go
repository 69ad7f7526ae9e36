// Package demotest runs the stories of examples as "make run" does, for tests and pictures. The program is the test itself, so that none
// has to be built, and Go's cache of test results knows what it is made of:
//
//	func TestMain(m *testing.M) {
//		demotest.Tell(story.New)
//		operatortest.VerifyTestMain(m)
//	}
//
//	func TestTheStory(t *testing.T) {
//		d := demotest.Start(t)
//		look(d.Kubeconfig, d.Page)
//		d.Interrupt()
//	}
package demotest

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/operatorkit/operatorkit/examples/internal/demo"
)

// storyVariable is set for a process that is to tell a story instead of running tests.
const storyVariable = "DEMOTEST_STORY"

// Tell tells the story, and ends the process, if the process was started to do so by this package. Else it does nothing.
func Tell(story func() demo.Story) {
	if os.Getenv(storyVariable) != "" {
		demo.Main(story())
		os.Exit(0)
	}
}

// Command is the program that tells the story that TestMain has given to Tell.
func Command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), storyVariable+"=told")
	return cmd
}

// Once runs a demo that ends by itself, with further flags, and returns its story. The test fails unless the exit status is 0 and nothing is left behind.
func Once(t *testing.T, flags ...string) string {
	t.Helper()
	d := newDemo(t, append(flags, "--once")...)
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

func newDemo(t *testing.T, args ...string) *Demo {
	t.Helper()
	// The path of t.TempDir has the name of the test in it, which is too long for sockets.
	temporary, err := os.MkdirTemp("", "demo") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temporary) })
	d := &Demo{t: t, temporary: temporary, cmd: Command(t, args...)}
	d.cmd.Env = append(d.cmd.Env, "TMPDIR="+d.temporary)
	d.cmd.Stderr = &d.stderr
	d.cmd.Cancel = func() error { return d.cmd.Process.Signal(syscall.SIGINT) }
	d.cmd.WaitDelay = 2 * time.Minute
	return d
}

// Start runs a demo until it says that it goes on until Ctrl-C.
func Start(t *testing.T) *Demo {
	t.Helper()
	d := newDemo(t)
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
