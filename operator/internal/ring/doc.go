// Package ring says which replica of an operator owns which part of the objects. It talks to nobody and has no clock: the same
// functions run against a real API server and in a simulation of a hundred replicas.
//
// Every object has a [Hash], of its namespace or of its UID, which is the one by which an API server filters lists and watches
// (ListOptions.shardSelector). A [Table] cuts the space of hashes into ranges and says who owns each. The leader alone computes a new
// one, by [Table.Step], from the former one and from what the replicas say of themselves; each replica follows it with a [Holder]:
//
//	                     leader                                     replica A                    replica B
//	table 7: A owns it   Step: B is to have it
//	table 8: from A to B ---------------------------------------------------------------------> lists it
//	                     <------------------ "listed" ----------------------------------------- (in its lease)
//	table 9: B knows it  ------------------------------------------> begins nothing more in it
//	                                                                 its last work in it ends
//	                     <------------------ "given, and done" ----- (in its lease)
//	table 10: B owns it, and what A has done --------------------------------------------------> begins
//
// A has worked in it until B knew what is there, so that B sees whatever happens from then on, and what A has done meanwhile is told.
// A member that is about to end gives away all that it has like that.
//
// # What is promised
//
// At no time may two replicas work on the same hash, provided that
//
//   - a table replaces only that from which it was computed (compare-and-swap), within one life of the object that holds it;
//   - a member that is not given to Step has ended: its lease is gone, no earlier than its own fence has closed its writes, and it never
//     makes a new one under the same name;
//   - a replica that has heard of a table hears of no older one;
//   - a replica works on a hash between Begin and End of its Holder, and only while its own fence is open.
//
// Nothing else is relied on: tables and confirmations may arrive late or not at all, two leaders may compute at once from what was true
// some time ago, and the table may be deleted by hand.
//
// # Who gets what
//
// The hash of the API server is FNV-1a, under which names that differ in their last letters lie side by side. Boundaries therefore follow
// the objects that were seen (see [Weigh]) and lie on hashes of objects. What has lost its owner is shared out, who has too little gets
// something of those who have most, and everything else stays where it is. While replicas of several versions run, as in a rollout,
// only those of the newest one get anything, so that nothing moves from one that is about to end to the next one of its sort.
package ring
