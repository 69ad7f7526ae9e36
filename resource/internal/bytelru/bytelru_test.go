package bytelru_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/resource/internal/bytelru"
)

// TestACacheHoldsWhatWasUsedLastWithinItsBytes compares the cache with a list of what was used last.
func TestACacheHoldsWhatWasUsedLastWithinItsBytes(t *testing.T) {
	type kept struct{ key, value, size int }
	rapid.Check(t, func(t *rapid.T) {
		const limit = 20
		cache := bytelru.New[int, int](limit)
		var model []kept // the one used last in front
		take := func(key int) (kept, bool) {
			for i, k := range model {
				if k.key == key {
					model = append(model[:i:i], model[i+1:]...)
					return k, true
				}
			}
			return kept{}, false
		}
		for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
			key := rapid.IntRange(0, 5).Draw(t, "key")
			if rapid.Bool().Draw(t, "add") {
				size := rapid.IntRange(0, limit+2).Draw(t, "size")
				cache.Add(key, step, size)
				take(key)
				if size <= limit {
					model = append([]kept{{key, step, size}}, model...)
				}
			} else {
				value, ok := cache.Get(key)
				k, has := take(key)
				if ok != has || value != k.value {
					t.Fatalf("key %d: got %d, %t, want %d, %t", key, value, ok, k.value, has)
				}
				if has {
					model = append([]kept{k}, model...)
				}
			}
			used := 0
			for i, k := range model {
				if used += k.size; used > limit {
					used -= k.size
					model = model[:i]
					break
				}
			}
			if got := cache.Bytes(); got != used {
				t.Fatalf("it has %d bytes, and should have %d", got, used)
			}
		}
	})
}
