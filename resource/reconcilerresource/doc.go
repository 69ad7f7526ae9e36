// Package reconcilerresource makes a resource of a controller-runtime reconciler, so that code written for
// controller-runtime runs inside a framework as it is, beside new resources.
//
//	legacy, err := reconcilerresource.New(reconcilerresource.Config{
//		Name:       "legacy",
//		Reconciler: &WebsiteReconciler{Client: c},
//	})
//	resources := []framework.Resource{legacy, pages}
//
// # Promises
//
//   - Reconcile is called with the key of the object, for updates and for deletions. In a deletion a reconciler that
//     reads the object sees its deletion timestamp as long as a finalizer holds it, and does not find it otherwise.
//   - Result.RequeueAfter becomes the request of requeuecontext. In a deletion it says moreover that the clean-up is
//     not complete: the finalizer of the framework is kept.
//   - The deprecated Result.Requeue counts as a RequeueAfter of one second.
//   - An error marked by reconcile.TerminalError is permanent: framework.IsPermanent holds for it.
package reconcilerresource
