// Package scheduler answers ClusterRequests: it binds each to a Cluster of its namespace that is for the purpose, has the
// labels, answers, and has room. It is two frameworks, for any operator to run:
//
//	New: func(_ context.Context, d *operator.Dependencies) ([]*framework.Framework, error) { return scheduler.New(d) },
//
// # Promises
//
//   - Of the Clusters that fit, the one with the fewest requests is taken, and of these the first by name: the same world gives
//     the same answer, and a plan tells it.
//   - A Cluster gets no more requests than its capacity. One that is being deleted, or whose condition Ready is False, gets none.
//   - A request that is bound stays bound to that Cluster. One that is not waits, in the phase Pending, with a reason that
//     says what there is and why it does not fit, and is bound as soon as there is something.
//   - A ClusterRequest that is deleted stays until no AccessRequest refers to it, and a Cluster until nothing is bound to it;
//     their conditions and events say what they wait for.
//
// # Permissions
//
// ClusterRequests and Clusters (get, list, watch, patch, and patch of the status), AccessRequests (get, list, watch), events
// (create, patch).
package scheduler
