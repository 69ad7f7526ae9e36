// Package natsinformer provides the entries of a NATS JetStream key-value bucket as an
// [informer.Source], and a typed view of them.
//
// An entity is a struct that embeds [Meta]. A [Bucket] reads and writes entities; a [Source]
// follows them.
//
//	type Gateway struct {
//		natsinformer.Meta `json:"metadata"`
//		Hosts             []string `json:"hosts"`
//	}
//
//	bucket, err := natsinformer.NewBucket(natsinformer.BucketConfig[*Gateway]{
//		JetStream: js, Name: "gateways",
//	})
//	source, err := natsinformer.NewSource(natsinformer.SourceConfig[*Gateway]{
//		Bucket: bucket, Logger: logger,
//	})
//	go source.Run(ctx)
//	err = source.WaitForSync(ctx)
//	gateway, exists, err := source.Lookup("eu/main")
//	gateway.Hosts = append(gateway.Hosts, "example.com")
//	err = bucket.Update(ctx, gateway) // a conflict if another client was faster
//
// # Promises
//
//   - Writes are conditional: a write replaces or removes only the state that was read.
//   - While the connection holds, the store equals the bucket, and every change is announced in
//     order. After an outage of any kind and length the whole bucket is listed and compared, and
//     the changes are announced.
//   - An outage is visible in Status at once if the connection ends, and after ProbeInterval if it
//     falls silent. The store is unchanged meanwhile. The same holds while the bucket does not
//     exist, or no longer exists: the source is stale, waits for it, and deletes nothing. A
//     recreated bucket is accepted: entries that it lacks are deleted.
//   - A listing that may be incomplete is discarded.
//   - Reads are never older than the state that was shown or written (R11), even on replicated
//     buckets: see Replicas.
//   - An entry that can't be decoded makes Get fail, with [ErrUndecodable] in the chain, for its
//     key only. Its events continue. They carry the last entity that could be decoded, or one with
//     nothing but a name; its DecodeError has the reason. Undecodable entries are counted, and
//     logged once.
//
// The connection is the caller's. Make it reconnect forever (nats.MaxReconnects(-1)): by default
// the client gives up after 60 attempts and closes it. Then Run returns an error, and an operator
// that runs the source ends. The source logs a warning at the start if its connection may give up.
// nats.PingInterval determines how soon the connection detects a silent server.
//
// # Replicas
//
// A bucket with 3 Replicas is stored by three servers. One of them leads and accepts the writes.
// The others, and mirrors of the bucket, may be behind. Any of them may answer a "direct get"
// (KeyValue.Get of the client library, which every bucket allows by default). Therefore:
//
//   - [Bucket.Get], [Source.GetLive] and all other reads of an entry ask the leader, by
//     STREAM.MSG.GET. An account with narrow permissions must allow it for the bucket's stream. It
//     costs about twice a direct get, and less than any write.
//   - A leader may be behind too, if it was just elected or has not noticed yet that it no longer
//     leads. Its answer is compared with the state of the key that a running Source of the bucket
//     has shown, or that was written through the Bucket: the answer must have that revision or a
//     later one. Otherwise it is asked again, for at most BucketConfig.CatchUpTimeout. Then the
//     read returns an error with [ErrBehind] in its chain, never an old state and never "not
//     found".
//   - The watch of a Source may come from a server that is behind. Its listing counts once it has
//     reached the newest entry of the leader. If it has an older state of an entry than was seen
//     and has not reached the seen revision, it is discarded, for up to
//     BucketConfig.CatchUpTimeout. A change arrives when that server has it.
//   - Open the bucket itself, not a mirror of it. A mirror in the account of its origin is refused:
//     it has no entries under its own name. A mirror in another domain is as far behind as its
//     connection.
//   - A bucket that copies entries from others, as a mirror or by Sources, is listed once its
//     server has reached all of them and has all of their messages. A bucket is not synced if its
//     stream has messages that are not entries: an operator would treat the objects of these
//     messages as deleted.
//
// A client that reads a bucket by the client library, and decides by the result that nothing is to
// be done, may use a state that is older than the event it follows.
//
// # Own writes
//
// A write through a Bucket is in the stores of its sources when it returns, in the same form that
// the watch will show later. A reconciliation is not woken by its own writes: see the drawing in
// package informer. Every write names the revision that it replaces, and the server returns the new
// revision; a marker has a revision like a value. So a change by another client in between is
// noticed and wakes, even if the bucket keeps no history and the watch omits the change.
//
//   - Source and writer must share one Bucket: a write through another Bucket of the same name
//     counts as another client's. So does a write if its answer is lost.
//   - If a write gets a revision that is known already, the bucket may have been recreated since it
//     was listed. The write then waits for another listing, for at most
//     BucketConfig.CatchUpTimeout. If that is not enough, it is logged.
//   - Otherwise the next probe notices a recreated bucket.
//
// # Deletion
//
// A server does not respect finalizers of entries. There are three ways to remove an entry. If a
// framework reconciles the entities, they guarantee:
//
//	way                       the deletion is processed         ... if the operator was down
//	RequestDeletion           always, with the current entity   yes: the entry stays until then
//	Delete, or `nats kv del`  with the last known state         if the bucket has History >= 2
//	Purge, `nats kv purge`,   with the last known state         no
//	PurgeDeletes, time to live
//
// RequestDeletion sets a timestamp in the entry. The framework processes the deletion and makes
// [Source.Remove] purge the entry, unless its metadata has finalizers of others. A plain deletion
// leaves a marker in the bucket and, with History, the last value. A source that starts later, or
// was out of contact, announces it as Deleted, and repeats to new subscribers every deletion that
// still has a marker. Remove purges marker and history once the deletion was processed, which ends
// the repetition; a purge by any client, or a new entry of the key, ends it too. A purge leaves
// only a marker of its own, which stays forever unless the bucket has a LimitMarkerTTL. Set one:
// expired markers cost nothing. If entries vanish without a trace meanwhile (direct deletions in
// the stream), at most as many can go unnoticed until the next Relist as there are unexpired
// markers. If the newest message of a key vanishes and an earlier one remains, the next Relist
// shows the older value again.
//
// The last states of deleted entities are kept in memory as long as the markers exist. A source of
// secondaries does not need them: see [Source.ForgetDeleted], which package natscontroller calls
// for them.
//
// A time to live that a client has given to an entry (jetstream.KeyTTL) ends with the first write
// through a Bucket, because the server keeps it with the message and not with the key. The bucket's
// own time to live applies to every value.
//
// All of this is for one operator on a bucket of primaries: the first one to process a deletion
// removes the entry, or its marker. Another running operator sees the removal and processes it with
// the last known state; an operator that is down does not. If there are several, each must put its
// own finalizer into the metadata of the entries and remove it when it has cleaned up, and
// deletions must be requested.
//
// Remains of deletions that were missed must be collected by other means, such as
// GarbageSecondaries of package natscontroller.
//
// # Limits
//
// An entry that exceeds a limit causes a permanent error for its key, and affects nothing else:
//
//   - a key that is too long to send a message, which is checked before sending: a server closes
//     the connection of a client that exceeds its max_control_line. The default of 4,096 is assumed
//     ([ErrTooLarge]);
//   - a value beyond the max_payload of the server or the MaxValueSize of the bucket, with both
//     sizes ([ErrTooLarge]);
//   - a write to a full bucket ([ErrFull]). Status of its sources reports Degraded until there is
//     room, and /readyz fails.
//
// An entry can still be removed from a full bucket. Purge then removes the values first, and writes
// the marker if there is room for it now. Delete, and a write to an entry that is being deleted,
// drop the earlier values of the key. Without room even then, a deletion can't be requested, and an
// entry of a bucket with a history can't be deleted: purge entries.
package natsinformer
