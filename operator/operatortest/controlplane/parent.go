package main

import (
	"io"
	"os"
	"time"
)

// The launcher and its children agree on these two variables.
const (
	// parentPipeVariable, when it is "stdin", says that standard input is a pipe
	// which the parent holds open for as long as it lives.
	parentPipeVariable = "OPERATORTEST_PARENT_PIPE"
	// removeDirVariable names a folder to remove when the parent is gone, which
	// then can't do it itself.
	removeDirVariable = "OPERATORTEST_REMOVE_DIR"
)

// endWithParent ends this process when the parent's end of the pipe is closed.
// The kernel closes it however the parent ends, SIGKILL included, and unlike a
// death signal it is not tied to one of the parent's threads.
func endWithParent() {
	if os.Getenv(parentPipeVariable) != "stdin" {
		return
	}
	go func() {
		// Nothing is ever written: this returns at the end of the file, or on
		// an error, which means as much.
		_, _ = io.Copy(io.Discard, os.Stdin)
		removeOrphaned(os.Getenv(removeDirVariable))
		os.Exit(0)
	}()
}

// removeOrphaned removes the folder that the parent would have removed. All
// parts of a control plane do this at the same time, and one that has not
// ended yet may still add a file, so it is tried more than once.
func removeOrphaned(dir string) {
	if dir == "" {
		return
	}
	for range 20 {
		if os.RemoveAll(dir) == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}
