package statusmap_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/internal/statusmap"
)

func TestR14MessagesOfAStatusAreScrubbed(t *testing.T) {
	const value = "hunter2-and-more"
	for name, c := range map[string]struct{ before, after, want map[string]any }{
		"a condition": {
			after: map[string]any{"conditions": []any{map[string]any{"type": "Ready", "message": "use " + value}}},
			want:  map[string]any{"conditions": []any{map[string]any{"type": "Ready", "message": "use (sensitive)"}}},
		},
		"of a part, by another name": {
			after: map[string]any{"services": []any{map[string]any{"name": "shop", "failureMessage": "use " + value}}},
			want:  map[string]any{"services": []any{map[string]any{"name": "shop", "failureMessage": "use (sensitive)"}}},
		},
		"a list of messages":                 {after: map[string]any{"message": []any{value, 1}}, want: map[string]any{"message": []any{"(sensitive)", 1}}},
		"fields that are made to be read":    {after: map[string]any{"address": value}, want: map[string]any{"address": value}},
		"what somebody else has written":     {before: map[string]any{"message": value}, after: map[string]any{"message": value}, want: map[string]any{"message": value}},
		"what somebody else has not written": {before: map[string]any{"message": "a"}, after: map[string]any{"message": value}, want: map[string]any{"message": "(sensitive)"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := secretscontext.NewContext(t.Context())
			secretscontext.Add(ctx, value)
			if diff := cmp.Diff(c.want, statusmap.Scrub(ctx, c.before, c.after)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.after, statusmap.Scrub(t.Context(), c.before, c.after)); diff != "" {
				t.Errorf("without values (-want +got):\n%s", diff)
			}
		})
	}
}
