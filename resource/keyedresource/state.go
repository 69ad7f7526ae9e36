package keyedresource

import (
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// State is a set of things: those that are there, those that should be, or those that a part of a patch changes. It shows
// keys and changes only, and no values of sensitive fields.
type State[T any] struct {
	keyed.State[Key, item[T]]

	// others are those of a current state that are not the resource's own.
	others map[Key]item[T]
	// journal is that of the primary; nil without one.
	journal *journal
	// stale are the keys to be taken from the journal, and bequest those of an earlier life to be noted with what is put.
	stale, bequest []string
	// unsigned tells that the journal is written also if its keys stay, so that it says whose it is. It is one of the creations, which wait
	// for nothing, neither for what is refused nor until updates are allowed.
	unsigned bool
}

// Changes implements plan.Changer. It is empty for the current and the desired state.
func (s State[T]) Changes() []plan.Change { return s.State.Changes() }

// Keys returns the keys of the things.
func (s State[T]) Keys() []Key { return s.State.Keys() }

// Key names a thing. It is comparable.
type Key struct {
	// Kind is Config.Kind.
	Kind string
	// Name is what Config.Key returns.
	Name string
}

// String returns the key as it stands in errors, such as "Record home.example.com".
func (k Key) String() string { return k.Kind + " " + k.Name }

// item is one thing of a state.
type item[T any] struct {
	key    Key
	action plan.Action
	// content is the thing: as it is, or as it is to be put.
	content T
	claim   claim
	fields  []plan.FieldChange
	// description says in words what happens, if fields don't.
	description string
}

// Key implements keyed.Item.
func (it item[T]) Key() Key { return it.key }

// Action implements keyed.Item.
func (it item[T]) Action() plan.Action { return it.action }

// Change implements keyed.Item.
func (it item[T]) Change() plan.Change {
	return plan.Change{
		Action: it.action, Object: plan.Object{Kind: it.key.Kind, Name: it.key.Name}, Fields: it.fields, Description: it.description,
	}
}
