package statemanager

import "context"

// Suspender is implemented by state managers whose objects go on working by themselves while nobody reconciles. While the
// provider is suspended, Suspend is called in place of Compute: the states as they are, and the operations that make what is at
// work stand still. What another state manager has put there stands still anyway: it does nothing then, and its states stay as
// they are.
type Suspender interface {
	Suspend(ctx context.Context, set *Set) (*Work, error)
}
