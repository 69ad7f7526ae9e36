package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/operatorkit/operatorkit/framework/plan"
)

// reference is what can be within ${}: a name with dots between the keys of maps, and what to do without a value.
var reference = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*)(:string)?(?:(:-)((?s:.*)))?$`)

// values are what references stand for.
type values struct {
	// tree has the values, and secret has true for each leaf that must not be shown.
	tree, secret map[string]any
}

func newValues(tree, secret map[string]any) values { return values{tree: tree, secret: secret} }

// replace returns a document with the values in place of its references, and whether a secret value went into it. The
// document is not changed. What is put in counts in the budget.
func (v values) replace(d document, budget *budget) (document, bool, error) {
	if len(v.tree) == 0 || textOf(d.value, "metadata", "annotations", SubstituteAnnotation) == disabled {
		return d, false, nil
	}
	r := replacement{values: v, budget: budget}
	value, err := r.in(d.value, "")
	if err != nil {
		return d, false, fmt.Errorf("%s: %w", d, err)
	}
	return document{file: d.file, value: value}, r.secret, nil
}

// replacement is the work on one document.
type replacement struct {
	values values
	budget *budget
	secret bool
}

// in returns a value with its references replaced. Nothing that was put in is looked through again.
func (r *replacement) in(value any, path string) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		replaced := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			inner, err := r.in(v[name], strings.TrimPrefix(path+plan.Segment(name), "."))
			if err != nil {
				return nil, err
			}
			replaced[name] = inner
		}
		return replaced, nil
	case []any:
		replaced := make([]any, len(v))
		for i := range v {
			inner, err := r.in(v[i], fmt.Sprintf("%s[%d]", path, i))
			if err != nil {
				return nil, err
			}
			replaced[i] = inner
		}
		return replaced, nil
	case string:
		replaced, err := r.text(v, path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return replaced, nil
	}
	return value, nil
}

// text replaces the references in a text. It is one pass from left to right.
func (r *replacement) text(text, path string) (any, error) {
	if !strings.Contains(text, "${") {
		return text, nil
	}
	var b strings.Builder
	rest := text
	for {
		at := strings.Index(rest, "${")
		if at < 0 {
			b.WriteString(rest)
			return b.String(), nil
		}
		if at > 0 && rest[at-1] == '$' {
			b.WriteString(rest[:at-1] + "${")
			rest = rest[at+len("${"):]
			continue
		}
		end := strings.IndexByte(rest[at:], '}')
		if end < 0 {
			return nil, errors.New("${ has no end: write $${ for the text ${")
		}
		inside := rest[at+len("${") : at+end]
		value, err := r.value(inside, path)
		if err != nil {
			return nil, err
		}
		if at == 0 && at+end+1 == len(rest) && len(rest) == len(text) {
			return runtime.DeepCopyJSONValue(number(value)), nil
		}
		word, ok := textValue(value)
		if !ok {
			return nil, fmt.Errorf("${%s} is a list or a map, and can't be within a text", inside)
		}
		b.WriteString(rest[:at])
		b.WriteString(word)
		rest = rest[at+end+1:]
	}
}

// nameless are the fields that nothing secret may go into, since they are shown.
var nameless = []string{"apiVersion", "kind", "metadata.name", "metadata.namespace"}

// value returns what stands for what is within ${}.
func (r *replacement) value(inside, path string) (any, error) {
	parts := reference.FindStringSubmatch(inside)
	if parts == nil {
		return nil, fmt.Errorf("${%s} is no reference: it is ${name}, ${name:-default} or ${name:string}; write $${ for the text ${, or "+
			"switch references off in this object with the annotation %s: %s", inside, SubstituteAnnotation, disabled)
	}
	name, asText, hasDefault, standard := parts[1], parts[2] != "", parts[3] != "", parts[4]
	keys := strings.Split(name, ".")
	value, ok := lookUp(r.values.tree, keys)
	switch {
	case ok:
		if hasSecret(r.values.secret, keys) {
			if plan.Below(path, nameless...) {
				return nil, fmt.Errorf("the value %s comes from a Secret, and would be shown here: take it from elsewhere", name)
			}
			r.secret = true
		}
		// A few files may refer to a large value very often.
		if err := r.budget.takeValue(value); err != nil {
			return nil, fmt.Errorf("${%s}: %w", name, err)
		}
	case hasDefault:
		value = defaultOf(standard)
	default:
		return nil, fmt.Errorf("there is no value %s: add it, give the reference a default like ${%s:-none}, or write $${%s} for the text",
			name, name, name)
	}
	if !asText {
		return value, nil
	}
	word, ok := textValue(value)
	if !ok {
		return nil, fmt.Errorf("${%s} is a list or a map, and no text", inside)
	}
	return word, nil
}

// defaultOf returns the value of a default: what YAML makes of it, with a number as it is written, and else the text.
func defaultOf(text string) any {
	value, err := valueOf([]byte(text))
	switch value.(type) {
	case nil, map[string]any, []any:
		return text
	case int64, float64:
		if json.Valid([]byte(text)) {
			return json.Number(text)
		}
	}
	if err != nil {
		return text
	}
	return value
}

// lookUp finds a value by the keys that lead to it.
func lookUp(tree map[string]any, keys []string) (any, bool) {
	value, ok := tree[keys[0]]
	if !ok || len(keys) == 1 {
		return value, ok
	}
	inner, ok := value.(map[string]any)
	if !ok {
		return nil, false
	}
	return lookUp(inner, keys[1:])
}

// hasSecret tells whether something secret is at the end of the keys, or in it.
func hasSecret(secret map[string]any, keys []string) bool {
	var at any = secret
	for _, key := range keys {
		if at == true {
			return true
		}
		at = field(at, key)
	}
	return anySecret(at)
}

func anySecret(at any) bool {
	switch v := at.(type) {
	case bool:
		return v
	case map[string]any:
		for _, inner := range v {
			if anySecret(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, anySecret)
	}
	return false
}

// number makes whole numbers int64, as objects have them, and others float64.
func number(value any) any {
	switch v := value.(type) {
	case int:
		return int64(v)
	case json.Number:
		if whole, err := v.Int64(); err == nil {
			return whole
		}
		float, _ := v.Float64() // What is too large is infinite, and refused by whoever writes it.
		return number(float)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	case map[string]any:
		whole := make(map[string]any, len(v))
		for name, inner := range v {
			whole[name] = number(inner)
		}
		return whole
	case []any:
		whole := make([]any, len(v))
		for i, inner := range v {
			whole[i] = number(inner)
		}
		return whole
	}
	return value
}

// textValue writes a value within a text. It is not ok for lists and maps.
func textValue(value any) (text string, ok bool) {
	switch v := value.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case json.Number:
		return v.String(), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	}
	return "", false
}
