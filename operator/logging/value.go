package logging

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/operatorkit/operatorkit/internal/cut"
)

// How long a value of a message may be, in bytes, and a stack, which is worth more. With some of
// them a line stays within the 16 KiB that container runtimes keep together.
const (
	maxValue = 4 << 10
	maxStack = 12 << 10
)

// short returns a value with at most as many bytes as one of its key may have. What has a text
// becomes that.
func short(key string, v any) any {
	limit := maxValue
	if key == keyStack {
		limit = maxStack
	}
	switch v := v.(type) {
	case string:
		return cut.Text(v, limit)
	case []byte:
		return cut.Text(string(v), limit)
	case failure:
		if text := fmt.Sprint(v.error); len(text) > limit {
			return failure{errors.New(cut.Text(text, limit))}
		}
		return v
	case json.Marshaler: // Its text may be another one.
	case error, fmt.Stringer:
		return cut.Text(fmt.Sprint(v), limit) // A method that panics is not the end of the program.
	}
	if data, err := json.Marshal(v); err == nil && len(data) > limit {
		return cut.Text(string(data), limit)
	}
	return v
}
