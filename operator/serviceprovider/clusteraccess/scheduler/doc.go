// Package scheduler answers ClusterRequests: it binds each to a Cluster that is for the purpose, has the labels, answers, and has room. It
// is two frameworks, for any operator to run:
//
//	New: func(_ context.Context, d *operator.Dependencies) ([]*framework.Framework, error) {
//		return scheduler.New(d, namespaces.Layout{})
//	},
//
// The Clusters are in a namespace of the platform's own, and the requests in those of the service providers, all of which an operator with a
// scheduler has to look at: it counts. A request anywhere else is denied, and nobody gets a Cluster by it.
//
// # Promises
//
//   - Of the Clusters that fit, the one with the fewest requests is taken, and of these the first by name: the same world gives
//     the same answer, and a plan tells it.
//   - A Cluster gets no more requests than its capacity. One that is being deleted, or whose condition Ready is False, gets none.
//   - A request that is bound stays bound to that Cluster. One that is not waits, in the phase Pending, with a reason that
//     says what there is and why it does not fit, and is bound as soon as there is something.
//   - One scheduler answers a request, and one gives a Cluster away and counts its requests: the first one that finds it, as the
//     annotation operatorkit.io/claimed-by of the request says, and usage.operatorkit.io/claimed-by of the Cluster. Others do nothing for
//     it, with an event that names who has it; one that was renamed takes it over. Who takes the annotation off gives it to another one,
//     provided that the first one does not run any more.
//   - A ClusterRequest that is deleted stays until no AccessRequest refers to it, and a Cluster until nothing is bound to it;
//     their conditions and events say what they wait for.
//
// # Permissions
//
// In the namespaces of the operator: ClusterRequests (get, list, watch, patch, and patch of the status), AccessRequests (get, list,
// watch), events (create, patch). In that of the Clusters: Clusters (get, list, watch, patch, and patch of the status), events (create,
// patch).
package scheduler
