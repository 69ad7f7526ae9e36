// Package members keeps a ring of replicas (package ring) on an API server, by nothing but Leases of coordination.k8s.io and compare-and-swap.
//
// Each replica has a Lease, which it renews, and in which it says what it can carry, which table it follows and what its objects weigh.
// One more Lease holds the table, and each replica that Config.Leads writes it:
//
//	website-operator-shards              the table          annotation operatorkit.io/shards
//	website-operator-shards-3f0c…        a replica          annotation operatorkit.io/shard-member, label operatorkit.io/shards
//
// # Promises
//
//   - A replica may work on what its Holder lets it begin, while its fence is open. Config.Renewed opens that: it closes by itself before
//     LeaseDuration after the renewal was begun, whatever the process and its clock do.
//   - A Lease that was not renewed for its duration, by the clock of a leader that has seen it for so long, is deleted, if it is still the one
//     that was seen. That is the end of the replica: it never makes another one, and Run returns what wraps ErrLost.
//   - Several leaders at once do no harm, nor one that was paused: what they write is refused unless it follows from the table that is there,
//     and what they know of replicas was read after that.
//   - A replica that is to stop works on until others have what it had, as far as there are any. Then it ends its work, and deletes its Lease.
//   - Somebody who deletes the table ends all work that it allowed, once every replica has seen that; then it is shared out anew.
//   - Every decision is made on what a quorum answers. Watches only wake.
//
// A replica writes once in RetryPeriod, and each time it has something to confirm. It reads the table as often, and a leader the Leases too.
package members
