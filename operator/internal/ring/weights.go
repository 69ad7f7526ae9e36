package ring

import (
	"slices"
	"sort"
)

// Bucket is how many objects have their hash in a span.
type Bucket struct {
	Span    `json:",inline"`
	Objects int `json:"objects"`
}

// Weigh tells where the objects of these hashes lie in a span, in at most parts buckets that hold about as many objects each and
// cover the span. A bucket other than the first begins at the hash of an object, and objects of one hash are in one bucket. The hashes
// are in order and lie in the span.
func Weigh(span Span, hashes []Hash, parts int) []Bucket {
	var buckets []Bucket
	current := Bucket{Span: span}
	for i := 0; i < len(hashes); {
		same := i + 1
		for same < len(hashes) && hashes[same] == hashes[i] {
			same++
		}
		if current.Objects > 0 && same*parts > (len(buckets)+1)*len(hashes) && len(buckets)+1 < parts {
			current.Last = hashes[i] - 1
			buckets = append(buckets, current)
			current = Bucket{Span: Span{hashes[i], span.Last}}
		}
		current.Objects += same - i
		i = same
	}
	return append(buckets, current)
}

// overlay replaces what is known of where the objects are, as far as others are newer. Both are in order and don't overlap.
func overlay(known, newer []Bucket) []Bucket {
	var out []Bucket
	for _, b := range known {
		rest := b.Span
		covered := false
		i := sort.Search(len(newer), func(i int) bool { return newer[i].Last >= b.First })
		for ; i < len(newer) && newer[i].First <= b.Last; i++ {
			if newer[i].First > rest.First {
				out = append(out, b.part(Span{rest.First, newer[i].First - 1}))
			}
			if newer[i].Last >= b.Last {
				covered = true
				break
			}
			rest.First = newer[i].Last + 1
		}
		if !covered {
			out = append(out, b.part(rest))
		}
	}
	out = append(out, newer...)
	slices.SortFunc(out, func(a, b Bucket) int {
		if a.First < b.First {
			return -1
		}
		return 1
	})
	return out
}

// maxBuckets is how many buckets a table holds, which have to fit into an annotation together with the ranges.
const maxBuckets = 1000

// coarse joins neighbours until there are no more than limit.
func coarse(buckets []Bucket, limit int) []Bucket {
	for len(buckets) > limit {
		pairs := make([]Bucket, 0, len(buckets)/2+1)
		for pair := range slices.Chunk(buckets, 2) {
			joined := pair[0]
			if len(pair) == 2 {
				joined = Bucket{Span{pair[0].First, pair[1].Last}, pair[0].Objects + pair[1].Objects}
			}
			pairs = append(pairs, joined)
		}
		buckets = pairs
	}
	return buckets
}

// part is the bucket as far as it lies in a span within it, if its objects lie evenly.
func (b Bucket) part(s Span) Bucket {
	if s == b.Span {
		return b
	}
	return Bucket{s, int(float64(b.Objects)*s.share()/b.share() + 0.5)}
}

// within returns the buckets as far as they lie in a span.
func within(buckets []Bucket, s Span) []Bucket {
	var out []Bucket
	i := sort.Search(len(buckets), func(i int) bool { return buckets[i].Last >= s.First })
	for ; i < len(buckets) && buckets[i].First <= s.Last; i++ {
		if common, ok := buckets[i].overlap(s); ok {
			out = append(out, buckets[i].part(common))
		}
	}
	return out
}
