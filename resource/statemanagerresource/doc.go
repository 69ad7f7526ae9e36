// Package statemanagerresource is a CRUD resource whose state is what a state manager has to do for the services of a set:
// a plan of it shows what would change on the cluster, object by object.
//
//	compute := func(ctx context.Context, set *v1alpha1.ServiceSet) (*statemanager.Set, *statemanager.Work, error) {
//		…                                     // gather what the set is about, and ask the manager
//		work, err := manager.Compute(ctx, s)
//		return s, work, err
//	}
//	services, err := statemanagerresource.New(statemanagerresource.Config[*v1alpha1.ServiceSet]{
//		Manager: manager, Logger: logger, Compute: compute,
//	})
//	check, err := statemanagerresource.NewCheck(statemanagerresource.CheckConfig[*v1alpha1.ServiceSet]{
//		Compute: compute,
//	})
//	set, err := framework.NewResourceSet(framework.ResourceSetConfig{
//		Handles: handles, InitCtx: rememberCompute, Logger: logger, Resources: []framework.Resource{status, services, check},
//	})
//
// A resource that writes the status of the set comes before it: package statemanager says why. Compute should give all of them
// the same answer in one reconciliation.
//
// # One operation for a service
//
// Operations are carried out in their order, each by Manager.CarryOut. In an update all of them are the update part of the
// patch, because a part that fails ends the patch; where an author forbids updates (package updateallowedcontext), those that
// only create or only delete are still carried out. In a deletion all are the delete part.
//
// An operation that fails does not keep the others from theirs: all errors are returned at the end, each with the name of its
// service. Once an operation has succeeded, the set is looked at again at once, because only another Compute sees what became of
// it; what failed is tried again with the framework's backoff.
//
// What can't even be worked out (Operation.Err) is a note of the plan, and the error of [NewCheck]: a resource that changes
// nothing and is put behind all others, so that plan and reconciliation fail in the same place.
//
// # Promises
//
//   - Nothing is carried out where Compute says that there is nothing to do.
//   - What an object has become since Compute is for CarryOut to notice. When all that failed are conflicts, for
//     which apierrors.IsConflict holds, so is the error: nothing is lost, and the framework computes anew.
//   - An error of CarryOut that is permanent is tried once more: only the next Compute can tell of it in the status. From then
//     on it is the Err of the operation, and waits for a change.
//   - A set that is being deleted keeps its finalizer while Work.Left.
//   - Work.Requeue is kept to, also when something fails.
//
// A resource is safe for concurrent use for different primaries. What Compute returns is not changed.
package statemanagerresource
