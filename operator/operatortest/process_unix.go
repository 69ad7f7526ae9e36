//go:build unix

package operatortest

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup keeps the terminal's Ctrl-C from the process: whoever started it
// stops it, after the operator that still needs it.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// pause stops a process until resume; it does not notice.
func pause(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
