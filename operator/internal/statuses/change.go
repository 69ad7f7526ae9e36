package statuses

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
)

// Access is how the status S of objects O is reached.
type Access[O client.Object, S any] struct {
	APIVersion, Kind string
	Status           func(O) *S
	Conditions       func(*S) *[]metav1.Condition
	// Describe says in words what a status tells, by field, without times.
	Describe func(*S) map[string]string
}

// Change is a status, and what it replaces.
type Change[S any] struct {
	object        plan.Object
	before, after *S
	describe      func(*S) map[string]string
}

// Changes implements plan.Changer.
func (c Change[S]) Changes() []plan.Change {
	if c.after == nil {
		return nil
	}
	before, after := c.describe(c.before), c.describe(c.after)
	paths := maps.Clone(before)
	maps.Copy(paths, after)
	change := plan.Change{Action: plan.Update, Object: c.object}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if before[path] != after[path] {
			change.Fields = append(change.Fields, plan.FieldChange{Path: path, Old: text(before[path]), New: text(after[path])})
		}
	}
	return []plan.Change{change}
}

// text is a value in a plan: nothing for what is empty.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}
