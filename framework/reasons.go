package framework

// These are the reasons of results and records: why an object is ignored or waits, and why a resource
// does not run completely.
const (
	reasonGone          = "there is no such object"
	reasonPaused        = "it is paused by an annotation"
	reasonNoResourceSet = "no resource set handles it"
	reasonNotOurs       = "it is being deleted and does not have the finalizer of this framework"
	reasonProcessed     = "its deletion has been processed"
	reasonUnselected    = "the source does not select it any more"
	reasonMissing       = "the source lacks it, although it is there and selected"
	reasonBack          = "the source lacked it, and has it again"
	reasonElsewhere     = "another replica reconciles it"
	reasonBehind        = "the source has yet to tell of what another process may have acted on"
	reasonOutdated      = "it has changed since, of which the source has yet to tell"
	reasonReplaced      = "it is gone, or another object has its name, which the source has yet to tell"
	reasonGoneEarly     = "it has gone before it got its finalizer"
	reasonSucceeded     = "another object has its name, to which may belong what is there"

	reasonNotReached             = "not reached"
	reasonResourceCanceled       = "the resource is cancelled"
	reasonReconciliationCanceled = "the reconciliation is cancelled"
	reasonNoUpdates              = "updates are not allowed"
	reasonNoDeletion             = "the deletion is not allowed"
)
