// Package carrier is the contract between the native state manager and those who put services onto clusters: package helm for
// charts, package manifest for kustomizations and manifests.
//
//	result, err := carrier.Compute(ctx, cluster, live, service)
//	…                                                  // the status tells result.Found, result.Health and result.Drift
//	if len(result.Changes) > 0 {
//		err = carrier.CarryOut(ctx, cluster, service, result)
//	}
//
// The state manager resolves what a carrier needs (the template, the values, what is fetched) and decides when a service may be
// put there or taken away; a carrier knows one service at a time, and how it is carried out.
//
// # Whose it is
//
// Everything that is put onto a cluster is marked (OwnerLabel, and in words OwnerAnnotation) with its Owner: the ServiceSet, and the
// Keeper, which is the state manager with its framework and its operator, and the management cluster that it works for. What carries
// the mark of another keeper is never changed or taken away; wanted, it is an error for which IsConflict holds and that says whose it
// is. What is of a former keeper (Service.Former), or of another ServiceSet of the same keeper, is taken over as it is.
//
// # Choices
//
// Server-side apply leaves what nobody has applied, so that the other branch of a choice stays (the rollingUpdate that a Deployment has by
// default, when its type becomes Recreate) and the object is refused. Applying takes it away in the same write that chooses the new
// branch, unless another field manager has applied it.
//
// What an API server never lets be changed, such as the pod template of a Job, is a permanent error, and is worked out again when the
// service or the object changes. Where the set names its kind in replaceKinds, the object is deleted and created anew. Before that the API
// server is asked by a dry run whether it would create it: if not, that is an error, and nothing is deleted. A quota is no reason against it.
// A change that is refused, of an object that would be created, is one that can't be made, whatever the API server says of it.
//
// # Creation
//
// A plan asks the API server by a dry run whether it would create what is not there. A refusal of what is in the object is an error of the
// plan: nothing is written. Where the definition of the object changes in the same plan, and the object is refused without that, the plan
// says [AfterDefinition] of it, and shows an update as it is known without the API server. Such objects, and those whose namespace is still
// to be made, are tried out as soon as that is there, before other objects are written. A missing right is an error of the plan, too. What is
// refused for another reason (a quota, a missing service account, a webhook that can't be reached or does not support dry runs) is none,
// because what comes before the object may change it.
//
// # Ignored differences
//
// What the service ignores (Service.Beside) is neither told as drift nor written: a field that another manager has, such as the replicas
// that an autoscaler sets, is left to it, and any other keeps the value that it has. It counts from the creation of an object on, which has what
// the template says. That a service ignores something else is no reason to put it there again. Marks are never ignored.
//
// # Items of lists
//
// An item of a list is known by its key, as a port of a Service by its number and protocol. Where somebody has changed a key by hand, there is
// another item, which is his and stays, with ours beside it. If the API server refuses the two, the service has failed until his is taken
// away.
//
// # Secrets
//
// Values of Secrets are in nothing that people read: a [Hider] finds them, in clear and in base64, in plans, notes, messages and errors. Short
// ones are found as whole values only.
//
// # Sync modes
//
// A carrier puts things right where the fingerprint differs, unless service.Config.SyncMode is DryRun, or OneTime and something was
// put there completely before. Drift is always told; with ContinuousWithDriftDetection it is among the Changes too.
// In the mode DryRun the Changes are what would be done, and the state manager does not carry them out.
package carrier
