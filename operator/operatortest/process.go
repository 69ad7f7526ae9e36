package operatortest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// pollPeriod is how long to wait between two looks at something.
	pollPeriod = 25 * time.Millisecond
	// logTail is how much of a log an error shows, in bytes.
	logTail = 4096
)

// process is one part of a control plane. It costs its parent no goroutine: a
// test that looks for leaked ones finds none.
//
// Two pipes join it to its parent. The child reads the one and ends at its end,
// which comes when the parent ends, in whatever way. The parent reads the other
// one, which ends when the child has ended. Nothing is ever written to either.
type process struct {
	name     string // of the sub-command
	binary   string
	args     []string
	env      []string
	logFile  string
	readyURL string // answers 200 when the process is ready

	cmd      *exec.Cmd // nil when it isn't running
	lifeline *os.File  // the parent's end of the child's standard input
	ended    *os.File  // end of file when the child has ended
	logStart int64     // size of the log when it was started
}

// start starts the process, whose output is added to the log file.
func (p *process) start() error {
	if err := p.spawn(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	return nil
}

func (p *process) spawn() (err error) {
	log, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	info, err := log.Stat()
	if err != nil {
		return err
	}
	stdin, lifeline, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = stdin.Close() }()
	ended, held, err := os.Pipe()
	if err != nil {
		_ = lifeline.Close()
		return err
	}
	defer func() { _ = held.Close() }()

	cmd := exec.Command(p.binary, append([]string{p.name}, p.args...)...) //nolint:gosec // the binary is the caller's choice
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Dir = filepath.Dir(p.logFile)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, log, log
	cmd.ExtraFiles = []*os.File{held}
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		_, _ = lifeline.Close(), ended.Close()
		return err
	}
	p.cmd, p.lifeline, p.ended, p.logStart = cmd, lifeline, ended, info.Size()
	return nil
}

// running is whether the process was started and has not ended.
func (p *process) running() bool {
	return p.cmd != nil && !p.waitEnd(time.Millisecond)
}

// waitEnd waits until the process has ended, at most for timeout, and returns
// whether it has. A process that never started has ended.
func (p *process) waitEnd(timeout time.Duration) bool {
	if p.cmd == nil {
		return true
	}
	if err := p.ended.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return false
	}
	if _, err := p.ended.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	// How it ended says nothing: it is told to end by a signal.
	_ = p.cmd.Wait()
	_, _ = p.lifeline.Close(), p.ended.Close()
	p.cmd = nil
	return true
}

// stop asks the process to end, and ends it when it has not done so after the
// grace period or when ctx ends.
func (p *process) stop(ctx context.Context, grace time.Duration) {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	for deadline := time.Now().Add(grace); ctx.Err() == nil && time.Now().Before(deadline); {
		if p.waitEnd(pollPeriod) {
			return
		}
	}
	p.kill()
}

// kill ends the process with SIGKILL and returns when it is gone.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	for !p.waitEnd(time.Second) {
	}
}

// tail returns the end of what the process has logged since it was started.
func (p *process) tail() string {
	file, err := os.Open(p.logFile)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	from := max(p.logStart, info.Size()-logTail)
	text := make([]byte, info.Size()-from)
	n, err := file.ReadAt(text, from)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Sprintf("(log %s not readable: %v)", p.logFile, err)
	}
	return strings.TrimSpace(string(text[:n]))
}
