package operator

import "context"

// Runnable is something that runs on the leader, and with sharding on one of the replicas, beside the frameworks, such as a collector of garbage.
type Runnable struct {
	// Name stands in errors. Required.
	Name string
	// Run runs until ctx ends. An error, or a panic, stops the operator; that it returns nil does not. Required.
	Run func(ctx context.Context) error
}
