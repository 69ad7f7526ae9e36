// Package deploymentresource is a CRUD resource whose state is the containers of a service on machines (see package deployment):
// its patch is the plan that brings them to a specification, and a plan of the framework shows each operation, container by
// container.
//
//	compute := func(ctx context.Context, obj *v1alpha1.Shop) (*deploymentresource.Work, error) {
//		service := deploymentresource.Service{Client: engines, Spec: specOf(obj), Strategy: &deployment.CanaryStrategy{}}
//		if obj.DeletionTimestamp != nil {
//			return deploymentresource.Removal(ctx, service)
//		}
//		return deploymentresource.Plan(ctx, service)
//	}
//	containers, err := deploymentresource.New(deploymentresource.Config[*v1alpha1.Shop]{Logger: logger, Compute: compute})
//
// # Parts of the patch
//
// A plan that only makes what was not there is the create part, one that only takes away is the delete part, and every other one
// is the update part as a whole, because its operations keep to an order. Package updateallowedcontext works accordingly.
//
// # Whose containers are
//
// Containers carry the names of the operator, the framework and the resource, and belong to a service of these alone. After one of them
// was renamed (FormerNames) the containers stay as they are, and a note of each plan says which were taken over, until they are replaced
// for another reason. A resource is split by its services: each belongs to the one that plans it. Whoever looks at containers elsewhere
// does so with a context that says whose they are: identity.NewContext, api.WithResource.
//
// # Promises
//
//   - What is carried out is the plan that was shown. Right before it is looked whether what it depends on is still so; otherwise nothing
//     is done, and the error is deployment.ErrStalePlan with what has changed, for which apierrors.IsConflict holds: the framework computes
//     anew.
//   - The deletion of a primary removes all containers of its service, and keeps the finalizer as long as there may be one: on a
//     machine that can't be seen, too, until the operator of the cluster says that it is gone for good. Volumes and images stay.
//   - What waits, and what is left alone, are notes of the plan.
//   - After a plan was carried out the primary is looked at again at once.
//   - Nothing that is marked as secret is in a plan, a log or an error.
//
// A resource is safe for concurrent use for different primaries.
package deploymentresource
