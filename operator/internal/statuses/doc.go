// Package statuses is what the operators of this module have in common that write a status and go by what they have written: a
// CRUD resource for the status, a client whose writes are known to the sources when they return, and one computation
// for all resources of a reconciliation.
//
//	status, err := statuses.New(statuses.Config[*v1alpha1.ServiceSet, v1alpha1.ServiceSetStatus]{
//		Access: access, Client: d.Client, Reader: reader, Logger: d.Logger, Compute: compute, Tell: events,
//	})
//
// A status is the first resource of its set: it tells what is so when the reconciliation is done, and what keeps it from being
// done. A plan has exactly what is written, in words; nothing is written when nothing changes.
package statuses
