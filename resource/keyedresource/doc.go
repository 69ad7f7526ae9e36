// Package keyedresource is a ready-made resource: things in an external system that belong to one
// primary object, such as the records of a DNS zone, the buckets of a cloud, or the users of a
// database.
//
// The author says what is there, what should be, and how one thing is put and deleted. The resource
// does the rest:
//
//	records, err := keyedresource.New(keyedresource.Config[*corev1.Service, dns.Record]{
//		Name: "records", Logger: logger,
//		Current: func(ctx context.Context, _ *corev1.Service) ([]dns.Record, error) { return zone.List(ctx) },
//		Desired: func(ctx context.Context, s *corev1.Service) ([]dns.Record, error) {
//			return []dns.Record{{Host: s.Name, Address: s.Spec.ClusterIP, Owner: keyedresource.Mark(ctx)}}, nil
//		},
//		Key:    func(r dns.Record) string { return r.Host },
//		Mark:   func(r dns.Record) string { return r.Owner },
//		Put:    func(ctx context.Context, _ *corev1.Service, r dns.Record) error { return zone.Put(ctx, r) },
//		Delete: func(ctx context.Context, _ *corev1.Service, r dns.Record) error { return zone.Delete(ctx, r.Host) },
//		Poll:   time.Minute,
//	})
//
// Send the requests through the fence of the operator (operator.Dependencies.HTTPClient,
// operator.Fence), so that a replica that has lost its lease sends none, and in tests through
// operatortest.TransportOf, so that the operator can be crashed at each of them.
//
// # Whose things
//
// There are three ways to know, by what the system can do:
//
//   - It can hold a mark, in a tag or a comment: Desired writes the one that [Mark] tells, and
//     Config.Mark reads it. It names the operator, the framework, the resource and the primary. A
//     thing that is desired and has no mark is refused with a [RefusedError], unless Config.Adopt
//     is set; one with another mark is refused in any case. Nothing is deleted that does not have
//     the mark. Things with the mark of a former name of the operator, the framework or the
//     resource are taken over in their place: the plan says so.
//   - It can't, but it can be asked by key: with Config.Journal, the keys of things are in an
//     annotation of the primary from before they are put until they are gone. What was made before
//     a crash is found again by them. What is desired, exists, and is not in the journal is
//     refused, unless Config.Adopt is set. Only what somebody else makes under a key between the
//     writing of the journal and the put of the thing is taken for the resource's. The journal in a
//     copy of a primary, under another name or in another namespace, says nothing about the copy.
//     After a restore, where a primary has its name and a new UID, what it desires of its journal is
//     taken over, and nothing else of that is deleted: it may be another's by now, or still be that
//     of the primary that was backed up, if that lives in another cluster. Who may write the annotations of a primary may write
//     its journal.
//   - It can't, and Current knows by itself what belongs to the primary, for example all in a
//     folder of its name. Then that is what the resource changes and deletes.
//
// # Promises
//
//   - A patch lists the things to put, as creations and updates, and those to delete, with the
//     fields that change. There is no patch when nothing changes. Computing patches writes nothing.
//   - Values of sensitive fields appear in no state, change or log line, nor, from eight characters
//     on, in the errors of Put and Delete.
//   - Each thing fails alone: its error is joined with those of the others, which are put all the
//     same, unless the system does not answer. While something that is desired is refused or can't
//     be put, nothing is deleted.
//   - What others change is put right: at the next reconciliation, at the latest after Config.Poll.
//   - A crash between any two requests leaves nothing behind that is not found again. A thing that
//     was put and not acknowledged is put once more if it is not as desired.
//   - The journal is written with the UID and the resource version of the primary that was read: it
//     is a conflict (apierrors.IsConflict) if somebody else has written that, and everything is
//     computed anew. A journal takes one more request in each reconciliation, and one in each that
//     makes or deletes things. An annotation has room for some thousand keys.
//   - What was made for a primary that is gone is deleted by the last known state of its journal,
//     and nothing is put for it.
//
// A resource is safe for concurrent use for different primaries. Things that Current, Get and
// Desired return are not changed.
package keyedresource
