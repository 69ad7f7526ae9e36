//go:build !unix

package operatortest

import (
	"errors"
	"os"
	"os/exec"
)

// ownGroup has nothing to do where a terminal's signals stay with one process.
func ownGroup(*exec.Cmd) {}

func pause(*os.Process) error { return errors.ErrUnsupported }

func resume(*os.Process) error { return errors.ErrUnsupported }
