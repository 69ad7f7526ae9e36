package serverside

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"

	"github.com/operatorkit/operatorkit/framework/plan"
)

// Covers tells whether current has every field of desired with an equal value. It knows no defaults and no merge rules: false
// means that the API server has to be asked.
func Covers(current, desired any) bool {
	switch d := desired.(type) {
	case map[string]any:
		c, ok := current.(map[string]any)
		if !ok {
			return false
		}
		for name, value := range d {
			field, ok := c[name]
			if !ok || !Covers(field, value) {
				return false
			}
		}
		return true
	case []any:
		c, ok := current.([]any)
		return ok && slices.EqualFunc(c, d, Covers)
	}
	return plan.SameValue(current, desired)
}

// volatile are the fields of metadata that change by themselves.
var volatile = [...]string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"}

// Stable returns an object without its status and without what changes by itself. The content is shared.
func Stable(object map[string]any) map[string]any {
	kept := maps.Clone(object)
	delete(kept, "status")
	if metadata, ok := object["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, name := range volatile {
			delete(metadata, name)
		}
		kept["metadata"] = metadata
	}
	return kept
}

// Pair is a hash of an object, as far as it is stable, and of what it should be: values included, so that it stays in memory.
type Pair [sha256.Size]byte

// PairOf returns the hash of a pair, by which is remembered what the API server said about it.
func PairOf(current, desired map[string]any) (Pair, error) {
	encoded, err := json.Marshal([]map[string]any{Stable(current), desired})
	return sha256.Sum256(encoded), err
}
