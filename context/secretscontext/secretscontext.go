package secretscontext

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

const (
	// MinLength is the minimum length of a value in bytes to be looked for.
	MinLength = 8
	// MaxSize is how many bytes of values a Vocabulary remembers at most.
	MaxSize = 4 << 20
	// Redacted replaces a value.
	Redacted = "(sensitive)"
	// Withheld replaces texts if there were too many values.
	Withheld = "(not shown: more than 4 MiB of secret values were read)"
)

// Vocabulary holds the secret values of one reconciliation. The zero value holds none, and costs
// almost nothing. All methods may be called on nil, and are safe for concurrent use.
type Vocabulary struct {
	mu sync.Mutex
	// open has the namespace and the name, which are not secret.
	open   [2]string
	values map[string]struct{}
	// size is the size of the values in bytes, including those beyond MaxSize, which are not
	// remembered.
	size int
	// replacer is nil until a text is scrubbed, and again when a value is added.
	replacer *strings.Replacer
}

// Open sets the namespace and the name of the reconciled object, before the vocabulary is used. A
// value that is a part of one of these is not secret.
func (v *Vocabulary) Open(namespace, name string) { v.open = [2]string{namespace, name} }

// Add makes values secret.
func (v *Vocabulary) Add(values ...string) {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, value := range values {
		if _, known := v.values[value]; known || len(value) < MinLength {
			continue
		}
		if v.values == nil {
			v.values = map[string]struct{}{}
		}
		if v.size += len(value); v.size <= MaxSize {
			v.values[value] = struct{}{}
			v.replacer = nil
		}
	}
}

// Empty reports whether no value was added.
func (v *Vocabulary) Empty() bool {
	if v == nil {
		return true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.size == 0
}

// Scrub returns a text without the values.
func (v *Vocabulary) Scrub(text string) string {
	if text == "" || v.Empty() {
		return text
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.size > MaxSize {
		return Withheld
	}
	if v.replacer == nil {
		v.replacer = v.newReplacer()
	}
	return v.replacer.Replace(text)
}

// newReplacer returns a replacer of the values and their base64, also without the padding. Of two
// matches at the same place it finds the longer one.
func (v *Vocabulary) newReplacer() *strings.Replacer {
	var words []string
	for value := range v.values {
		for _, form := range []string{value, strings.TrimSpace(value)} {
			padded := base64.StdEncoding.EncodeToString([]byte(form))
			words = append(words, form, padded, strings.TrimRight(padded, "="))
		}
	}
	slices.SortFunc(words, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, word := range words {
		if len(word) >= MinLength && !strings.Contains(v.open[0], word) && !strings.Contains(v.open[1], word) {
			pairs = append(pairs, word, Redacted)
		}
	}
	return strings.NewReplacer(pairs...)
}

// ScrubError returns err, or, if its text contains a value, an error with a scrubbed text. The new
// error is equivalent for errors.Is and errors.As. The error that it wraps must not be shown.
func (v *Vocabulary) ScrubError(err error) error {
	if err == nil || v.Empty() {
		return err
	}
	text := err.Error()
	if scrubbed := v.Scrub(text); scrubbed != text {
		return &scrubbedError{scrubbed, err}
	}
	return err
}

// Shown is ScrubError for code that shows wrapped errors: if the text had to be changed, the result
// wraps nothing.
func (v *Vocabulary) Shown(err error) error {
	if scrubbed, ok := v.ScrubError(err).(*scrubbedError); ok { //nolint:errorlint // one that was scrubbed before may wrap it
		return errors.New(scrubbed.text)
	}
	return err
}

// ScrubPairs is Scrub for the keys and values of a log message: a value with a secret in its text
// or in its JSON becomes a text. The given slice is not changed.
func (v *Vocabulary) ScrubPairs(keyVals []any) []any {
	if v.Empty() {
		return keyVals
	}
	pairs := slices.Clone(keyVals)
	for i, value := range pairs {
		for _, text := range texts(value) {
			if scrubbed := v.Scrub(text); scrubbed != text {
				pairs[i] = scrubbed
				break
			}
		}
	}
	return pairs
}

// texts returns the forms in which a log may write a value: its text, and its JSON, which follows
// pointers.
func texts(value any) []string {
	switch value := value.(type) {
	case string:
		return []string{value}
	case []byte:
		return []string{string(value)}
	case error:
		return []string{fmt.Sprint(value)}
	}
	all := []string{fmt.Sprintf("%+v", value)}
	if b, err := json.Marshal(value); err == nil {
		all = append(all, string(b))
	}
	return all
}

type vocabularyKey struct{}

// Key is the context key of the *Vocabulary, for types that are contexts themselves.
var Key any = vocabularyKey{}

// NewContext returns a child of ctx with a vocabulary. If ctx has one already, it returns ctx. It
// is for code that calls an author's code outside of a framework and scrubs its output.
func NewContext(ctx context.Context) context.Context {
	if From(ctx) != nil {
		return ctx
	}
	return context.WithValue(ctx, Key, &Vocabulary{})
}

// From returns the vocabulary that ctx carries, or nil.
func From(ctx context.Context) *Vocabulary {
	v, _ := ctx.Value(Key).(*Vocabulary)
	return v
}

// Add makes values secret in the reconciliation that ctx belongs to. Without one it does nothing.
func Add(ctx context.Context, values ...string) { From(ctx).Add(values...) }

// AddAll is Add for all strings in the JSON of a value, except the names of fields and keys.
func AddAll(ctx context.Context, value any) {
	v := From(ctx)
	if v == nil {
		return
	}
	var tree any
	if b, err := json.Marshal(value); err == nil && json.Unmarshal(b, &tree) == nil {
		v.addTree(tree)
	}
}

func (v *Vocabulary) addTree(tree any) {
	switch tree := tree.(type) {
	case string:
		v.Add(tree)
	case []any:
		for _, element := range tree {
			v.addTree(element)
		}
	case map[string]any:
		for _, field := range tree {
			v.addTree(field)
		}
	}
}

// Scrub returns a text without the values that were added in the reconciliation that ctx belongs
// to.
func Scrub(ctx context.Context, text string) string { return From(ctx).Scrub(text) }

// ScrubError is Vocabulary.ScrubError of the vocabulary that ctx carries.
func ScrubError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return From(ctx).ScrubError(err)
}

// scrubbedError is an error with another text.
type scrubbedError struct {
	text string
	err  error
}

// Error implements error.
func (e *scrubbedError) Error() string { return e.text }

// GoString implements fmt.GoStringer, so that no formatting shows the wrapped error.
func (e *scrubbedError) GoString() string { return fmt.Sprintf("%q", e.text) }

// Unwrap returns the original error.
func (e *scrubbedError) Unwrap() error { return e.err }
