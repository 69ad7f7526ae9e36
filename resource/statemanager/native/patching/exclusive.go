package patching

import "context"

// kustomizing is the right to use kustomize, of one in the process: it keeps the schemas of kinds in variables of the process.
var kustomizing = make(chan struct{}, 1)

// Exclusive waits for the right to use kustomize, and returns what gives it back.
func Exclusive(ctx context.Context) (release func(), err error) {
	select {
	case kustomizing <- struct{}{}:
		return func() { <-kustomizing }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
