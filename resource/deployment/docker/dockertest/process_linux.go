package dockertest

import (
	"os/exec"
	"syscall"
)

// endWithParent makes a process end with the one that started it, and keeps the terminal's Ctrl-C from it.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// detach unmounts a path, now or as soon as nobody uses it any more.
func detach(path string) error { return syscall.Unmount(path, syscall.MNT_DETACH) }
