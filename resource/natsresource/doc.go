// Package natsresource is a ready-made resource: any set of entries of a NATS bucket that belongs to one primary object.
//
// A function says which entries should be there. The resource creates them, puts changes and drift right, and deletes
// those that are no longer desired:
//
//	source, err := natsinformer.NewSource(natsinformer.SourceConfig[*Route]{
//		Bucket: bucket, Logger: logger, Indexers: natsresource.OwnerIndexers(),
//	})
//	routes, err := natsresource.New(natsresource.Config[*Gateway, *Route]{
//		Name: "routes", Kind: "Gateway", Bucket: bucket, Source: source, Logger: logger,
//		Desired: func(ctx context.Context, g *Gateway) ([]*Route, error) {
//			return []*Route{{Meta: natsinformer.Meta{Name: g.Name}, Host: g.Spec.Host}}, nil
//		},
//	})
//	watch := framework.Watch{Source: source, Map: natsresource.OwnerMap("Gateway")}
//
// The watch is needed: it runs the source, from which the current state is read, and makes changes of the entries
// reconcile their primary.
//
// # Whose entries
//
// Every entry is marked by the kind and the key of its owner, in its metadata, and by two annotations, of which
// [MadeByAnnotation] names the operator, the framework and the resource that made it. It belongs to one resource of one framework of one
// operator, for one primary. An entry that exists and has no such mark is refused with a [RefusedError], unless
// Config.Adopt is set; one that is marked by somebody else, in a form that is not known, or can't be decoded, is refused in any
// case, and the error says whose it is. A copy of an entry under another key belongs to nobody. Only what is the resource's own is
// deleted; an entry that somebody has made undecodable is not, because nobody can tell whose it is.
//
// What was made under a former name of the operator, the framework, or the resource (Config.FormerNames), is the resource's own
// too: it is taken over by one write in its place, which the plan shows as an update, "taken over from" whom.
//
// # Promises
//
//   - A patch lists the entries to create, to update and to delete, with the fields that change. There is no patch when
//     nothing changes. Computing patches writes nothing, and sends no request.
//   - All that Desired returns is kept as it says, but for what Config.Keep carries over. In the metadata, conditions,
//     labels, annotations and finalizers that others set are left alone, and those that are no longer desired are taken
//     away. The generation counts the changes of everything but the metadata.
//   - Every write is a compare-and-set on the revision that was read, and goes through the Fence of the Bucket: what a leader
//     decided before a pause can't undo what the next one did. An entry that somebody else has written or deleted
//     meanwhile is a conflict (apierrors.IsConflict): the next reconciliation computes a new patch. Creating never touches
//     an entry that exists, updating never creates one.
//   - Each entry fails alone: one that is refused keeps no other from being created and updated, nor from being in the plan. The
//     errors are joined. Nothing is deleted before they are mended.
//   - The resource sees its own writes, which the source has when they return (R11), and they are no reason to reconcile the primary again.
//   - With finalizers, or Config.RequestDeletion, an entry is not purged but asked to go, and the deletion of the primary
//     waits for it. What is desired again meanwhile is made anew once it is gone.
//   - While the source is out of contact, the deletion of a primary is not finished: an entry may be there that it has not seen.
//   - Values of sensitive entries appear in no state, change, log line or error.
//
// A resource is safe for concurrent use for different primaries. What Desired returns is not changed.
package natsresource
