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
//   - An entry that can't be decoded makes Get fail, with [ErrUndecodable] in the chain, for its key only. Events for it go on,
//     with the last entity that could be decoded, or with one that has a name and nothing else; its DecodeError says why.
//     Entries that can't be decoded are counted, and logged once.
//
// The connection is the caller's. Have it reconnect for ever (nats.MaxReconnects(-1)); nats.PingInterval decides how soon
// it takes notice of a server that has fallen silent.
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
// History, the last value beside it: a source that starts later announces it as Deleted, and it repeats to new
// subscribers every deletion whose marker is there still. Remove purges marker and history, so that this ends once the
// deletion was processed; a purge by anybody, or a new entry of that key, ends it too. A purge leaves nothing but a marker of
// its own, which stays for ever unless the bucket has a LimitMarkerTTL.
//
// All of this is for one operator on a bucket of primaries: what processes a deletion first removes the entry, or its marker. Another
// operator that runs sees it go and processes it with the last known state; one that is down does not. Where there are several, each
// puts a finalizer of its own into the metadata of the entries, takes it off when it has cleaned up, and deletions are asked for.
//
// What is left of deletions that nobody saw has to be collected by other means, such as GarbageSecondaries of package
// natscontroller.
package natsinformer
