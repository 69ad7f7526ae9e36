package inspector

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/operatorkit/operatorkit/informer"
)

// defaultLimit and maxLimit are how many objects are answered at once.
const (
	defaultLimit = 50
	maxLimit     = 1000
)

// maxWords is how many words may be searched for: each is looked for in every object, and others wait meanwhile.
const maxWords = 32

// query says which objects are asked for.
type query struct {
	wanted
	// has tells of which objects by their keys; nil is all. Where wanted.of is the same, so is what it tells.
	has func(key informer.Key) bool
}

// wanted is what can be compared of a query.
type wanted struct {
	framework string
	kind      string
	namespace string
	name      string
	// words are in small letters, with a space between each two.
	words         string
	state         State
	offset, limit int
	// of says whose objects are asked for, where replicas share them.
	of string
}

// queryOf reads what is asked for. Another replica may ask for more at once. The error is a
// refusal.
func queryOf(r *http.Request) (query, error) {
	values, most := r.Form, maxLimit
	if r.Header.Get(forwardedHeader) != "" {
		most = maxMerged
	}
	words := strings.Fields(strings.ToLower(values.Get("q")))
	q := query{wanted: wanted{
		framework: values.Get("framework"), kind: values.Get("kind"), namespace: values.Get("namespace"), name: values.Get("name"),
		words: strings.Join(words, " "), state: State(values.Get("state")), limit: defaultLimit,
	}}
	if len(words) > maxWords {
		return q, badRequest("q must have %d words at most, has %d", maxWords, len(words))
	}
	if q.state != "" && !slices.Contains(states, q.state) {
		return q, badRequest("state must be one of %q, is %q", states, q.state)
	}
	number := func(name string, to *int, least, most int) error {
		text := values.Get(name)
		if text == "" {
			return nil
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return badRequest("%s must be a number from %d to %d, is %q", name, least, most, text)
		}
		*to = n
		return nil
	}
	return q, errors.Join(number("offset", &q.offset, 0, 1<<30), number("limit", &q.limit, 1, most))
}

func badRequest(format string, args ...any) error {
	return refusal{fmt.Errorf(format, args...), http.StatusBadRequest}
}

// matchesID tells what can be told of an object without its history.
func (q query) matchesID(id objectID) bool {
	return (q.namespace == "" || q.namespace == id.key.Namespace) && (q.name == "" || q.name == id.key.Name) && (q.has == nil || q.has(id.key))
}

// ofKind tells whether a framework is meant by a kind: the kind of its objects, or its name or the beginning of that, as
// in "websites" for "websites.example.com".
func ofKind(kind, frameworkName, frameworkKind string) bool {
	if kind == "" || strings.EqualFold(kind, frameworkKind) || strings.EqualFold(kind, frameworkName) {
		return true
	}
	first, _, _ := strings.Cut(frameworkName, ".")
	return strings.EqualFold(kind, first)
}
