// Package crdclient makes sure that custom resource definitions exist before anything watches their objects.
//
//	crds, err := crdclient.New(crdclient.Config{Client: c, Logger: logger})
//	err = crds.EnsureCreated(ctx, crd, backoff.NewExponentialBackOff())
//
// # Promises
//
//   - A definition is created, or updated in place by server-side apply. It is never deleted, and its objects are safe.
//   - What others have set and the given definition does not mention stays: labels, annotations, a conversion webhook and
//     its CA bundle. A definition that is as it should be is not written.
//   - EnsureCreated returns nil only when the API serves the objects.
//   - A failure is tried again as the given backoff says, until the context ends; what can't succeed, such as names that
//     another definition has taken, is returned at once as a *backoff.PermanentError.
package crdclient
