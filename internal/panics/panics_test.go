package panics_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/internal/panics"
)

// panicked returns the description of a panic in f.
func panicked(f func()) (said string) {
	defer func() { said = panics.Describe(recover()) }()
	f()
	return ""
}

// pretending says that it is of the runtime.
type pretending string

func (d pretending) Error() string { return string(d) }
func (pretending) RuntimeError()   {}

func TestR14APanicIsToldByItsTypeAndPlace(t *testing.T) {
	var none map[string]int
	var list []int
	in := " in github.com/operatorkit/operatorkit/internal/panics_test.TestR14APanicIsToldByItsTypeAndPlace.func"
	for name, tc := range map[string]struct {
		f    func()
		want string
	}{
		"a text":                {func() { panic("hunter2") }, "panic: value of type string" + in},
		"an error":              {func() { panic(errors.New("hunter2")) }, "panic: value of type *errors.errorString" + in},
		"an error that says so": {func() { panic(pretending("hunter2")) }, "panic: value of type panics_test.pretending" + in},
		"a nil map":             {func() { none["hunter2"] = 1 }, "panic: assignment to entry in nil map" + in},
		"an index":              {func() { list[len(list)+2] = 1 }, "panic: runtime error: index out of range [2] with length 0" + in},
		"nothing at an address": {func() { *(*int)(nil) = 1 }, "panic: runtime error: invalid memory address or nil pointer dereference" + in},
		"another type":          {func() { _ = any("hunter2").(int) }, "panic: interface conversion: interface {} is string, not int" + in},
		"what wraps one of runtime's": {func() {
			defer func() { panic(fmt.Errorf("hunter2: %w", recover().(error))) }()
			list[len(list)+2] = 1
		}, "panic: runtime error: index out of range [2] with length 0" + in},
	} {
		t.Run(name, func(t *testing.T) {
			said := panicked(tc.f)
			if !strings.HasPrefix(said, tc.want) || !strings.Contains(said, " (panics_test.go:") || strings.Contains(said, "hunter2") {
				t.Errorf("got %q, want %q, and the place", said, tc.want)
			}
		})
	}
}
