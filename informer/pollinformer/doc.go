// Package pollinformer provides an [informer.Source] of anything that can be listed: machines of a
// cloud, rows of a table, files of a folder.
//
//	machines, err := pollinformer.New(pollinformer.Config[Machine]{
//		Name:     "machines",
//		List:     cloud.Machines, // func(context.Context) (map[informer.Key]Machine, error)
//		Interval: time.Minute,
//		Logger:   logger,
//	})
//	go machines.Run(ctx)
//
// # Promises
//
//   - A thing is announced as Updated when its version changes. The default version is a hash of
//     its content as JSON: the same content causes no events.
//   - A thing that is no longer listed is announced as Deleted once, with its last known value.
//   - Changes by the operator through Write and Delete are visible to reads as soon as these
//     return. They wake all objects except the one that they were written for. A List that started
//     before does not revert them, and changes to them by other clients before the next List are
//     detected. Changes that bypass Write and Delete are found by List, like those of other
//     clients.
//   - Before a deletion is acted on, the thing is read once more (GetLive), by Get or by another
//     List: a thing that a list lacked although it exists comes back. All things of one key count
//     as the same thing, unless their values have UIDs (informer.Meta).
//   - If List fails, panics or takes too long, the source becomes stale, which its Status reports.
//     Nothing is deleted, and the next interval tries again.
package pollinformer
