// Package slots decides which of several replicas works on which objects. It sends no requests and reads no clocks.
//
// Objects are divided into [Count] slots by their namespace, or by their name if they have none. What the
// replicas know is a [Ring]: the replicas that exist, and who holds each slot. It is kept in Leases, one for
// each replica and one for each slot, which are written by compare-and-swap only:
//
//	claim      a replica writes itself as the next holder, and begins to list the objects of the slot
//	ready      it has listed them
//	release    the holder begins nothing more in the slot, finishes what is under way, and makes the next one the holder
//	take       a replica makes itself the holder of a slot whose holder does not exist
//
// # Promises
//
//   - Who may work in a slot follows from its Lease alone ([Ring.Owned]): its holder, until the next one is ready.
//     Every write of a slot follows from the state that it replaces, so a replica may act on an old state: its write
//     is refused.
//   - A replica never exists again once its Lease is gone. A Lease that has expired is deleted, if nobody has renewed
//     it, before its slots are taken. By then the fence of the replica is closed.
//   - Every replica computes the same distribution, and writes its own part of it. There is no leader.
//   - No slot moves unless its holder leaves, or has at least two slots more than another replica.
package slots
