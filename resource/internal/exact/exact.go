// Package exact reads YAML without losing digits of numbers.
package exact

import (
	"encoding/json"
	"strconv"

	"sigs.k8s.io/yaml"
)

// Map reads a YAML map as sigs.k8s.io/yaml does. Numbers are float64, but json.Number where a float64 would lose digits.
func Map(text []byte) (map[string]any, error) {
	values := map[string]any{}
	err := yaml.Unmarshal(text, &values, func(d *json.Decoder) *json.Decoder { d.UseNumber(); return d })
	replace(values, func(n json.Number) any {
		float, _ := n.Float64() // What JSON has is a number.
		if digits := n.String(); digits != strconv.FormatFloat(float, 'f', -1, 64) && isWhole(digits) {
			return n
		}
		return float
	})
	return values, err
}

// isWhole reports whether a number is written as digits only. All else was a float64 before it was JSON.
func isWhole(number string) bool {
	_, err := strconv.ParseInt(number, 10, 64)
	_, unsigned := strconv.ParseUint(number, 10, 64)
	return err == nil || unsigned == nil
}

// Round makes all numbers of values that Map has read float64, for those who know no other ones. It changes the values.
func Round(values map[string]any) {
	replace(values, func(n json.Number) any {
		float, _ := n.Float64()
		return float
	})
}

// replace replaces each json.Number in a map or a list, and returns anything else.
func replace(value any, by func(json.Number) any) any {
	switch value := value.(type) {
	case json.Number:
		return by(value)
	case map[string]any:
		for name, inner := range value {
			value[name] = replace(inner, by)
		}
	case []any:
		for i, inner := range value {
			value[i] = replace(inner, by)
		}
	}
	return value
}
