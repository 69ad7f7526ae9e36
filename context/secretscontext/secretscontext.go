package secretscontext

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
)

const (
	// MinLength is how many bytes a value must have to be looked for.
	MinLength = 8
	// MaxSize is how many bytes of values a Vocabulary remembers.
	MaxSize = 4 << 20
	// Redacted stands in place of a value.
	Redacted = "(sensitive)"
	// Withheld stands in place of texts when there were too many values.
	Withheld = "(not shown: more than 4 MiB of secret values were read)"
)

// Vocabulary is the secret values of one reconciliation. The zero value knows none, and costs next to nothing. All methods may be
// called on nil, and are safe for concurrent use.
type Vocabulary struct {
	mu sync.Mutex
	// open is what is known to everybody.
	open [2]string
	// added is nil while nothing was.
	added *added
}

// added is what was added to a Vocabulary.
type added struct {
	// values are all, and fresh those of them that the dictionary does not have yet: it is made when a text is to be scrubbed.
	values map[string]struct{}
	fresh  []string
	size   int
	full   bool
	known  *dictionary
}

// Open tells the namespace and the name of the object that is reconciled, before anybody else uses the vocabulary. What is a part of
// one of these is not secret.
func (v *Vocabulary) Open(namespace, name string) { v.open = [2]string{namespace, name} }

// Add makes values secret.
func (v *Vocabulary) Add(values ...string) {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, value := range values {
		if len(value) < MinLength {
			continue
		}
		if v.added == nil {
			v.added = &added{values: map[string]struct{}{}}
		}
		v.added.add(value)
	}
}

func (a *added) add(value string) {
	if _, known := a.values[value]; known {
		return
	}
	if a.size+len(value) > MaxSize {
		a.full = true
		return
	}
	a.size += len(value)
	a.values[value] = struct{}{}
	a.fresh = append(a.fresh, value)
}

// Empty tells whether no value was added.
func (v *Vocabulary) Empty() bool {
	if v == nil {
		return true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.added == nil
}

// Scrub returns a text without the values.
func (v *Vocabulary) Scrub(text string) string {
	if v.Empty() || text == "" {
		return text
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	a := v.added
	if a.full {
		return Withheld
	}
	if a.known == nil {
		a.known = newDictionary(v.open)
	}
	a.known.learn(a.fresh)
	a.fresh = nil
	return a.known.scrub(text)
}

// ScrubError returns err, or if its text has a value in it an error with another text. That is still the same for errors.Is and
// errors.As; who gets at what it wraps must not show it.
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

// Shown is ScrubError for those who take errors apart to show them: the error wraps nothing if it had to be changed.
func (v *Vocabulary) Shown(err error) error {
	if scrubbed, ok := v.ScrubError(err).(*scrubbedError); ok { //nolint:errorlint // one that was scrubbed before may wrap it
		return errors.New(scrubbed.text)
	}
	return err
}

// ScrubPairs is Scrub for the keys and values of a message of a log: what has a secret in it becomes a text. The slice given stays as it
// is.
func (v *Vocabulary) ScrubPairs(keyVals []any) []any {
	if v.Empty() {
		return keyVals
	}
	pairs := make([]any, len(keyVals))
	for i, value := range keyVals {
		pairs[i] = value
		for _, text := range shown(value) {
			if scrubbed := v.Scrub(text); scrubbed != text {
				pairs[i] = scrubbed
				break
			}
		}
	}
	return pairs
}

// shown returns what a log may write of a value: its text, and its JSON, which has also what pointers lead to.
func shown(value any) []string {
	texts := []string{fmt.Sprintf("%+v", value)}
	switch value.(type) {
	case nil, string, []byte, error, bool, int, int32, int64, uint, uint32, uint64, float32, float64:
		return texts
	}
	if text, ok := jsonOf(value); ok {
		texts = append(texts, text)
	}
	return texts
}

// jsonOf returns a value as JSON, if there is such a thing. A method of its type may panic.
func jsonOf(value any) (text string, ok bool) {
	defer func() { _ = recover() }()
	b, err := json.Marshal(value)
	return string(b), err == nil
}

type vocabularyKey struct{}

// Key is the key under which a context has its *Vocabulary, for types that are contexts themselves.
var Key any = vocabularyKey{}

// NewContext returns a child of ctx with a vocabulary, which is that of ctx if it has one. It is for those who call code of authors
// outside of a framework, and scrub what that says.
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

// AddAll is Add for all the strings that a value has in JSON, names of fields and keys excepted.
func AddAll(ctx context.Context, value any) {
	v := From(ctx)
	if v == nil {
		return
	}
	if b, err := json.Marshal(value); err == nil {
		v.Add(leaves(b, false)...)
	}
}

// Scrub returns a text without the values that were added in the reconciliation that ctx belongs to.
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

// GoString implements fmt.GoStringer, so that no way of printing it shows what it wraps.
func (e *scrubbedError) GoString() string { return fmt.Sprintf("%q", e.text) }

// Unwrap returns the error itself.
func (e *scrubbedError) Unwrap() error { return e.err }
