package framework

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/cenkalti/backoff/v4"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/panics"
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
	return consistsOf(err, func(err error) bool {
		_, ok := err.(*backoff.PermanentError) //nolint:errorlint // every unwraps
		return ok
	})
}

// StepError names the resource and the step that failed.
type StepError struct {
	// Resource is the name of the resource.
	Resource string
	// Step is the step that failed.
	Step Step
	// Err is the error that the resource returned, or one that describes its panic.
	Err error
}

// Error implements error.
func (e *StepError) Error() string {
	return fmt.Sprintf("resource %q: %s: %s", e.Resource, strings.ReplaceAll(string(e.Step), "_", " "), e.Err)
}

// Unwrap returns the cause.
func (e *StepError) Unwrap() error { return e.Err }

func stackOf(err error) string {
	var p *panics.Error
	if errors.As(err, &p) {
		return string(p.Stack)
	}
	return ""
}

// recoveredIn calls run with ctx and turns a panic into a *panics.Error. The text of the error does
// not contain known secret values.
func recoveredIn(ctx context.Context, run func(context.Context) error) error {
	err := panics.Recovered(func() error { return run(ctx) })
	return secretscontext.ScrubError(ctx, err)
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
