package cut_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/internal/cut"
)

func TestTextIsCutBetweenTwoCharactersAndFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, limit := rapid.String().Draw(t, "text"), rapid.IntRange(3, 50).Draw(t, "limit")
		got := cut.Text(text, limit)
		if len(got) > limit || !utf8.ValidString(got) {
			t.Fatalf("%d bytes of %q", len(got), got)
		}
		if short := len(text) <= limit; short != (got == text) || !short && !strings.HasPrefix(text, strings.TrimSuffix(got, "…")) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

func TestHowMuchWasCutIsTold(t *testing.T) {
	for text, want := range map[string]string{"äöü": "äöü", "äöüß": "äöü… (1 more)", "": ""} {
		if got := cut.Runes(text, 3); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
