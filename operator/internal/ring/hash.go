package ring

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/sharding"
)

// The fields that API servers filter by.
const (
	FieldNamespace = "object.metadata.namespace"
	FieldUID       = "object.metadata.uid"
)

// Hash is a place in the space of hashes, all of which are used.
type Hash uint64

// MaxHash is the last place.
const MaxHash Hash = math.MaxUint64

// HashOf returns the hash that an API server computes of the value of a field (sharding.HashField): FNV-1a, here without memory of its own,
// because it is asked for each reconciliation.
func HashOf(value string) Hash {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range len(value) {
		h ^= uint64(value[i])
		h *= prime
	}
	return Hash(h)
}

// String returns the hash as it stands in selectors.
func (h Hash) String() string { return fmt.Sprintf("0x%016x", uint64(h)) }

// MarshalText implements encoding.TextMarshaler.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hash) UnmarshalText(text []byte) error {
	v, err := strconv.ParseUint(string(text), 0, 64)
	if err != nil {
		return fmt.Errorf("read hash %q: %w", text, err)
	}
	*h = Hash(v)
	return nil
}

// Span is a part of the space, with both ends.
type Span struct {
	First Hash `json:"first"`
	Last  Hash `json:"last"`
}

// Contains tells whether a hash lies in the span.
func (s Span) Contains(h Hash) bool { return s.First <= h && h <= s.Last }

// overlap returns what two spans have in common.
func (s Span) overlap(other Span) (common Span, ok bool) {
	common = Span{max(s.First, other.First), min(s.Last, other.Last)}
	return common, common.First <= common.Last
}

// Intersection returns what is in spans of both lists, which are in order. So is the result.
func Intersection(a, b []Span) (common []Span) {
	for _, s := range a {
		for _, other := range b {
			if c, ok := s.overlap(other); ok {
				common = append(common, c)
			}
		}
	}
	return common
}

// Covers tells whether everything in the spans of one list is in those of another one. Both are in order, and no two spans of one touch.
func Covers(spans, others []Span) bool {
	return !slices.ContainsFunc(others, func(o Span) bool {
		return !slices.ContainsFunc(spans, func(s Span) bool { return s.Contains(o.First) && s.Contains(o.Last) })
	})
}

// Overlaps tells whether two spans have something in common.
func (s Span) Overlaps(other Span) bool {
	_, ok := s.overlap(other)
	return ok
}

// share is which part of the whole space the span is, up to 1.
func (s Span) share() float64 { return (float64(s.Last-s.First) + 1) / (float64(MaxHash) + 1) }

// Selector returns the shardSelector of a list or a watch for the objects whose field has its hash in one of the spans. Without spans it
// is that of the last hash, which hardly any object has.
func Selector(field string, spans []Span) string {
	if len(spans) == 0 {
		spans = []Span{{MaxHash, MaxHash}}
	}
	requirements := make([]sharding.ShardRangeRequirement, 0, len(spans))
	for _, s := range spans {
		end := "0x10000000000000000"
		if s.Last != MaxHash {
			end = (s.Last + 1).String()
		}
		requirements = append(requirements, sharding.ShardRangeRequirement{Key: field, Start: s.First.String(), End: end})
	}
	return sharding.NewSelector(requirements...).String()
}
