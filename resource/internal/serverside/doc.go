// Package serverside has what those share who apply objects by server-side apply: how an object is written, when one is as it
// should be without asking the API server, what of it counts, and what may be told of an answer about a sensitive one.
//
//	if serverside.Covers(have.Object, want.Object) {
//		return nil                                             // nothing to ask, nothing to write
//	}
//	applied := want.DeepCopy()
//	applied.SetUID(have.GetUID())                                  // another object of its name is a conflict
//	err := serverside.Apply(ctx, c, applied, client.FieldOwner("me"), client.DryRunAll)
//	fields := plan.Diff(serverside.Stable(have.Object), serverside.Stable(applied.Object))
package serverside
