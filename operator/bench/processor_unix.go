//go:build unix

package main

import (
	"syscall"
	"time"
)

// processorTime returns the time that all processors have spent on this process. Unlike the time on the wall it does not
// grow when the machine has other things to do.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
