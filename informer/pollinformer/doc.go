// Package pollinformer makes an [informer.Source] of anything that can be listed: machines of a cloud, rows of a table,
// files of a folder.
//
//	machines, err := pollinformer.New(pollinformer.Config[Machine]{
//		Name:     "machines",
//		List:     func(ctx context.Context) (map[informer.Key]Machine, error) { return cloud.Machines(ctx) },
//		Interval: time.Minute,
//		Logger:   logger,
//	})
//	go machines.Run(ctx)
//
// # Promises
//
//   - A thing is announced as Updated when its version changes, which is by default a hash of its content as JSON: the
//     same content gives no events.
//   - A thing that is no longer listed is announced as Deleted once, with its last known value.
//   - What the operator writes through Write and Delete is read as soon as these have returned, no List that began before sets it back, and
//     what others do to it before the next List is seen as a change. It wakes all but the object for which it was written. What is
//     written past them is found out by List, like what others write.
//   - A thing whose deletion somebody acts on is asked for once more (GetLive), by Get or by another List: one that a list lacked
//     although it is there comes back. Things have one life under a key, unless their values have UIDs (informer.Meta).
//   - When List fails, panics or takes too long, the source becomes stale, which its Status tells. Nothing is deleted,
//     and the next interval tries again.
package pollinformer
