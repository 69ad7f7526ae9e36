package deployment

import (
	"context"
	"sync"
)

// ProgressStatus says what becomes of an operation.
type ProgressStatus string

const (
	// ProgressStarted is an operation that begins.
	ProgressStarted ProgressStatus = "started"
	// ProgressGoing is an operation that says how far it is.
	ProgressGoing ProgressStatus = "going"
	// ProgressDone is an operation that succeeded.
	ProgressDone ProgressStatus = "done"
	// ProgressFailed is an operation that failed.
	ProgressFailed ProgressStatus = "failed"
	// ProgressReverted is an operation that had succeeded and was undone.
	ProgressReverted ProgressStatus = "reverted"
)

// ProgressEvent is what happens to an operation of a plan on a machine.
type ProgressEvent struct {
	Operation Operation
	MachineID string
	Status    ProgressStatus
	// Current and Total say how far an operation is, in bytes. Total is 0 as long as it is not known.
	Current, Total int64
	// Err is why it failed.
	Err error
}

type progressKey struct{}

// WithProgress returns a context with which operations tell a function what happens. It is called by one goroutine at a time, and
// holds up the operations.
func WithProgress(ctx context.Context, f func(ProgressEvent)) context.Context {
	var mu sync.Mutex
	return context.WithValue(ctx, progressKey{}, func(e ProgressEvent) {
		mu.Lock()
		defer mu.Unlock()
		f(e)
	})
}

func emit(ctx context.Context, e ProgressEvent) {
	if f, ok := ctx.Value(progressKey{}).(func(ProgressEvent)); ok {
		f(e)
	}
}

// track tells of the beginning and the end of an operation.
func track(ctx context.Context, op Operation, machineID string, f func() error) error {
	emit(ctx, ProgressEvent{Operation: op, MachineID: machineID, Status: ProgressStarted})
	err := f()
	end := ProgressEvent{Operation: op, MachineID: machineID, Status: ProgressDone, Err: err}
	if err != nil {
		end.Status = ProgressFailed
	}
	emit(ctx, end)
	return err
}
