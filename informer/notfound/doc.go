// Package notfound decides when an object counts as gone because a request for it was answered 404.
//
// 404 has many senders beside the API server that looked for the object: proxies and load balancers, an extension API server that
// starts, a webhook. Who takes any of them for an answer leaves a finalizer where it is, or an object behind that nobody deletes
// any more. A client from this package passes a 404 on unchanged only if its details name the object that was asked for, or its namespace: an
// API server that serves the kind has looked for it.
//
// Everything else is an [ErrDoubtful], for which apierrors.IsNotFound does not hold, so that whoever lets 404 pass returns it as
// the error that it is, and tries again. That includes a kind or a version that is not served any more: its objects may be stored still, and
// come back with the definition. For a kind that is served in no version meta.IsNoMatchError holds too, for those who know
// that there can be nothing of it.
//
//	c := notfound.Checked(config.Client)
//	err := client.IgnoreNotFound(c.Delete(ctx, obj)) // nil: it is gone
//
// What no object is gone by is not checked: creating, applying, watching, and subresources other than the status.
package notfound
