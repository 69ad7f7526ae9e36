package deployment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/operatorkit/operatorkit/framework"
)

// SequenceOperation is a composite operation that executes a sequence of operations in order. The first that fails ends it, but for
// one that did most of what it should (*PartialError).
type SequenceOperation struct {
	Operations []Operation
}

// Execute implements Operation.
func (o *SequenceOperation) Execute(ctx context.Context, cli Client) error {
	var partial []error
	for _, op := range o.Operations {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(partial, context.Cause(ctx))...)
		}
		err := op.Execute(ctx, cli)
		if err == nil {
			continue
		}
		partial = append(partial, err)
		if p := (*PartialError)(nil); !errors.As(err, &p) {
			break
		}
	}
	return errors.Join(partial...)
}

// Format implements Operation.
func (o *SequenceOperation) Format(resolver NameResolver) string {
	lines := make([]string, len(o.Operations))
	for i, op := range o.Operations {
		lines[i] = op.Format(resolver)
	}
	return strings.Join(lines, "\n")
}

// String implements Operation.
func (o *SequenceOperation) String() string { return "in order: " + joined(o.Operations) }

func joined(operations []Operation) string {
	texts := make([]string, len(operations))
	for i, op := range operations {
		texts[i] = op.String()
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

// MarshalJSON implements Operation.
func (o *SequenceOperation) MarshalJSON() ([]byte, error) {
	return json.Marshal(operationJSON{Operation: "sequence", Operations: o.Operations})
}

// DefaultLimit is how many operations of a parallel group go on at once.
const DefaultLimit = 16

// ParallelOperation is a composite operation that executes operations at once. All are tried, whatever becomes of the others.
type ParallelOperation struct {
	Operations []Operation
	// Limit is how many go on at once. Default: DefaultLimit.
	Limit int
}

// Execute implements Operation.
func (o *ParallelOperation) Execute(ctx context.Context, cli Client) error {
	return errors.Join(atOnce(ctx, o.Operations, o.limit(), func(op Operation) error { return op.Execute(ctx, cli) })...)
}

func (o *ParallelOperation) limit() int {
	if o.Limit <= 0 {
		return DefaultLimit
	}
	return o.Limit
}

// atOnce does something for each operation, a number of them at once, and returns the errors in their order. None is begun after the
// context has ended.
func atOnce[T any](ctx context.Context, operations []T, limit int, f func(T) error) []error {
	errs := make([]error, len(operations))
	free := make(chan struct{}, limit)
	var group sync.WaitGroup
	for i, op := range operations {
		free <- struct{}{}
		if ctx.Err() != nil {
			errs[i] = context.Cause(ctx)
			<-free
			continue
		}
		group.Go(func() {
			defer func() { <-free }()
			// Whoever follows the progress is called from here.
			errs[i] = framework.Recovered(func() error { return f(op) })
		})
	}
	group.Wait()
	return errs
}

// Format implements Operation.
func (o *ParallelOperation) Format(resolver NameResolver) string {
	lines := make([]string, len(o.Operations))
	for i, op := range o.Operations {
		lines[i] = op.Format(resolver)
	}
	return strings.Join(lines, "\n")
}

// String implements Operation.
func (o *ParallelOperation) String() string {
	return fmt.Sprintf("%d at once: %s", o.limit(), joined(o.Operations))
}

// MarshalJSON implements Operation.
func (o *ParallelOperation) MarshalJSON() ([]byte, error) {
	return json.Marshal(operationJSON{Operation: "parallel", Limit: o.limit(), Operations: o.Operations})
}
