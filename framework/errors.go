package framework

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/cenkalti/backoff/v4"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/informer"
)

// These are the causes that users distinguish. errors.Is with these values and the Is functions
// both hold through wrapping.
var (
	// ErrExecutionFailed is a reconciliation that could not be executed as configured, for example
	// because several resource sets handle one object.
	ErrExecutionFailed = errors.New("execution failed")
	// ErrInvalidConfig is a configuration, also of a source, that lacks something or contradicts
	// itself. The message names the field.
	ErrInvalidConfig = informer.ErrInvalidConfig
	// ErrNoResourceSet is an object that no resource set handles.
	ErrNoResourceSet = errors.New("no resource set")

	// ErrStopNow, in the chain of the cause with which the context of Run is cancelled, cancels the
	// reconciliations in progress at once instead of after Config.ShutdownTimeout. It is for
	// operators that may no longer write, such as a leader that has lost its lease.
	ErrStopNow = errors.New("stop now")

	// ErrStillRunning is in the chain of the error of Run when something that it started ignores
	// the end of its context. Only in this case a goroutine outlives Run.
	ErrStillRunning = errors.New("still running")

	// ErrOpaque is returned by a Planner that can't predict its changes.
	ErrOpaque = errors.New("the resource can't tell what it would do")

	errSeveralResourceSets = errors.New("several resource sets")
)

// IsExecutionFailed asserts ErrExecutionFailed.
func IsExecutionFailed(err error) bool { return errors.Is(err, ErrExecutionFailed) }

// IsInvalidConfig asserts ErrInvalidConfig.
func IsInvalidConfig(err error) bool { return errors.Is(err, ErrInvalidConfig) }

// IsNoResourceSet asserts ErrNoResourceSet.
func IsNoResourceSet(err error) bool { return errors.Is(err, ErrNoResourceSet) }

// Permanent marks an error that a retry can't fix: the framework waits for the next change of the
// object instead of trying again, and retryresource gives up. It is the Permanent of
// cenkalti/backoff, so errors marked there count too. Permanent(nil) is nil.
func Permanent(err error) error { return backoff.Permanent(err) }

// IsPermanent reports whether an error was marked by Permanent, also if it was wrapped since.
// Joined errors are permanent only if all of them are: a retry can fix the others.
func IsPermanent(err error) bool {
	return every(err, func(err error) bool {
		_, ok := err.(*backoff.PermanentError) //nolint:errorlint // every looks into what is wrapped
		return ok
	})
}

// StepError names the resource and the step that failed.
type StepError struct {
	// Resource is the name of the resource.
	Resource string
	// Step is the step that failed.
	Step Step
	// Err is the error that the resource returned, or a *PanicError.
	Err error
}

// Error implements error.
func (e *StepError) Error() string {
	return fmt.Sprintf("resource %q: %s: %s", e.Resource, strings.ReplaceAll(string(e.Step), "_", " "), e.Err)
}

// Unwrap returns the cause.
func (e *StepError) Unwrap() error { return e.Err }

// PanicError is a panic that was turned into an error.
type PanicError struct {
	// Value is the argument of panic. It may quote a secret.
	Value any
	// Stack is the stack of the goroutine that panicked.
	Stack []byte

	text string
}

// newPanicError must be called while the goroutine is panicking, so that the stack is that of the
// panic. A *PanicError that is thrown again is returned unchanged.
func newPanicError(value any) *PanicError {
	if again, ok := value.(*PanicError); ok {
		return again
	}
	return &PanicError{Value: value, Stack: debug.Stack(), text: informer.DescribePanic(value)}
}

// Error implements error. It omits the stack, which is logged. Unless Go's runtime made the value,
// the text has only its type and the place of the panic: the value may quote a Secret.
func (e *PanicError) Error() string {
	if e.text == "" {
		return fmt.Sprintf("panic: value of type %T", e.Value)
	}
	return e.text
}

// Unwrap returns the value of the panic if it was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

func stackOf(err error) string {
	var p *PanicError
	if errors.As(err, &p) {
		return string(p.Stack)
	}
	return ""
}

// recoveredIn calls run with ctx and turns a panic into a *PanicError. The text of the error does
// not contain known secret values.
func recoveredIn(ctx context.Context, run func(context.Context) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = newPanicError(v)
		}
		if err != nil {
			err = secretscontext.ScrubError(ctx, err)
		}
	}()
	return run(ctx)
}

// Recovered calls f and turns a panic into a *PanicError, as the framework does with everything it
// calls. It is for callers of foreign code.
func Recovered(f func() error) error {
	return recoveredIn(context.Background(), func(context.Context) error { return f() })
}

// sourceError is the reason why a framework stops without a request.
type sourceError struct{ error }

// stepError adds the resource and the step to an error, unless it has them.
func stepError(info StepInfo, err error) error {
	if err == nil {
		return nil
	}
	var already *StepError
	if errors.As(err, &already) {
		return err
	}
	return &StepError{Resource: info.Resource, Step: info.Step, Err: err}
}
