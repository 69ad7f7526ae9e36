package plan

// SameValue reports whether two JSON values are equal. An int64 and a float64 can be equal: the
// type of a number depends on how it was written.
func SameValue(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for name, value := range x {
			other, ok := y[name]
			if !ok || !SameValue(value, other) {
				return false
			}
		}
		return true
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !SameValue(x[i], y[i]) {
				return false
			}
		}
		return true
	}
	return sameScalar(a, b)
}

func sameScalar(a, b any) bool {
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	if a == b {
		return true
	}
	switch x := a.(type) {
	case int64:
		y, ok := b.(float64)
		return ok && sameNumber(x, y)
	case float64:
		y, ok := b.(int64)
		return ok && sameNumber(y, x)
	}
	return false
}

// sameNumber compares all digits: a float64 may be the rounded value of another whole number.
func sameNumber(whole int64, float float64) bool {
	return float64(whole) == float && float < 1<<63 && int64(float) == whole
}
