package secretscontext_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/context/secretscontext"
)

// forms are those in which a value is found.
var forms = map[string]func(value string) string{
	"as it is":      func(v string) string { return v },
	"base64":        func(v string) string { return base64.StdEncoding.EncodeToString([]byte(v)) },
	"raw base64":    func(v string) string { return base64.RawStdEncoding.EncodeToString([]byte(v)) },
	"JSON of bytes": func(v string) string { return jsonOf([]byte(v)) },
	"JSON of a Secret": func(v string) string {
		return jsonOf(map[string]any{"data": map[string][]byte{"password": []byte(v)}})
	},
}

func jsonOf(value any) string {
	b, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func wantHidden(t interface{ Errorf(string, ...any) }, text, value string) {
	for _, form := range []string{value, base64.RawStdEncoding.EncodeToString([]byte(value))} {
		if strings.Contains(text, form) {
			t.Errorf("%q is in %q as %q", value, text, form)
		}
	}
}

func TestR14AValueIsFoundAsItIsAndInBase64(t *testing.T) {
	const value = "hunter2/and+more ÿ\"\\\tend"
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			ctx := secretscontext.NewContext(t.Context())
			secretscontext.Add(ctx, value)
			text := secretscontext.Scrub(ctx, "login: "+form(value)+", try again")
			wantHidden(t, text, value)
			if !strings.HasPrefix(text, "login: ") || !strings.HasSuffix(text, ", try again") || strings.Count(text, secretscontext.Redacted) != 1 {
				t.Errorf("what is around the value is not what it was: %q", text)
			}
		})
	}
}

// R14: any value, plain and in base64, anywhere in a text.
func TestR14NoValueIsLeftInAText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := secretscontext.NewContext(context.Background())
		values := rapid.SliceOfN(rapid.StringMatching(`[!-~][ -~]{6,40}[!-~]`), 1, 5).Draw(t, "values")
		secretscontext.Add(ctx, values...)
		var text strings.Builder
		for range rapid.IntRange(1, 4).Draw(t, "quotations") {
			form := rapid.SampledFrom(names()).Draw(t, "form")
			text.WriteString(rapid.StringMatching(`[a-z ]{0,20}[ :]`).Draw(t, "words") + forms[form](rapid.SampledFrom(values).Draw(t, "value")) + " ")
		}
		scrubbed := secretscontext.Scrub(ctx, text.String())
		for _, value := range values {
			wantHidden(t, scrubbed, value)
		}
		if again := secretscontext.Scrub(ctx, scrubbed); strings.Count(again, secretscontext.Redacted) < strings.Count(scrubbed, secretscontext.Redacted) {
			t.Errorf("scrubbed again %q becomes %q", scrubbed, again)
		}
	})
}

