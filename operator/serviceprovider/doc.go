// Package serviceprovider runs services that are offered as APIs across clusters: a user creates an object in the onboarding
// cluster, the provider's configuration and its Secrets are in the platform cluster, and the work is done in the user's managed
// control plane (MCP) and, where asked for, in a workload cluster. What is the same for all providers is done here. The author
// writes a [Reconciler], two functions:
//
//	access, err := clusteraccess.NewProvider(clusteraccess.ProviderConfig{ … })
//	r, err := serviceprovider.NewAPIReconcilerBuilder[*v1alpha1.Postgres, *v1alpha1.ProviderConfig]().
//		PlatformCluster(platform).OnboardingCluster(onboarding).ClusterAccessReconciler(access).
//		EmptyObjectProvider(func() *v1alpha1.Postgres { return &v1alpha1.Postgres{} }).
//		ProviderConfig(&v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "postgres"}}).
//		WorkloadCluster(true).Reconciler(&postgres{}).Build()
//	err = mgr.Add(access)                             // it watches what is granted
//	err = r.SetupWithManager(mgr, "postgres", nil)    // nil: the controller watches the config itself
//	err = mgr.Start(ctx)
//
// Who is trusted with what is in docs/service-providers-threat-model.md.
//
// A provider that is made of resources gets plans, shadows and the page that shows what it does: see [FromResources].
//
// # Steps
//
// A reconciliation goes through these steps, and ends at the first that has something to wait for:
//
//  1. The object is read from the API server. One that has vanished is cleaned up, as described below. One that is paused, whose
//     [OperationAnnotation] says "ignore", or which is in none of the namespaces that are served, is left alone. A deletion is finished all the same where the namespace is left out by
//     APIReconcilerBuilder.NamespacePredicate, and not where it is left out by Namespaces: serve a namespace until its objects are gone.
//     "reconcile" is dropped from the annotation.
//  2. The config is read. Without one, or while it is being deleted, the object is Progressing, and nothing is retried: its
//     arrival reconciles all objects.
//  3. The object gets a finalizer for the access, and after step 4 another one for the work. Both are made of the name of the operator and
//     the kind (APIReconcilerBuilder.Operator); those of former names go in the same write.
//  4. Access to the clusters is asked for. While it is not granted the object is Progressing, with the reason why, and is looked
//     at again when the access provider says so, or, if that is an [AccessNotifier], tells of a change.
//  5. CreateOrUpdate is called, with a copy of the config and with a [ClusterContext].
//  6. The status is written, if it has changed: once, in one request, after an error too.
//  7. The object is looked at again after the author's RequeueAfter, else after the config's PollInterval.
//
// In a deletion, Delete is called until it succeeds, also without a config; then the finalizer for the work goes; then the
// access is taken away; then the other finalizer goes. While access is already going Delete is not called, nor for an object that was never
// given access to its clusters: CreateOrUpdate was not called for it either. A cluster that is gone for good is let go by [LetGoAnnotation].
//
// # Objects that vanish
//
// Users may remove finalizers. An object that lost one gets it back at once, unless it is being deleted, which the API forbids. One that has
// vanished, or is being deleted, without them is cleaned up by what is asked for in its name on the platform: where access was granted to its
// clusters Delete is called with the last state that this process has seen, or, after a restart, with an object that has a name and nothing
// else. Then the access is taken away. The platform ends the wait for a cluster that is gone for good by clustersv1alpha1.AbandonAnnotation.
//
// An object counts as gone when the onboarding cluster answers 404 for this very object and does not list it. A kind or version that is not served
// any more takes nothing away. When more than five objects vanish in a row, the onboarding cluster may have lost them, or be the wrong one:
// the others keep their access, and each is an error ([ErrWithdrawalsStopped]) in the log and in the metric
// controller_runtime_reconcile_errors_total, until they are there again, or [WithdrawUntilAnnotation] on the config says to go on. A row
// ends an hour later.
//
// # Promises
//
//   - Delete has succeeded before access is taken away, and access is gone before the object is. How far a deletion has got is
//     told by the finalizers alone: a restart goes on where the last process ended.
//   - Only the status is written of what an author changes in an object, by a patch of what has changed: conditions and fields
//     of others, and those that the Go type does not know, stay. A conflict is no error. Of two operators that serve one object the
//     first one writes its status, as an annotation says, and the other one tells in events whose it is.
//   - No error is lost, neither the author's nor that of writing the status. A panic is an error of that object.
//   - Users are told nothing of the platform: in the status and in events there are no names of access requests and Secrets, and no
//     addresses. Of the errors of clients, and of what the runtime itself does with access, the kind is told, and the rest is in the log. What
//     an author says in other errors, also in those of the functions that say what to ask for, and in conditions, is told as it is.
//   - A change of the config, or of a Secret or ConfigMap that the author says it refers to ([SecretWatcher],
//     [ConfigMapWatcher]), reconciles all objects, no faster than APIReconcilerBuilder.ChangesPerSecond. It is not lost while an
//     API server does not answer. Changes of an object itself do not wait in this line.
//   - A cluster that does not answer holds up its own objects, for no longer than APIReconcilerBuilder.Timeout each time, and
//     their status names it.
//   - Of the objects the metadata is kept in memory, and, of those that CreateOrUpdate was called for, the last state.
//
// # Permissions
//
// In the onboarding cluster: the objects (get, list, watch, patch, and patch of the status), events (create, patch), the namespace kube-system
// (get), whose UID identifies the cluster; with a NamespacePredicate all namespaces (get, list, watch). In the platform cluster: the config (get, list, watch), Secrets and ConfigMaps of the namespaces that are watched (list, watch),
// AccessRequests (patch, to let go of a cluster), and what the access provider needs.
package serviceprovider
