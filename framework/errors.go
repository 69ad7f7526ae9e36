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

// The causes that users tell apart. Both errors.Is with these values and the Is functions hold through wrapping.
var (
	// ErrExecutionFailed is a reconciliation that could not be carried out as configured, for example because several
	// resource sets handle one object.
	ErrExecutionFailed = errors.New("execution failed")
	// ErrInvalidConfig is a configuration that lacks something or contradicts itself, of a source too. The message names
	// the field.
	ErrInvalidConfig = informer.ErrInvalidConfig
	// ErrNoResourceSet is an object that no resource set handles.
	ErrNoResourceSet = errors.New("no resource set")

	// ErrStopNow, in the chain of the cause with which the context of Run is cancelled, cancels the reconciliations under
	// way at once instead of after Config.ShutdownTimeout. It is for those who may not write any more, such as a leader
	// that has lost its lease.
	ErrStopNow = errors.New("stop now")

	// ErrStillRunning is in the chain of what Run returns when something that it started ignores the end of its context. It is
	// the one case in which a goroutine outlives Run.
	ErrStillRunning = errors.New("still running")

	// ErrOpaque is what a Planner returns that can't tell what it would do.
	ErrOpaque = errors.New("the resource can't tell what it would do")

	errSeveralResourceSets = errors.New("several resource sets")
)

// IsExecutionFailed asserts ErrExecutionFailed.
func IsExecutionFailed(err error) bool { return errors.Is(err, ErrExecutionFailed) }

// IsInvalidConfig asserts ErrInvalidConfig.
func IsInvalidConfig(err error) bool { return errors.Is(err, ErrInvalidConfig) }

// IsNoResourceSet asserts ErrNoResourceSet.
func IsNoResourceSet(err error) bool { return errors.Is(err, ErrNoResourceSet) }

// Permanent marks an error that a retry can't mend: the framework waits for the next change of the object instead of
// trying again, and retryresource gives up. It is the Permanent of cenkalti/backoff, so errors marked there count too.
// Permanent(nil) is nil.
func Permanent(err error) error { return backoff.Permanent(err) }

// IsPermanent tells whether an error was marked by Permanent, also when it was wrapped since. Joined errors are permanent if all of them
// are: a retry mends the others.
func IsPermanent(err error) bool {
	return every(err, func(err error) bool {
		_, ok := err.(*backoff.PermanentError) //nolint:errorlint // every looks into what is wrapped
		return ok
	})
}

// StepError says which step of which resource failed.
type StepError struct {
	// Resource is the name of the resource.
	Resource string
	// Step is what it was doing.
	Step Step
	// Err is what the resource returned, or a *PanicError.
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
	// Value is what was given to panic. It may quote what is secret.
	Value any
	// Stack is the stack of the goroutine that panicked.
	Stack []byte

	text string
}

// newPanicError must be called while the goroutine is panicking, so that the stack is that of the panic. A *PanicError that is thrown
// again stays what it is.
func newPanicError(value any) *PanicError {
	if again, ok := value.(*PanicError); ok {
		return again
	}
	return &PanicError{Value: value, Stack: debug.Stack(), text: informer.DescribePanic(value)}
}

// Error implements error. The stack is left out: it goes to the log. Of a value that Go's runtime did not make only the type is told, and
// the place: it may quote a Secret.
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

// recoveredIn calls run with ctx and turns a panic into a *PanicError. Secret values that are known are not in the text of the error.
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

// Recovered calls f and turns a panic into a *PanicError, as the framework does with whatever it calls: for those who call the code
// of others themselves.
func Recovered(f func() error) error {
	return recoveredIn(context.Background(), func(context.Context) error { return f() })
}

// sourceError is why a framework stops although nobody asked it to.
type sourceError struct{ error }

// stepError gives an error the resource and the step that it is of, unless it has them.
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
