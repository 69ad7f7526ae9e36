package helm

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
