//go:build unix

package operatortest

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps the terminal's Ctrl-C from the process: whoever started it
// stops it, after the operator that still needs it.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
