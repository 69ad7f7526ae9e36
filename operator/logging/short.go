package logging

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/operatorkit/operatorkit/internal/cut"
)

// How long a value of a message may be, in bytes, and a stack, which is worth more. With some of them a line stays within the 16 KiB
// that container runtimes keep together.
const (
	maxValue = 4 << 10
	maxStack = 12 << 10
)

func short(text string) string { return cut.Text(text, maxValue) }

// shortError returns an error whose text is short. One that had to be cut is another one.
func shortError(err error) error {
	if err == nil {
		return nil
	}
	if text := fmt.Sprint(err); len(text) > maxValue {
		return errors.New(short(text))
	}
	return err
}

// shortPairs returns the pairs with values that are short. The pairs are the caller's, and are not changed.
func shortPairs(keyVals []any) []any {
	copied := false
	for i := 1; i < len(keyVals); i += 2 {
		limit := maxValue
		if keyVals[i-1] == keyStack {
			limit = maxStack
		}
		text, long := textOver(keyVals[i], limit)
		if !long {
			continue
		}
		if !copied {
			keyVals, copied = slices.Clone(keyVals), true
		}
		keyVals[i] = cut.Text(text, limit)
	}
	return keyVals
}

// textOver returns the text of a value that is longer than the limit.
func textOver(v any, limit int) (text string, long bool) {
	switch v := v.(type) {
	case string:
		text = v
	case []byte:
		text = string(v)
	case error, fmt.Stringer:
		text = fmt.Sprint(v) // A method that panics is not the end of the program.
	default:
		switch reflect.ValueOf(v).Kind() {
		case reflect.Slice, reflect.Array, reflect.Map, reflect.Struct, reflect.Pointer:
			if data, err := json.Marshal(v); err == nil {
				text = string(data)
			}
		}
	}
	return text, len(text) > limit
}
