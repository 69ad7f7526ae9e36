package logging

import (
	"context"
	"maps"
	"slices"

	"github.com/giantswarm/micrologger/loggermeta"
)

// carried returns the pairs that a context adds to those of a message, sorted by key. What the message says itself is left out.
func carried(ctx context.Context, said []any) (pairs []any) {
	meta, ok := loggermeta.FromContext(ctx)
	if !ok {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(meta.KeyVals)) {
		if !says(said, key) {
			pairs = append(pairs, key, meta.KeyVals[key])
		}
	}
	return pairs
}

func says(pairs []any, key string) bool {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] == key {
			return true
		}
	}
	return false
}
