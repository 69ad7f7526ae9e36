package plan

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
)

// digest stands in place of a value that must not be shown. It can be compared, so that a change is seen. It never leaves
// this package: redact makes Redacted of it.
type digest struct{ sum [sha256.Size]byte }

// digestOf covers one value, all of it.
func digestOf(value any) any {
	if v, ok := value.(digest); ok {
		return v
	}
	b, err := json.Marshal(value)
	if err != nil {
		b = nil // Numbers that JSON does not know: all that is lost is that they changed.
	}
	return digest{sha256.Sum256(b)}
}

// hideValues covers the values of a Secret, or of another sensitive Kubernetes object, and leaves the names of its fields. It
// changes the object.
func hideValues(value any, path string) any {
	if path != "" && ShownOfSecret(path) || value == nil {
		return value
	}
	fields, ok := value.(map[string]any)
	if !ok || len(fields) == 0 && path != "" {
		return digestOf(value)
	}
	for name, field := range fields {
		inner := name
		if path != "" {
			inner = path + Segment(name)
		}
		fields[name] = hideValues(field, inner)
	}
	return fields
}

// hideSecrets covers the values of all Secrets in a JSON value. It changes the value.
func hideSecrets(value any) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = hideSecrets(v[i])
		}
	case map[string]any:
		apiVersion, _ := v["apiVersion"].(string)
		kind, _ := v["kind"].(string)
		if apiVersion != "" && isSecret(apiVersion, kind) {
			foldText(v)
			return hideValues(v, "")
		}
		for name := range v {
			v[name] = hideSecrets(v[name])
		}
	}
	return value
}

// foldText moves the stringData of a Secret into its data, as the server does.
func foldText(secret map[string]any) {
	text, ok := secret["stringData"].(map[string]any)
	if !ok {
		return
	}
	data := map[string]any{}
	if given, ok := secret["data"].(map[string]any); ok {
		data = maps.Clone(given)
	}
	for name, value := range text {
		if s, ok := value.(string); ok {
			value = base64.StdEncoding.EncodeToString([]byte(s))
		}
		data[name] = value
	}
	delete(secret, "stringData")
	secret["data"] = data
}

// redact makes the result of Diff fit to be seen. It changes the fields.
func redact(fields []FieldChange) []FieldChange {
	for i, f := range fields {
		if hasDigest(f.Old) || hasDigest(f.New) {
			fields[i] = f.Hidden()
		}
	}
	return fields
}

func hasDigest(value any) bool {
	switch v := value.(type) {
	case digest:
		return true
	case []any:
		return slices.ContainsFunc(v, hasDigest)
	case map[string]any:
		for _, field := range v {
			if hasDigest(field) {
				return true
			}
		}
	}
	return false
}

// confidential tells whether a value says that it must not be shown.
func confidential(v reflect.Value) bool {
	c, ok := as[Confidential](v)
	return ok && c.Sensitive()
}
