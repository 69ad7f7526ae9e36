// Package statuses is what the operators of this module have in common that write a status and go by what they have written: the
// resource for the status, and one computation for all resources of a reconciliation.
//
//	status, err := statuses.New(d, func(ctx context.Context, set *v1alpha1.ServiceSet) error { … }, events)
//
// A status is the first resource of its set: it tells what is so when the reconciliation is done, and what keeps it from being
// done. See package statusresource for how it is written.
package statuses
