package keyedresource

import "github.com/operatorkit/operatorkit/resource/internal/keyed"

// State is a set of things: those that are there, those that should be, or those that a part of a patch changes. It shows
// keys and changes only, and no values of sensitive fields.
type State[T any] = keyed.State[Key, T]

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
type item[T any] = keyed.Item[Key, T]
