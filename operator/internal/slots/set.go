package slots

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"math/bits"
)

// Count is the number of slots.
const Count = 256

// Of returns the slot of an object by its namespace, or by its name if it has none.
func Of(namespace, name string) int { return int(Hash(cmp.Or(namespace, name)) >> 56) }

// Hash returns the FNV-1a hash of a text, mixed as in MurmurHash3 (fmix64), because the FNV-1a
// hashes of similar texts differ only in the last bits.
func Hash(text string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * prime
	}
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// Set is a set of slots. Sets are equal (==) if they have the same slots.
type Set [Count / 64]uint64

// Has reports whether a slot is in the set.
func (s Set) Has(slot int) bool { return s[slot/64]>>(slot%64)&1 == 1 }

// Add adds a slot.
func (s *Set) Add(slot int) { s[slot/64] |= 1 << (slot % 64) }

// And returns the slots that are in both sets.
func (s Set) And(other Set) Set {
	for i := range s {
		s[i] &= other[i]
	}
	return s
}

// With returns the slots that are in either set.
func (s Set) With(other Set) Set {
	for i := range s {
		s[i] |= other[i]
	}
	return s
}

// Without returns the slots that are not in other.
func (s Set) Without(other Set) Set {
	for i := range s {
		s[i] &^= other[i]
	}
	return s
}

// Len returns the number of slots in the set.
func (s Set) Len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// MarshalText implements encoding.TextMarshaler.
func (s Set) MarshalText() ([]byte, error) {
	var raw [Count / 8]byte
	for slot := range Count {
		if s.Has(slot) {
			raw[slot/8] |= 1 << (slot % 8)
		}
	}
	return hex.AppendEncode(nil, raw[:]), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Set) UnmarshalText(text []byte) error {
	raw, err := hex.DecodeString(string(text))
	if err != nil || len(raw) != Count/8 {
		return fmt.Errorf("read a set of slots: want %d hexadecimal digits, got %q", Count/4, text)
	}
	*s = Set{}
	for slot := range Count {
		if raw[slot/8]>>(slot%8)&1 == 1 {
			s.Add(slot)
		}
	}
	return nil
}
