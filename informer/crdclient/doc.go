// Package crdclient makes sure that custom resource definitions exist before anything watches their objects.
//
//	crds, err := crdclient.New(crdclient.Config{Client: c, Logger: logger})
//	err = crds.EnsureCreated(ctx, crd, backoff.NewExponentialBackOff())
//
// # Promises
//
//   - A definition is looked at first. It is created, or updated in place by server-side apply, when it is missing or lacks something that
//     the given one says. It is never deleted, and its objects are safe.
//   - A newer definition stays: an older version of an operator, which starts once more during a rollout or after one, never puts its
//     schema back, nor when it is told that there is none. What was applied before is known by HistoryAnnotation; a definition that
//     says all that the given one says and more stays too. Force puts an older one back, when somebody asks for it.
//   - What others have set and the given definition does not mention stays: labels, annotations, a conversion webhook and
//     its CA bundle.
//   - Who may not write can work: with the definitions that somebody else has applied. Who may not read them either, which takes a right for the
//     whole cluster, takes them as they are, and asks the API only whether their versions are served.
//   - EnsureCreated returns nil only when the API serves the objects.
//   - A failure is tried again as the given backoff says, until the context ends; what can't succeed, such as names that
//     another definition has taken, is returned at once as a *backoff.PermanentError.
package crdclient
