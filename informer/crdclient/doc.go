// Package crdclient makes sure that custom resource definitions exist before anything watches their
// objects.
//
//	crds, err := crdclient.New(crdclient.Config{Client: c, Logger: logger})
//	err = crds.EnsureCreated(ctx, crd, backoff.NewExponentialBackOff())
//
// # Promises
//
//   - A definition is read first. It is created, or updated in place by server-side apply, only if
//     it is missing or lacks a field of the given one. It is never deleted, and its objects are
//     safe.
//   - A newer definition stays: an older version of an operator that starts during or after a
//     rollout never restores its schema, even if a 404 says that there is none. HistoryAnnotation
//     records the definitions applied before. A definition that has all fields of the given one and
//     more stays too. Force restores an older one on request.
//   - Fields that others have set and the given definition does not mention stay: labels,
//     annotations, a conversion webhook and its CA bundle.
//   - An operator without permission to write works with the definitions that another user has
//     applied. Reading them takes a cluster-wide permission. Without it the operator accepts the
//     definitions unchanged, and only asks the API whether their versions are served.
//   - EnsureCreated returns nil only when the API serves the objects.
//   - A failure is retried according to the given backoff, until the context ends. A permanent
//     failure, such as names that another definition has, is returned at once as a
//     *backoff.PermanentError.
package crdclient
