package native

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

// values are what valuesFrom and values say together.
type values struct {
	merged map[string]any
	// secret has the structure of merged, with true for each leaf that comes from a Secret. A list is a leaf.
	secret map[string]any
}

// readValues reads YAML the way Helm reads a file with values.
func readValues(text string) (map[string]any, error) {
	return loader.LoadValues(strings.NewReader(text))
}

// add merges more values in: maps are merged, anything else is replaced.
func (v *values) add(more map[string]any, secret bool) {
	v.merged, v.secret = merge(v.merged, v.secret, more, secret)
}

func merge(merged, mask, more map[string]any, secret bool) (map[string]any, map[string]any) {
	merged, mask = maps.Clone(merged), maps.Clone(mask)
	if merged == nil {
		merged = map[string]any{}
	}
	if mask == nil {
		mask = map[string]any{}
	}
	for key, value := range more {
		before, isMap := merged[key].(map[string]any)
		with, moreMap := value.(map[string]any)
		if isMap && moreMap {
			below, _ := mask[key].(map[string]any)
			merged[key], below = merge(before, below, with, secret)
			setMask(mask, key, below)
			continue
		}
		merged[key] = value
		delete(mask, key)
		if secret {
			setMask(mask, key, maskOf(value))
		}
	}
	return merged, mask
}

// setMask leaves out what hides nothing.
func setMask(mask map[string]any, key string, value any) {
	if below, ok := value.(map[string]any); ok && len(below) == 0 {
		delete(mask, key)
		return
	}
	mask[key] = value
}

// maskOf returns true for each leaf of a value.
func maskOf(value any) any {
	fields, ok := value.(map[string]any)
	if !ok {
		return true
	}
	mask := map[string]any{}
	for key, field := range fields {
		setMask(mask, key, maskOf(field))
	}
	return mask
}

// secretTexts returns the texts that must not be shown, and those that Kubernetes writes for them, the longest first.
func (v *values) secretTexts() []string {
	found := map[string]bool{}
	collect(v.merged, v.secret, found)
	texts := slices.Collect(maps.Keys(found))
	for _, text := range texts {
		found[base64.StdEncoding.EncodeToString([]byte(text))] = true
	}
	return longestFirst(found)
}

func longestFirst(found map[string]bool) []string {
	return slices.SortedFunc(maps.Keys(found), func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
}

// shortestSecret is the length from which on a text can be told from the words of a message.
const shortestSecret = 4

func collect(value, mask any, found map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		below, isMap := mask.(map[string]any)
		for key, field := range value {
			switch {
			case mask == true:
				collect(field, true, found)
			case isMap && below[key] != nil:
				collect(field, below[key], found)
			}
		}
	case []any:
		for _, element := range value {
			collect(element, mask, found)
		}
	case string:
		if mask != true {
			return
		}
		// A message may show a single line of a text.
		for line := range strings.Lines(value) {
			if line = strings.TrimSpace(line); len(line) >= shortestSecret {
				found[line] = true
			}
		}
		if len(value) >= shortestSecret {
			found[value] = true
		}
	}
}
