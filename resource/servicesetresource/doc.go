// Package servicesetresource is a CRUD resource whose state is the ServiceSets of a cluster, service by service: a plan of it
// reads "cert-manager 1.14.2 → 1.15.0 (step 1 of 3 to 1.17.1)" and "kof-storage waits for cert-manager".
//
//	compute := func(ctx context.Context, cd *v1alpha1.ClusterDeployment) ([]serviceset.OwnerOperation, error) {
//		return serviceset.ComputeClusterOperations(ctx, reader, systemNamespace, cd)
//	}
//	sets, err := servicesetresource.New(servicesetresource.Config[*v1alpha1.ClusterDeployment]{
//		Client: c, Logger: logger, Compute: compute,
//	})
//	check, err := servicesetresource.NewCheck(servicesetresource.CheckConfig[*v1alpha1.ClusterDeployment]{
//		Compute: compute,
//	})
//	set, err := framework.NewResourceSet(framework.ResourceSetConfig{
//		Handles: handles, Logger: logger, Resources: []framework.Resource{sets, check},
//	})
//
// The framework has to watch ServiceSets and all else that Compute reads: whatever is waited for is waited for by watching.
//
// # One write for a set, one change for a service
//
// A ServiceSet is written in one request, so that a state manager never sees half of a decision. Its plan and its log
// have a change for every service that is added, changed or taken away, with the words of its decision; and one for the set
// itself when that is created or deleted, or changes beside its services. The notes of the plan say which services wait or are
// blocked, and why. A service is named by its namespace and name on the cluster, and by the MultiClusterService that it comes
// from, if it comes from one: several sets of a cluster may change at once.
//
// In an update, all writes are the update part of the patch, because a part that fails ends the patch: a set that the API
// server does not take must not keep the others from theirs. Where an author forbids updates (package
// updateallowedcontext), each is in the part it belongs to.
//
// # What an owner has to mend
//
// What is wrong with one owner, such as services that depend on each other, keeps its set as it is; the sets of the others are
// written. It is not an error of this resource, which would end the reconciliation before what comes after it, but a
// note of its plan, and the error of [NewCheck]: a resource that changes nothing, and is put behind all others. Thus plan and
// reconciliation do the same and fail in the same place.
//
// # Promises
//
//   - Nothing is written where Compute says that there is nothing to do.
//   - A set that changed, appeared, vanished or was replaced since the patch was computed is a conflict, for which
//     apierrors.IsConflict holds: nothing is lost, and the framework computes anew. Updates and deletions name the UID and the
//     resource version.
//   - Sets carry no mark of an operator: they are those of the primary. Package operator/servicesets has one operator claim each primary
//     before this resource runs; who uses the resource elsewhere sees to it that no two operators have the same primaries.
//   - The status of a set is never written, nor what Compute leaves as it is.
//   - A primary that is being deleted keeps its finalizer as long as Compute knows of a set.
//
// A resource is safe for concurrent use for different primaries. What Compute returns is not changed.
package servicesetresource
