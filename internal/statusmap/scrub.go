package statusmap

import (
	"context"
	"strings"

	"github.com/operatorkit/operatorkit/context/secretscontext"
)

// Scrub returns a status without the secret values that are known in ctx (package secretscontext) in its messages, which are the fields at any
// depth whose name ends with "message", in any case. Messages that before has stay as they are: somebody else may have written them. Neither
// status is changed.
func Scrub(ctx context.Context, before, after map[string]any) map[string]any {
	secrets := secretscontext.From(ctx)
	if secrets.Empty() {
		return after
	}
	there := map[string]bool{}
	withMessages(before, "", func(text string) string {
		there[text] = true
		return text
	})
	scrubbed := withMessages(after, "", func(text string) string {
		if there[text] {
			return text
		}
		return secrets.Scrub(text)
	})
	return scrubbed.(map[string]any)
}

// withMessages returns a copy of a value that has that name, in which the messages are what change makes of them.
func withMessages(v any, name string, change func(string) string) any {
	switch v := v.(type) {
	case string:
		if strings.HasSuffix(strings.ToLower(name), "message") {
			return change(v)
		}
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = withMessages(v[i], name, change)
		}
		return list
	case map[string]any:
		fields := make(map[string]any, len(v))
		for name, field := range v {
			fields[name] = withMessages(field, name, change)
		}
		return fields
	}
	return v
}
