// Package natsinformer makes the entries of a NATS JetStream key-value bucket an [informer.Source], and gives a typed view
// of them.
//
// An entity is a struct that embeds [Meta]. A [Bucket] reads and writes entities; a [Source] follows them.
//
//	type Gateway struct {
//		natsinformer.Meta `json:"metadata"`
//		Hosts             []string `json:"hosts"`
//	}
//
//	bucket, err := natsinformer.NewBucket(natsinformer.BucketConfig[*Gateway]{JetStream: js, Name: "gateways"})
//	source, err := natsinformer.NewSource(natsinformer.SourceConfig[*Gateway]{Bucket: bucket, Logger: logger})
//	go source.Run(ctx)
//	err = source.WaitForSync(ctx)
//	gateway, exists, err := source.Lookup("eu/main")
//	gateway.Hosts = append(gateway.Hosts, "example.com")
//	err = bucket.Update(ctx, gateway) // a conflict if somebody else was faster
//
// # Promises
//
//   - Writes compare: none replaces or removes another state than the one that was read.
//   - The store is the bucket, with every change announced in order, as long as the connection holds; after an outage of
//     any kind and length, whatever happened meanwhile, it is again, and what changed is announced. The whole bucket is listed
//     then and compared.
//   - An outage shows in Status at once when the connection ends, and after ProbeInterval when it has only fallen silent. The
//     store stays as it is meanwhile. That is also so when the bucket is not there, or not there any more: the source is
//     stale and waits for it, and deletes nothing. A bucket that is made anew is believed: what is not in it is deleted.
//   - A listing that may be incomplete is thrown away.
//   - What is read is never older than what was shown or written (R11), on replicated buckets too: see Replicas.
//   - An entry that can't be decoded makes Get fail, with [ErrUndecodable] in the chain, for its key only. Events for it go on,
//     with the last entity that could be decoded, or with one that has a name and nothing else; its DecodeError says why.
//     Entries that can't be decoded are counted, and logged once.
//
// The connection is the caller's. Have it reconnect for ever (nats.MaxReconnects(-1)): by default the client gives up after 60 attempts and
// closes it. Then Run returns an error, and an operator that runs the source ends. A connection that may come to that is told of in the log
// when the source starts. nats.PingInterval decides how soon it takes notice of a server that has fallen silent.
//
// # Replicas
//
// A bucket with Replicas of 3 is kept by three servers, one of which leads and takes the writes. The others, and mirrors of the bucket, may
// be behind, and a "direct get" (KeyValue.Get of the client library, which every bucket allows by default) is answered by any of them:
//
//   - [Bucket.Get], [Source.GetLive] and whatever else reads an entry ask the leader instead, by STREAM.MSG.GET, which an account with
//     narrow permissions must allow for the bucket's stream. This is about twice the work of a direct get, and less than any write.
//   - A leader may be behind too, when it was elected a moment ago or does not know yet that it leads no more. What it answers is compared
//     with what a running Source of the bucket has shown of the key, or was written through the Bucket: the answer has to have that
//     revision or a later one. While it has not, it is asked again, for BucketConfig.CatchUpTimeout at most; then there is an error,
//     with [ErrBehind] in its chain, never an old state and never "not found".
//   - The watch of a Source may come from a server that is behind. Its listing counts when it has reached the newest entry that the leader
//     had, and is thrown away for up to BucketConfig.CatchUpTimeout if it has an entry in an older state than was seen and has not come as
//     far as that. A change comes when that server has it.
//   - Open the bucket itself, not a mirror of it. A mirror in the account of its origin is refused: it has no entries under its own name.
//     One in another domain is as far behind as its connection.
//   - A bucket that gets entries from others, as a mirror or by Sources, is listed once its server has reached all of them and has all
//     of their messages. A bucket whose stream has messages that are no entries of it is not synced: an operator would take what these
//     messages are for deleted.
//
// Who reads a bucket by the client library, and decides by what was read that nothing is to be done, may decide by a state that is older than
// the event it follows.
//
// # Own writes
//
// What is written through a Bucket is in the stores of its sources when the write returns, as the watch will show it, and a reconciliation is
// not woken by what it has written itself: see the drawing in package informer. Every write names the revision that it replaces, and has the
// server say which one it was given; a marker has a revision like a value. So a change of somebody else in between is noticed also where the
// bucket keeps no history and the watch leaves it out, and wakes.
//
//   - Source and writer have to have the same Bucket: what is written through another one of the same name counts as somebody else's. So does
//     what was written when the answer is lost.
//   - A write to a bucket that may have been made anew since it was listed, because it was given a revision that is known already, has the
//     bucket listed before it returns, for BucketConfig.CatchUpTimeout at most. When that is not enough it is logged.
//   - Otherwise a bucket that was made anew is noticed by the next probe.
//
// # Deletion
//
// Entries have no finalizers that a server respects. There are three ways in which they go, and what each guarantees is
// this, if the entities are reconciled by a framework:
//
//	way                          the deletion is processed           ... also if it happened while the operator was down
//	RequestDeletion              always, with the entity as it is    yes: the entry stays until it was processed
//	Delete, or `nats kv del`     with the last known state           if the bucket has History of 2 or more
//	Purge, `nats kv purge`,      with the last known state           no
//	PurgeDeletes, time to live
//
// RequestDeletion sets a timestamp in the entry. The framework processes the deletion and has [Source.Remove] purge the
// entry, unless there are finalizers of others in its metadata. A plain deletion leaves a marker in the bucket and, with
// History, the last value beside it: a source that starts later, or was out of contact, announces it as Deleted, and repeats to new
// subscribers every deletion whose marker is there still. Remove purges marker and history, so that this ends once the
// deletion was processed; a purge by anybody, or a new entry of that key, ends it too. A purge leaves nothing but a marker of
// its own, which stays for ever unless the bucket has a LimitMarkerTTL. That is worth having: markers that have expired cost nothing. Of
// entries that vanish without a trace meanwhile (direct deletions in the stream), no more can go unnoticed until the next Relist than there are
// markers which have not expired.
// Where the newest message of a key vanishes and leaves one before it, the older value is shown again at the next Relist.
//
// The last states of what was deleted are held in memory as long as the markers are there. A source of secondaries does without that: see
// [Source.ForgetDeleted], which package natscontroller calls for them.
//
// A time to live that a client has given to an entry (jetstream.KeyTTL) ends with the first write through a Bucket, because the server
// keeps it with the message and not with the key. That of the bucket holds for every value.
//
// All of this is for one operator on a bucket of primaries: what processes a deletion first removes the entry, or its marker. Another
// operator that runs sees it go and processes it with the last known state; one that is down does not. Where there are several, each
// puts a finalizer of its own into the metadata of the entries, takes it off when it has cleaned up, and deletions are asked for.
//
// What is left of deletions that nobody saw has to be collected by other means, such as GarbageSecondaries of package
// natscontroller.
//
// # Limits
//
// What exceeds a limit is a permanent error of its key, and harms nothing else:
//
//   - a key with which no message can be sent, which is known before it is sent: a server closes the connection of a client that
//     exceeds its max_control_line, for which the default of 4,096 is assumed ([ErrTooLarge]);
//   - a value beyond the max_payload of the server or the MaxValueSize of the bucket, with both sizes ([ErrTooLarge]);
//   - a write to a bucket that is full ([ErrFull]). Status of its sources says so as Degraded until there is room, and /readyz fails.
//
// An entry can be removed from a full bucket all the same. Purge then removes the values first, and puts the marker into the room that
// this makes, if it can. Delete, and what is written to an entry that is being deleted, drop the earlier values of the key. A deletion can't
// be requested, and an entry of a bucket with a history can't be deleted, where there is no room even then: purge entries.
package natsinformer
