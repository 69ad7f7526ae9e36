package objectresource

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/internal/serverside"
)

// coversObject is serverside.Covers for whole objects, to whose lists of owners and finalizers others may have added.
func coversObject(current, desired map[string]any) bool {
	for name, value := range desired {
		if name == "metadata" {
			continue
		}
		field, ok := current[name]
		if !ok || !serverside.Covers(field, value) {
			return false
		}
	}
	c, _ := current["metadata"].(map[string]any)
	d, _ := desired["metadata"].(map[string]any)
	for name, value := range d {
		switch name {
		case "ownerReferences", "finalizers":
			have, _ := c[name].([]any)
			want, _ := value.([]any)
			for _, w := range want {
				if !slices.ContainsFunc(have, func(h any) bool { return serverside.Covers(h, w) }) {
					return false
				}
			}
		default:
			if !serverside.Covers(c[name], value) {
				return false
			}
		}
	}
	return true
}

// hashPaths returns a short hash of which fields there are. When it differs from that of the fields applied last, some may
// have to go away; the values are compared one by one, and are left out because they may be secret.
func hashPaths(fields map[string]any) string {
	h := sha256.New()
	write := func(format string, args ...any) { fmt.Fprintf(h, format, args...) }
	writePaths(write, fields)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func writePaths(write func(string, ...any), value any) {
	switch v := value.(type) {
	case map[string]any:
		write("{")
		for _, name := range slices.Sorted(maps.Keys(v)) {
			write("%q:", name)
			writePaths(write, v[name])
		}
		write("}")
	case []any:
		write("[")
		for _, element := range v {
			writePaths(write, element)
			write(",")
		}
		write("]")
	}
}

// appliedPath is where our own bookkeeping stands.
var appliedPath = "metadata.annotations" + plan.Segment(AppliedAnnotation)

// withoutBookkeeping leaves our own bookkeeping out: a hash says nothing to people.
func withoutBookkeeping(changes []plan.FieldChange) []plan.FieldChange {
	return slices.DeleteFunc(changes, func(c plan.FieldChange) bool { return c.Path == appliedPath })
}
