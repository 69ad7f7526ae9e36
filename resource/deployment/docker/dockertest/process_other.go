//go:build !linux

package dockertest

import (
	"errors"
	"os/exec"
)

func endWithParent(*exec.Cmd) {}

func detach(string) error { return errors.ErrUnsupported }
