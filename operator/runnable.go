package operator

import "context"

// Runnable runs beside the frameworks on the leader, and with sharding on one of the replicas. A
// garbage collector is an example.
type Runnable struct {
	// Name is used in errors. Required.
	Name string
	// Run runs until ctx ends. An error or a panic stops the operator; returning nil does not.
	// Required.
	Run func(ctx context.Context) error
}