func names() []string {
	var all []string
	for name := range forms {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func TestTheSpaceAroundAValueIsNoPartOfIt(t *testing.T) {
	ctx := secretscontext.NewContext(t.Context())
	secretscontext.Add(ctx, "correct-horse\n")
	text := "login with correct-horse, " + forms["base64"]("correct-horse") + " and " + forms["base64"]("correct-horse\n")
	want := "login with (sensitive), (sensitive) and (sensitive)"
	if diff := cmp.Diff(want, secretscontext.Scrub(ctx, text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOfTwoValuesTheLongerOneIsHidden(t *testing.T) {
	ctx := secretscontext.NewContext(t.Context())
	secretscontext.Add(ctx, "correct-horse", "correct-horse-battery")
	if got, want := secretscontext.Scrub(ctx, "correct-horse-battery"), "(sensitive)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatIsShortOrKnownToEverybodyIsNotHidden(t *testing.T) {
	var v secretscontext.Vocabulary
	v.Open("kube-system", "postgres-main")
	v.Add("seven77", "kube-system", "postgres", "eight888")
	const text = "seven77 kube-system/postgres-main eight888"
	if got, want := v.Scrub(text), "seven77 kube-system/postgres-main (sensitive)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBeyondItsSizeAVocabularyLetsNoTextThrough(t *testing.T) {
	var v secretscontext.Vocabulary
	v.Add(strings.Repeat("x", secretscontext.MaxSize-100), "the last that fits")
	if got := v.Scrub("harmless, the last that fits"); got != "harmless, (sensitive)" {
		t.Errorf("within its size it makes %q of a text", got)
	}
	v.Add(strings.Repeat("y", 100))
	if got := v.Scrub("harmless"); got != secretscontext.Withheld {
		t.Errorf("beyond its size it makes %q of a text", got)
	}
}

func TestAnErrorStaysWhatItIs(t *testing.T) {
	ctx := secretscontext.NewContext(t.Context())
	given := fmt.Errorf("read correct-horse: %w", io.ErrUnexpectedEOF)
	if got := secretscontext.ScrubError(ctx, given); !errors.Is(got, given) || got.Error() != given.Error() {
		t.Errorf("without a value it is %v", got)
	}
	secretscontext.Add(ctx, "correct-horse")
	got := secretscontext.ScrubError(ctx, given)
	if got.Error() != "read (sensitive): unexpected EOF" || !errors.Is(got, io.ErrUnexpectedEOF) {
		t.Errorf("it is %v", got)
	}
	for _, text := range []string{fmt.Sprintf("%#v", got), fmt.Sprintf("%+v", got), fmt.Sprint(secretscontext.From(ctx).Shown(given))} {
		wantHidden(t, text, "correct-horse")
	}
	if errors.Unwrap(secretscontext.From(ctx).Shown(given)) != nil {
		t.Error("what is shown wraps the error itself")
	}
	if secretscontext.ScrubError(ctx, nil) != nil {
		t.Error("no error becomes one")
	}
}

func TestWhatIsLoggedIsScrubbedWhateverItsType(t *testing.T) {
	ctx := secretscontext.NewContext(t.Context())
	secretscontext.AddAll(ctx, map[string]any{"open": "x", "inner": []any{"correct-horse"}})
	value := "correct-horse"
	pairs := []any{
		"a", "correct-horse", "b", []byte("correct-horse"), "c", map[string]string{"k": "correct-horse"}, "d", 7, "e", errors.New("correct-horse"),
		"f", &value, "g", struct{ P *string }{&value}, "h", map[string]*string{"k": &value}, "i", inJSON{}, "j", []func(){nil},
	}
	got := secretscontext.From(ctx).ScrubPairs(pairs)
	wantHidden(t, fmt.Sprintf("%v %+v", got, got), "correct-horse")
	for _, value := range got[:len(got)-1] {
		if err, isError := value.(error); isError {
			value = err.Error()
		}
		wantHidden(t, jsonOf(value), "correct-horse")
	}
	if got[7] != 7 || pairs[1] != "correct-horse" {
		t.Errorf("what has no value in it, or the slice given, was changed: %v, %v", got, pairs)
	}
}

// inJSON shows in JSON what its text leaves out.
type inJSON struct{}

func (inJSON) String() string               { return "harmless" }
func (inJSON) MarshalJSON() ([]byte, error) { return []byte(`{"password":"correct-horse"}`), nil }

func TestWithoutValuesNothingIsDone(t *testing.T) {
	secretscontext.Add(t.Context(), "correct-horse")
	secretscontext.AddAll(t.Context(), "correct-horse")
	if got := secretscontext.Scrub(t.Context(), "correct-horse"); got != "correct-horse" {
		t.Errorf("without a vocabulary it is %q", got)
	}
	ctx := secretscontext.NewContext(t.Context())
	if secretscontext.NewContext(ctx) != ctx {
		t.Error("a context within another one has a vocabulary of its own")
	}
	err := errors.New("harmless")
	if n := testing.AllocsPerRun(100, func() { _, _ = secretscontext.Scrub(ctx, "harmless"), secretscontext.ScrubError(ctx, err) }); n != 0 {
		t.Errorf("an empty vocabulary allocates %v times", n)
	}
}
