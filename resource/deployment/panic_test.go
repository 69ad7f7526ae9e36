package deployment_test

import (
	"context"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/resource/deployment"
)

// explosive is an operation of the author's, or one whose progress is told to a function that panics.
type explosive struct{ deployment.Operation }

func (explosive) Execute(context.Context, deployment.Client) error { panic("no progress") }

func TestR4APanicWithinAParallelGroupIsTheErrorOfItsOperation(t *testing.T) {
	group := &deployment.ParallelOperation{Operations: []deployment.Operation{explosive{}, explosive{}}}
	if err := group.Execute(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "panic: value of type string in github.com/operatorkit/operatorkit/resource/deployment_test.explosive.Execute") {
		t.Errorf("got error %v, want that of the panic", err)
	}
}
