package faults_test

import (
	"errors"
	"io"
	"testing"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/faults"
)

func TestOneErrorNamesEveryFaultAndWrapsIt(t *testing.T) {
	var wrong faults.List
	if err := wrong.Of("x.Config"); err != nil {
		t.Errorf("nothing is wrong, got %v", err)
	}
	wrong.If(false, "not this")
	wrong.If(true, "Name must not be empty")
	wrong.Add("File: %w", io.ErrUnexpectedEOF)
	err := wrong.Of("x.Config")
	if want := "invalid config: x.Config: Name must not be empty; File: unexpected EOF"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	for _, is := range []error{informer.ErrInvalidConfig, framework.ErrInvalidConfig, io.ErrUnexpectedEOF} {
		if !errors.Is(err, is) {
			t.Errorf("it is not %v", is)
		}
	}
}

func TestAPointerThatIsNilIsNil(t *testing.T) {
	var list *faults.List
	for _, value := range []any{nil, list, (func())(nil), map[string]int(nil)} {
		if !faults.IsNil(value) {
			t.Errorf("%T is not nil", value)
		}
	}
	for _, value := range []any{"", 0, &faults.List{}, map[string]int{}, []int(nil)} {
		if faults.IsNil(value) {
			t.Errorf("%T is nil", value)
		}
	}
}
