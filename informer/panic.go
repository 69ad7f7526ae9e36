package informer

import (
	"errors"
	"fmt"
	"path"
	"reflect"
	"runtime"
	"strings"
)

// DescribePanic describes a panic without its secrets, for the deferred function that recovered it.
// The description has the text of a value made by Go's runtime. Of any other value it has only the
// type, because the text may quote a secret. It also has the place, as in
//
//	panic: runtime error: index out of range [3] with length 3 in main.(*ops).Get (ops.go:42)
//	panic: value of type *errors.errorString in main.(*ops).Get (ops.go:42)
//
// It must be called while that function runs.
func DescribePanic(value any) string {
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
