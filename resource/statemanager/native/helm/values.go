package helm

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// marker stands for a secret value in a comparison of values, so that a change is seen and nothing else.
const marker = "\x00secret "

// veiled returns values with markers in place of the secret ones.
func veiled(value, mark any) any {
	if marked, _ := mark.(bool); marked {
		data, _ := json.Marshal(value)
		sum := sha256.Sum256(data)
		return marker + hex.EncodeToString(sum[:])
	}
	switch v := value.(type) {
	case map[string]any:
		m, _ := mark.(map[string]any)
		shown := make(map[string]any, len(v))
		for key, inner := range v {
			shown[key] = veiled(inner, m[key])
		}
		return shown
	case []any:
		m, _ := mark.([]any)
		shown := make([]any, len(v))
		for i, inner := range v {
			var markOf any
			if i < len(m) {
				markOf = m[i]
			}
			shown[i] = veiled(inner, markOf)
		}
		return shown
	}
	return value
}

// valueChanges tells in which values two releases differ, without those that are secret.
func valueChanges(h *carrier.Hider, before, after, secret map[string]any) []plan.FieldChange {
	old, _ := veiled(before, secret).(map[string]any)
	now, _ := veiled(after, secret).(map[string]any)
	fields := plan.Diff(map[string]any{"values": old}, map[string]any{"values": now})
	for i, field := range fields {
		if hasMarker(field.Old) || hasMarker(field.New) || h.Holds(field.Old) || h.Holds(field.New) {
			fields[i] = field.Hidden()
		}
	}
	return fields
}

// largestMarks is how many bytes of marks a revision keeps. Where there are more, all its values are taken to be secret.
const largestMarks = 32 << 10

// formatMarks writes which values of a revision are secret: by their paths only.
func formatMarks(secret map[string]any) string {
	if secret == nil {
		secret = map[string]any{}
	}
	// Maps, lists and booleans can always be encoded.
	if text, _ := json.Marshal(secret); len(text) <= largestMarks {
		return string(text)
	}
	return "all"
}

// hide hides the secret values of releases from now on, those too that the service does not have any more, and returns the marks for them.
// A revision says which those are; in one that does not, whatever is at a path that has gone may have been one.
func (j *job) hide(revisions records, releases ...*stored) map[string]any {
	marks, all, unmarked := any(j.service.Secret), false, map[int]bool{}
	for i := range revisions {
		var its map[string]any
		switch text := revisions[i].annotations[secretAnnotation]; {
		case text == "":
			unmarked[revisions[i].revision] = true
		case json.Unmarshal([]byte(text), &its) != nil:
			all = true
		default:
			marks = union(marks, its)
		}
	}
	for _, r := range releases {
		switch {
		case all:
			marks = union(marks, missingFrom(nil, r.Config))
		case unmarked[r.Version]:
			marks = union(marks, missingFrom(j.service.Values, r.Config))
		}
	}
	known, _ := marks.(map[string]any)
	for _, r := range releases {
		j.hider.Add(r.Config, known)
	}
	return known
}

// union returns the marks of two.
func union(a, b any) any {
	switch a := a.(type) {
	case nil:
		return b
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			both := map[string]any{}
			maps.Copy(both, a)
			for key, mark := range b {
				both[key] = union(a[key], mark)
			}
			return both
		}
	}
	if b == nil {
		return a
	}
	return true
}

// missingFrom marks the values at paths that others don't have. What is a map in one of the two only is missing as a whole.
func missingFrom(others, values map[string]any) map[string]any {
	marks := map[string]any{}
	for key, value := range values {
		other, there := others[key]
		inner, isMap := value.(map[string]any)
		otherInner, otherMap := other.(map[string]any)
		switch {
		case !there || isMap != otherMap:
			marks[key] = true
		case isMap:
			marks[key] = missingFrom(otherInner, inner)
		}
	}
	return marks
}

func hasMarker(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			if hasMarker(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasMarker)
	case string:
		return strings.HasPrefix(v, marker)
	}
	return false
}
