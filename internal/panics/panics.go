// Package panics turns panics of foreign code into errors, and describes them without their secrets.
package panics

import (
	"errors"
	"fmt"
	"path"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
)

// Error is a panic that was turned into an error.
type Error struct {
	// Value is the argument of panic. It may quote a secret.
	Value any
	// Stack is the stack of the goroutine that panicked.
	Stack []byte

	text string
}

// New must be called while the goroutine is panicking, so that the stack is that of the panic. An
// *Error that is thrown again is returned unchanged.
func New(value any) *Error {
	if again, ok := value.(*Error); ok {
		return again
	}
	return &Error{Value: value, Stack: debug.Stack(), text: Describe(value)}
}

// Error implements error. It omits the stack, which is logged. Unless Go's runtime made the value,
// the text has only its type and the place of the panic: the value may quote a Secret.
func (e *Error) Error() string {
	if e.text == "" {
		return fmt.Sprintf("panic: value of type %T", e.Value)
	}
	return e.text
}

// Unwrap returns the value of the panic if it was an error.
func (e *Error) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Recovered calls f and turns a panic into an *Error. It is for callers of foreign code.
func Recovered(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = New(v)
		}
	}()
	return f()
}

// Describe describes a panic without its secrets, for the deferred function that recovered it.
// The description has the text of a value made by Go's runtime. Of any other value it has only the
// type, because the text may quote a secret. It also has the place, as in
//
//	panic: runtime error: index out of range [3] with length 3 in main.(*ops).Get (ops.go:42)
//	panic: value of type *errors.errorString in main.(*ops).Get (ops.go:42)
//
// It must be called while that function runs.
func Describe(value any) string {
	what := fmt.Sprintf("value of type %T", value)
	if fault := faultIn(value); fault != nil && ofRuntime(fault) {
		what = fault.Error()
	}
	return "panic: " + what + placeOfPanic()
}

// faultIn returns the error of Go's runtime that a value is or wraps. It returns nil if the search
// panics, as for a nil pointer.
func faultIn(value any) (fault runtime.Error) {
	defer func() { _ = recover() }()
	if err, ok := value.(error); ok {
		errors.As(err, &fault)
	}
	return fault
}

// ofRuntime reports whether the runtime itself made an error.
func ofRuntime(fault runtime.Error) bool {
	t := reflect.TypeOf(fault)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.PkgPath() == "runtime"
}

// placeOfPanic returns the function that panicked, which is below the runtime's part of the stack.
func placeOfPanic() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	panicking := false
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		switch {
		case frame.Function == "runtime.gopanic":
			panicking = true
		case panicking && !strings.HasPrefix(frame.Function, "runtime.") && !strings.HasPrefix(frame.Function, "internal/runtime/"):
			return fmt.Sprintf(" in %s (%s:%d)", frame.Function, path.Base(frame.File), frame.Line)
		}
	}
	return ""
}
