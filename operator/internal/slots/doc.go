// Package slots decides which of several replicas works on which objects. It sends no requests and
// reads no clocks.
//
// Objects are divided into [Count] slots by their namespace, or by their name if they have none. A
// [Ring] is what the replicas know: which replicas exist, and which of them holds each slot. It is
// stored in Leases, one for each replica and one for each slot. The Leases are written by
// compare-and-swap only:
//
//	claim      a replica writes itself as the next holder, and starts to list the objects
//	ready      it has listed them
//	release    the holder starts no more work, finishes its work, and passes the slot on
//	take       a replica makes itself the holder of a slot whose holder does not exist
//
// # Promises
//
//   - The Lease of a slot alone decides which replica may work in it ([Ring.Part]): the holder,
//     until the next holder is ready. Every write of a slot depends on the state that it replaces.
//     A replica may therefore act on an old state: its write is refused.
//   - A replica never exists again once its Lease is gone. An expired Lease is deleted, unless it
//     was renewed, before the slots of its replica are taken. By then the fence of the replica is
//     closed.
//   - Every replica computes the same distribution, and writes its own part of it. No replica
//     leads.
//   - A replica claims nothing more from replicas that exist before it has got what it claimed.
//   - No slot moves unless its holder leaves, or has at least two slots more than another replica.
package slots
