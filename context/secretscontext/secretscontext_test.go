package secretscontext_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/context/secretscontext"
)

// forms are ways in which a text quotes a value.
var forms = map[string]func(value string) string{
	"as it is":      func(v string) string { return v },
	"%q":            func(v string) string { return fmt.Sprintf("%q", v) },
	"%+q":           func(v string) string { return fmt.Sprintf("%+q", v) },
	"%x":            func(v string) string { return fmt.Sprintf("%x", v) },
	"%X":            func(v string) string { return fmt.Sprintf("%X", v) },
	"%v of bytes":   func(v string) string { return fmt.Sprintf("%v", []byte(v)) },
	"%#v of bytes":  func(v string) string { return fmt.Sprintf("%#v", []byte(v)) },
	"JSON":          func(v string) string { return jsonOf(v) },
	"JSON in JSON":  func(v string) string { return jsonOf(jsonOf(v)) },
	"JSON of bytes": func(v string) string { return jsonOf([]byte(v)) },
	"JSON of array": func(v string) string { return strings.ReplaceAll(fmt.Sprintf("%v", []byte(v)), " ", ",") },
	"base64":        func(v string) string { return base64.StdEncoding.EncodeToString([]byte(v)) },
	"raw base64":    func(v string) string { return base64.RawStdEncoding.EncodeToString([]byte(v)) },
	"URL base64":    func(v string) string { return base64.URLEncoding.EncodeToString([]byte(v)) },
	"raw URL base64": func(v string) string {
		return base64.RawURLEncoding.EncodeToString([]byte(v))
	},
	"basic authorization": func(v string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte("admin:"+v)) },
	"a path of base64":    func(v string) string { return "/v1/token/" + base64.RawURLEncoding.EncodeToString([]byte(v)) + "/x" },
	"a query":             func(v string) string { return "https://example.com/?token=" + url.QueryEscape(v) },
	"user of a URL": func(v string) string {
		return (&url.URL{Scheme: "https", Host: "h", User: url.UserPassword("u", v)}).String()
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
	for _, form := range []string{
		value, base64.RawStdEncoding.EncodeToString([]byte(value)), base64.RawURLEncoding.EncodeToString([]byte(value)),
		hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value))), strings.Trim(fmt.Sprintf("%d", []byte(value)), "[]"),
		strings.Trim(jsonOf(value), `"`), strings.Trim(fmt.Sprintf("%q", value), `"`), url.QueryEscape(value),
	} {
		if strings.Contains(text, form) {
			t.Errorf("%q is in %q as %q", value, text, form)
		}
	}
}

func TestR14AValueIsFoundInEveryForm(t *testing.T) {
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

// R14: any value, in any form, anywhere in a text.
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

// R14: a text that was cut before it is scrubbed shows no beginning of a value that is long enough to be found.
func TestR14TheBeginningOfAValueIsFoundWhereATextWasCut(t *testing.T) {
	const value = "hunter2-and-more-of-it"
	for name, form := range map[string]func(string) string{
		"plain": forms["as it is"], "base64": func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }, "hexadecimal": func(s string) string { return hex.EncodeToString([]byte(s)) },
	} {
		whole := form(value)
		for n := range len(whole) {
			ctx := secretscontext.NewContext(t.Context())
			secretscontext.Add(ctx, value)
			text := secretscontext.Scrub(ctx, "login: "+whole[:n]+"…; and 3 more")
			// Of base64 four letters are three bytes, and of hexadecimal two are one.
			least := map[string]int{"plain": 8, "base64": 15, "hexadecimal": 17}[name]
			if n >= least && strings.Contains(text, whole[:least]) {
				t.Errorf("%s, cut after %d: %q", name, n, text)
			}
			if !strings.HasSuffix(text, "; and 3 more") {
				t.Errorf("%s, cut after %d: what is behind it is not what it was: %q", name, n, text)
			}
		}
	}
	ctx := secretscontext.NewContext(t.Context())
	secretscontext.Add(ctx, value)
	if text := secretscontext.Scrub(ctx, "hunter2-and others…"); text != "hunter2-and others…" {
		t.Errorf("what only begins like a value became %q", text)
	}
}

func names() []string {
	var all []string
	for name := range forms {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

func TestThePartsOfAValueAreSecretToo(t *testing.T) {
	kubeconfig := `apiVersion: v1
kind: Config
clusters:
- name: production-east
  cluster:
    server: https://east.example.com:6443
    certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t
users:
- name: kubernetes-admin
  user:
    token: "eyJhbGciOiJSUzI1NiIs"
`
	docker := `{"auths":{"registry.example.com":{"username":"somebody","password":"correct-horse","auth":"c29tZWJvZHk6Y29ycmVjdC1ob3JzZQ=="}}}`
	for name, tc := range map[string]struct{ value, text, want string }{
		"the token of a kubeconfig":       {kubeconfig, "Bearer eyJhbGciOiJSUzI1NiIs was refused", "Bearer (sensitive) was refused"},
		"the certificate of a kubeconfig": {kubeconfig, "bad LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t", "bad (sensitive)"},
		"not where its cluster is":        {kubeconfig, "production-east: dial https://east.example.com:6443", "production-east: dial https://east.example.com:6443"},
		"the password for a registry":     {docker, "somebody can't log in with correct-horse", "(sensitive) can't log in with (sensitive)"},
		"its basic authorization":         {docker, "Basic c29tZWJvZHk6Y29ycmVjdC1ob3JzZQ==", "Basic (sensitive)"},
		"not the name of a registry":      {docker, "registry.example.com answers 401", "registry.example.com answers 401"},
		"the password of a URL":           {"postgres://app:correct-horse@db/app", "login of app with correct-horse", "login of app with (sensitive)"},
		"a setting":                       {"USER=app\nPASSWORD='correct-horse'\n", "login with correct-horse", "login with (sensitive)"},
		"a line":                          {"first line here\nsecond line here\n", "at: second line here!", "at: (sensitive)!"},
		"without the space around it":     {"correct-horse\n", `login with "correct-horse"`, `login with "(sensitive)"`},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := secretscontext.NewContext(t.Context())
			secretscontext.Add(ctx, tc.value)
			if diff := cmp.Diff(tc.want, secretscontext.Scrub(ctx, tc.text)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
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
		"f", &value, "g", struct{ P *string }{&value}, "h", map[string]*string{"k": &value}, "i", inJSON{}, "j", broken{}, "k", []func(){nil},
	}
	got := secretscontext.From(ctx).ScrubPairs(pairs)
	wantHidden(t, fmt.Sprintf("%v %+v", got, got), "correct-horse")
	for _, value := range got[:len(got)-3] {
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

// broken panics when it is made JSON of.
type broken struct{}

func (broken) MarshalJSON() ([]byte, error) { panic("broken") }

// What others write is scrubbed too, such as a text of half a megabyte that can be read in a hundred ways.
func TestALongTextTakesLittleMemory(t *testing.T) {
	ctx := secretscontext.NewContext(t.Context())
	secretscontext.Add(ctx, "correct-horse")
	long := strings.Repeat("0123456789abcdef", 1<<15) + `\q%41+` + hex.EncodeToString([]byte("correct-horse"))
	secretscontext.Scrub(ctx, "the dictionary is made")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	scrubbed := secretscontext.Scrub(ctx, long)
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) / uint64(len(long)); took > 100 {
		t.Errorf("it takes %d bytes for each of the text", took)
	}
	wantHidden(t, scrubbed, "correct-horse")
}

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
