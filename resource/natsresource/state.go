package natsresource

import (
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// State is a set of entries: those that are there, those that should be, or those that a part of a patch changes. It shows
// keys and changes only, never the content of an entry, and no values of sensitive ones.
type State[T natsinformer.Entity] = keyed.State[Key, T]

// item is one entry of a state.
type item[T natsinformer.Entity] = keyed.Item[Key, T]

// newItem returns an entry as an item. In plans, its namespace is its bucket. If the entry is
// there, its UID and version say which one of its name it is.
func newItem[T natsinformer.Entity](bucket string, entity T) item[T] {
	m := entity.EntityMeta()
	named := plan.Object{Kind: "Entry", Namespace: bucket, Name: m.Name, UID: m.UID}
	if m.UID != "" {
		named.Version = m.GetResourceVersion()
	}
	return item[T]{Key: Key{Bucket: bucket, Name: m.Name}, Thing: entity, Change: plan.Change{Object: named}}
}
