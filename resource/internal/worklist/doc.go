// Package worklist is for resources whose state is what there is to do: somebody else works that out, with what there was and what
// there is to be, and the resource shows it and carries it out.
//
//	type resource[O any] struct{ config Config[O] } // Name, GetDesiredState, NewUpdatePatch, NewDeletePatch, Apply
//
//	sets, err := worklist.New(config.Logger, &resource[O]{config})
//	check := worklist.NewCheck("service-owners", func(ctx context.Context, obj O) error {
//		…                                                           // work it out, and take the faults
//		return worklist.ToMend(faults, framework.IsPermanent)
//	})
//
// # What keeps something from being worked out
//
// One thing that somebody has to mend does not keep the others from being carried out. It is therefore no error of the resource,
// which would end the reconciliation before what comes after it, but a note of its plan, and the error of a check: a resource that
// changes nothing, and is put behind all others. Thus plan and reconciliation do the same and fail in the same place.
package worklist
