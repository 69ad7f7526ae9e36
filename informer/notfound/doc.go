// Package notfound decides whether a 404 means that an object is gone.
//
// Other components than the API server may answer 404: proxies and load balancers, an extension API
// server that is starting, a webhook. A caller that trusts any 404 may leave a finalizer in place,
// or leave behind an object that is never deleted. A client from this package passes a 404 on
// unchanged only if its details name the requested object or its namespace: then an API server that
// serves the kind has looked for it.
//
// Any other 404 becomes an [ErrDoubtful], for which apierrors.IsNotFound does not hold. So a caller
// that ignores a 404 returns this error, and retries. This includes a kind or a version that is no
// longer served: its objects may still be stored, and come back with the definition. If no version
// of the kind is served, meta.IsNoMatchError holds too, for callers that know that there can be no
// objects.
//
//	c := notfound.Checked(config.Client)
//	err := client.IgnoreNotFound(c.Delete(ctx, obj)) // nil: it is gone
//
// Requests that do not prove that an object is gone are not checked: creating, applying, watching,
// and subresources other than the status.
package notfound
