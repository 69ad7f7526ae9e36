package inspector

import "testing"

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
