package inspector

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestWordsAreFoundInSmallAndCapitalLetters(t *testing.T) {
	for _, c := range []struct {
		word, text string
		want       bool
	}{
		{"lease", "the Lease has ended", true},
		{"LEASE", "the lease has ended", true},
		{"lease", "leas e", false},
		{"a", "", false},
		{"long", "lon", false},
		{"z-9", "Z-9", true},
		{"z-9", "-9", false},
		{"9z", "99Z", true},
		{"(!", "wait (!)", true},
		{"grün", "das GRÜNE Haus", true},
		{"grün", "das graue Haus", false},
		{"haus", "das grüne HAUS", true},
	} {
		if got := newWord(c.word).in(c.text); got != c.want {
			t.Errorf("%q in %q: got %v", c.word, c.text, got)
		}
	}
}

func TestWordsAreFoundWhereTextsInSmallLettersHaveThem(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func(most int) string {
		b := make([]byte, random.IntN(most))
		for i := range b {
			b[i] = "aAbBzZ-7"[random.IntN(8)]
		}
		return string(b)
	}
	found := 0
	for range 20_000 {
		small, in := text(4), text(24)
		want := strings.Contains(strings.ToLower(in), strings.ToLower(small))
		if got := newWord(small).in(in); got != want && small != "" {
			t.Fatalf("%q in %q: got %v, want %v", small, in, got, want)
		}
		if want {
			found++
		}
	}
	if found == 0 {
		t.Error("no word is in any text")
	}
}
