package deployment

import (
	"context"
	"errors"
	"sync"

	"github.com/operatorkit/operatorkit/internal/panics"
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

// Describe implements Operation.
func (o *SequenceOperation) Describe() Description {
	return Description{Operation: "sequence", Operations: descriptions(o.Operations)}
}

// Format implements Operation.
func (o *SequenceOperation) Format(resolver NameResolver) string {
	return o.Describe().Format(resolver)
}

// String implements Operation.
func (o *SequenceOperation) String() string { return o.Describe().String() }

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
			errs[i] = panics.Recovered(func() error { return f(op) })
		})
	}
	group.Wait()
	return errs
}

// Describe implements Operation.
func (o *ParallelOperation) Describe() Description {
	return Description{Operation: "parallel", Limit: o.limit(), Operations: descriptions(o.Operations)}
}

// Format implements Operation.
func (o *ParallelOperation) Format(resolver NameResolver) string {
	return o.Describe().Format(resolver)
}

// String implements Operation.
func (o *ParallelOperation) String() string { return o.Describe().String() }

// placed is an operation on one machine.
type placed interface {
	Operation
	machine() string
}

func leaves(operations []Operation) []placed {
	var out []placed
	for _, op := range operations {
		switch o := op.(type) {
		case *SequenceOperation:
			out = append(out, leaves(o.Operations)...)
		case *ParallelOperation:
			out = append(out, leaves(o.Operations)...)
		case *RolloutOperation:
			for _, w := range o.Waves {
				out = append(out, leaves(w.Operations)...)
			}
		case placed:
			out = append(out, o)
		}
	}
	return out
}
