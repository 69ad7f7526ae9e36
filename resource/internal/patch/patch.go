// Package patch makes patches of the parts that a resource has sorted its work into.
package patch

import "github.com/operatorkit/operatorkit/framework"

// Of sets the parts in which there is something to do. The patch is nil when there is nothing in any of them.
func Of[S any](something func(S) bool, create, update, remove S) *framework.TypedPatch[S] {
	patch := framework.NewTypedPatch[S]()
	if something(create) {
		patch.SetCreateChange(create)
	}
	if something(update) {
		patch.SetUpdateChange(update)
	}
	if something(remove) {
		patch.SetDeleteChange(remove)
	}
	if something(create) || something(update) || something(remove) {
		return patch
	}
	return nil
}
