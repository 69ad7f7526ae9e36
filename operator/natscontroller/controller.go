package natscontroller

import "context"

// The reasons and messages of events that controllers write about what they have made. That with ReasonErrResourceExists is written on a
// primary when one of its resources is refused by what exists already and is somebody else's (natsresource.RefusedError,
// objectresource.RefusedError); the others are up to the controller's author.
const (
	ReasonResourceSynced    = "Synced"
	ReasonErrResourceExists = "ErrResourceExists"

	MessageErrResourceExists     = "Resource %q already exists and is not managed by this controller"
	MessageResourceSyncedCreated = "%q synced successfully (created)"
	MessageResourceSyncedUpdated = "%q synced successfully (updated)"
	MessageResourceSyncedDeleted = "%q synced successfully (deleted)"
)

// Operation says what happened to a primary, or that one of its secondaries changed. It is for people who read the calls:
// what is done depends on what is there when the key is worked on.
type Operation uint8

// The operations.
const (
	OperationPut Operation = iota
	OperationDelete
	OperationPurge
	OperationSecondary
)

// String returns the operation in lower case.
func (o Operation) String() string {
	switch o {
	case OperationPut:
		return "put"
	case OperationDelete:
		return "delete"
	case OperationPurge:
		return "purge"
	case OperationSecondary:
		return "secondary"
	}
	return "unknown"
}

// IController is what a controller may do in its own way. A struct that embeds a *ControllerRuntime has all of it and
// overrides what it wants to; SetCustomController tells the ControllerRuntime. The methods are called from several
// goroutines at once. A panic in one of them is an error.
type IController interface {
	// Run runs the controller until stopCh is closed.
	Run(threadiness int, stopCh <-chan struct{}, errCh chan<- error)
	// SyncHandler makes what is there what should be there for the primary with that key. It is called after the resources,
	// when the primary, or one of its secondaries, was changed; when the primary is being deleted (its DeletionTimestamp is
	// set) or is gone; and for each EnqueueKey, whether there is an entry or not. It must find out which of these is the
	// case, and be idempotent. It is never called twice at once for one key. After an error it is called again, with
	// backoff. By default it does nothing.
	SyncHandler(key string) error
	// HandleSecondary is called when a secondary was added, changed or deleted, with its new state, and for a change with
	// the state before it too, so that an owner that has lost it is told. It must be quick and must not change obj. By
	// default it enqueues the owner, once for a change, unless SyncHandlerContext or a resource has made the change for the owner.
	HandleSecondary(obj any)
	// GarbageSecondaries removes secondaries whose owner does not exist. It is called when the sources are synced and then
	// at each interval, on the leader. By default it removes what PlanGarbage returns.
	GarbageSecondaries()
	// Clean is called once when the controller has stopped, for whatever reason. By default it does nothing.
	Clean()
}

// ContextSyncer is implemented by controllers that want the context of the reconciliation. The method is called in place of SyncHandler,
// of which all that is said holds. The context ends when the controller had to stop and ShutdownTimeout has passed; it carries the
// signals of the packages in context/, of which requeuecontext has the key looked at again.
type ContextSyncer interface {
	SyncHandlerContext(ctx context.Context, key string) error
}
