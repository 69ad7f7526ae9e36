package templating

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

// Bounds are how much the functions of a template may make in one rendering, in bytes: what is made is in memory before anybody sees it.
type Bounds struct {
	// Text is how long a text may be, and Value how large a list or a map, with all that is in it.
	Text, Value int
	// Total is how much all of them may make together.
	Total int
	// Context tells of a map with texts as keys that is what all templates are given. Templates put it into what they give to others, also where
	// it leads to these themselves: there it counts as nothing and is printed as nothing, but for functions that go through all that they are
	// given. Nil is never.
	Context func(value any) bool
	// Ended is asked before each call whether the rendering has to end, and why. Nil is never.
	Ended func() error
}

// Functions returns the functions, and those of text/template that print, with the bounds: they end with an error where they would make more,
// and where a map would be part of itself. They are for one rendering.
func (b Bounds) Functions(all template.FuncMap) template.FuncMap {
	return (&meter{bounds: b}).functions(all)
}

func (m *meter) functions(all template.FuncMap) template.FuncMap {
	bounded := template.FuncMap{}
	for name, f := range printing {
		bounded[name] = m.bound(name, f)
	}
	for name, f := range all {
		bounded[name] = f
		if !slices.Contains(passing, name) {
			bounded[name] = m.bound(name, f)
		}
	}
	if m.bounds.Context != nil {
		bounded["dig"] = dig
	}
	return bounded
}

// printing are the functions of text/template that make texts.
var printing = template.FuncMap{
	"html": template.HTMLEscaper, "js": template.JSEscaper, "print": fmt.Sprint, "printf": fmt.Sprintf, "println": fmt.Sprintln,
	"urlquery": template.URLQueryEscaper,
}

// passing are the functions that return what they are given, or a part of it.
var passing = []string{"coalesce", "default", "dig", "first", "get", "index", "last", "mustFirst", "mustLast", "required", "ternary"}

// walking are the functions that go through all that they are given, some of them for the text of an error only. They are given what has grown
// since it was weighed: set puts something into a map that is in others already, as often as it is in them.
var walking = []string{
	"cat", "deepCopy", "html", "join", "js", "mustDeepCopy", "print", "printf", "println", "quote", "sortAlpha", "squote", "toString", "toStrings",
	"urlquery",
	"mustToJson", "mustToPrettyJson", "mustToRawJson", "mustToToml", "mustToYaml", "toJson", "toPrettyJson", "toRawJson", "toToml", "toYaml",
	"toYamlPretty",
	"add", "add1", "add1f", "addf", "biggest", "ceil", "div", "divf", "float64", "floor", "int", "int64", "max", "maxf", "min", "minf", "mod", "mul",
	"mulf", "mustSlice", "round", "slice", "sub", "subf", "toDecimal",
	"genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey",
}

// merging are those that go through what several maps have in common.
var merging = []string{"merge", "mergeOverwrite", "mustMerge", "mustMergeOverwrite"}

// silent are those of walking that return nothing for what is a part of itself: charts put into their values what all templates are given, and make
// a checksum of them.
var silent = []string{"toJson", "toPrettyJson", "toYaml"}

const (
	// perValue is about how many bytes an element of a list or a map takes, beside those of a text.
	perValue = 16
	// deepest is how deep values may be within each other: what prints them calls itself as often.
	deepest = 200
	// maxSeen is how many values may be looked at to tell how large something is.
	maxSeen = 200_000_000
	// widest is how wide printf makes a value at most.
	widest = 1_000_000
)

// meter counts what the functions of one rendering make.
type meter struct {
	bounds     Bounds
	made, seen int
	// within are the maps in which there is what is weighed.
	within []uintptr
}

// bound returns a function with the bounds.
func (m *meter) bound(name string, f any) any {
	function := reflect.ValueOf(f)
	is := function.Type()
	takes := make([]reflect.Type, is.NumIn())
	for i := range takes {
		takes[i] = is.In(i)
	}
	returns := []reflect.Type{is.Out(0), reflect.TypeFor[error]()}
	return reflect.MakeFunc(reflect.FuncOf(takes, returns, is.IsVariadic()), func(arguments []reflect.Value) []reflect.Value {
		result, err := m.call(name, function, arguments)
		if err != nil {
			result = reflect.Zero(returns[0])
		}
		return []reflect.Value{result, reflect.ValueOf(&err).Elem()}
	}).Interface()
}

func (m *meter) call(name string, function reflect.Value, arguments []reflect.Value) (reflect.Value, error) {
	if m.bounds.Ended != nil {
		if err := m.bounds.Ended(); err != nil {
			return reflect.Value{}, err
		}
	}
	if slices.Contains(storing, name) {
		m.share(arguments)
	}
	if weigh := m.weighing(name); weigh != nil {
		for _, argument := range arguments {
			err := weigh(argument.Interface())
			if errors.Is(err, errItself) && slices.Contains(silent, name) {
				return reflect.ValueOf(""), nil
			}
			if err != nil {
				return reflect.Value{}, err
			}
		}
	}
	// What a list or a map makes is within a few times its size, which was weighed.
	if grows, ok := growth[name]; ok && grows(arguments) > float64(m.bounds.Value) {
		return reflect.Value{}, fmt.Errorf("it makes more than %d bytes: make it smaller", m.bounds.Value)
	}
	call := function.Call
	if function.Type().IsVariadic() {
		call = function.CallSlice
	}
	results := call(arguments)
	if len(results) > 1 {
		if err, failed := results[1].Interface().(error); failed {
			return results[0], err
		}
	}
	return results[0], m.take(results[0].Interface())
}

// take counts what a function has made. What was in memory before, such as an element of a list, counts for the size of the list only.
func (m *meter) take(made any) error {
	if text, ok := made.(string); ok {
		if len(text) > m.bounds.Text {
			return fmt.Errorf("it makes a text of more than %d bytes: make it smaller", m.bounds.Text)
		}
		m.made += len(text)
	} else {
		if err := m.value(made); err != nil {
			return err
		}
		if v := reflect.ValueOf(made); v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
			m.made += v.Len() * perValue
		}
	}
	if m.made > m.bounds.Total {
		return fmt.Errorf("its functions make more than %d bytes together: make it smaller", m.bounds.Total)
	}
	return nil
}

// shared is what all templates are given, where it is in a list or a map. fmt has no end where it prints what is a part of itself.
type shared map[string]any

// Format implements fmt.Formatter.
func (shared) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, "map[...]") }

// dig is the one of sprig, which goes through maps of one type only.
func dig(arguments ...any) (any, error) {
	last := len(arguments) - 1
	if last < 2 {
		return nil, errors.New("dig needs at least three arguments")
	}
	value := arguments[last]
	for _, key := range arguments[:last-1] {
		if is, ok := value.(shared); ok {
			value = map[string]any(is)
		}
		fields, isMap := value.(map[string]any)
		name, isText := key.(string)
		if !isMap || !isText {
			return nil, fmt.Errorf("dig finds nothing in a %T by a %T", value, key)
		}
		var there bool
		if value, there = fields[name]; !there {
			return arguments[last-1], nil
		}
	}
	return value, nil
}

// storing are the functions that put what they are given into a list or a map.
var storing = []string{"append", "dict", "list", "mustAppend", "mustPrepend", "mustPush", "prepend", "push", "set", "tuple"}

// share has what all templates are given be shared.
func (m *meter) share(arguments []reflect.Value) {
	if m.bounds.Context == nil {
		return
	}
	for i, argument := range arguments {
		switch {
		case argument.Kind() == reflect.Slice && argument.Type().Elem().Kind() == reflect.Interface: // those of a variadic function
			given := make([]reflect.Value, argument.Len())
			for j := range given {
				given[j] = argument.Index(j)
			}
			m.share(given)
			arguments[i] = reflect.Append(reflect.MakeSlice(argument.Type(), 0, len(given)), given...)
		case argument.Kind() == reflect.Interface && m.bounds.Context(argument.Interface()):
			arguments[i] = argument.Elem().Convert(reflect.TypeFor[shared]())
		}
	}
}

// isShared tells of what counts as nothing.
func (m *meter) isShared(value any, depth int) bool {
	if m.bounds.Context == nil {
		return false
	}
	_, is := value.(shared)
	return is || depth == 0 && m.bounds.Context(value)
}

// weighing returns how what a function is given is weighed before it is called, if it is.
func (m *meter) weighing(name string) func(value any) error {
	switch {
	case slices.Contains(walking, name):
		return m.whole
	case slices.Contains(merging, name):
		return m.value
	}
	return nil
}

// whole weighs a value that is to be gone through, in which what all templates are given counts as well.
func (m *meter) whole(value any) error {
	anew := &meter{bounds: Bounds{Value: m.bounds.Value}, seen: m.seen}
	err := anew.value(value)
	m.seen = anew.seen
	return err
}

// value weighs a value.
func (m *meter) value(value any) error {
	left := m.bounds.Value
	return m.weigh(value, &left, 0)
}

// errItself is for what has no end.
var errItself = errors.New("it makes a value that is a part of itself")

// weigh takes how large a value is from what is left, as if nothing in it were there twice.
func (m *meter) weigh(value any, left *int, depth int) error {
	if depth > deepest {
		return fmt.Errorf("it makes a value that is nested deeper than %d", deepest)
	}
	if m.seen++; m.seen > maxSeen {
		return errors.New("its functions go through too many values: make it smaller")
	}
	*left -= perValue
	if m.isShared(value, depth) {
		return nil
	}
	if v := reflect.ValueOf(value); v.Kind() == reflect.Map && v.Len() > 0 {
		if slices.Contains(m.within, v.Pointer()) {
			return errItself
		}
		m.within = append(m.within, v.Pointer())
		defer func() { m.within = m.within[:len(m.within)-1] }()
	}
	switch v := value.(type) {
	case string:
		*left -= len(v)
	case []any:
		for i := 0; i < len(v) && *left >= 0; i++ {
			if err := m.weigh(v[i], left, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, inner := range v {
			*left -= len(key)
			if err := m.weigh(inner, left, depth+1); err != nil || *left < 0 {
				return cmp.Or(err, m.tooLarge(*left))
			}
		}
	default:
		if err := m.weighOther(reflect.ValueOf(value), left, depth); err != nil {
			return err
		}
	}
	return m.tooLarge(*left)
}

// weighOther weighs lists and maps of other types.
func (m *meter) weighOther(value reflect.Value, left *int, depth int) error {
	switch value.Kind() {
	case reflect.Slice, reflect.Array:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			*left -= value.Len()
			return nil
		}
		for i := 0; i < value.Len() && *left >= 0; i++ {
			if err := m.weigh(value.Index(i).Interface(), left, depth+1); err != nil {
				return err
			}
		}
	case reflect.Map:
		for each := value.MapRange(); *left >= 0 && each.Next(); {
			*left -= len(each.Key().String())
			if err := m.weigh(each.Value().Interface(), left, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *meter) tooLarge(left int) error {
	if left >= 0 {
		return nil
	}
	return fmt.Errorf("it makes a list or a map of more than %d bytes: make it smaller", m.bounds.Value)
}

// growth tells how many bytes functions make at most that make much of little. They are floating-point numbers, which don't overflow.
var growth = map[string]func(arguments []reflect.Value) float64{
	"repeat":    func(a []reflect.Value) float64 { return number(a[0]) * size(a[1]) },
	"indent":    func(a []reflect.Value) float64 { return number(a[0]) * lines(a[1]) },
	"nindent":   func(a []reflect.Value) float64 { return number(a[0]) * lines(a[1]) },
	"until":     func(a []reflect.Value) float64 { return math.Abs(number(a[0])) * perValue },
	"untilStep": func(a []reflect.Value) float64 { return steps(number(a[0]), number(a[1]), number(a[2])) * perValue },
	"seq":       seqSize,
	"join":      func(a []reflect.Value) float64 { return size(a[0]) * elements(a[1]) },
	"wrapWith":  func(a []reflect.Value) float64 { return size(a[1]) * size(a[2]) / max(1, number(a[0])) },
	"replace": func(a []reflect.Value) float64 {
		return size(a[1]) * float64(strings.Count(a[2].String(), a[0].String()))
	},
	"regexReplaceAll": replaced, "mustRegexReplaceAll": replaced, "regexReplaceAllLiteral": replaced, "mustRegexReplaceAllLiteral": replaced,
	"printf":    printed,
	"randAlpha": random, "randAlphaNum": random, "randAscii": random, "randBytes": random, "randNumeric": random,
}

func random(a []reflect.Value) float64 { return 4 * number(a[0]) } // within what it takes to make them

func number(v reflect.Value) float64 { return float64(v.Int()) }

func size(v reflect.Value) float64 { return float64(v.Len()) }

func lines(v reflect.Value) float64 { return float64(strings.Count(v.String(), "\n") + 1) }

// elements is how many elements a list has; what is none is one.
func elements(v reflect.Value) float64 {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Array {
		return float64(v.Len())
	}
	return 1
}

// steps is how many numbers there are from one to another one. It would be without an end where the last step goes beyond the largest number.
func steps(from, to, by float64) float64 {
	if by == 0 || (to-from)/by < 0 {
		return 0
	}
	if math.Abs(to)+math.Abs(by) >= math.MaxInt64 {
		return math.Inf(1)
	}
	return (to-from)/by + 1
}

// seqSize is for seq, which is given the last number, the first and the last one, or the step between those.
func seqSize(a []reflect.Value) float64 {
	const digits = 20
	var given []float64
	for i := range a[0].Len() {
		given = append(given, number(a[0].Index(i)))
	}
	switch len(given) {
	case 1:
		return digits * (math.Abs(given[0]) + 2)
	case 2:
		return digits * (math.Abs(given[1]-given[0]) + 1)
	case 3:
		return digits * steps(given[0], given[2], given[1])
	}
	return 0
}

// replaced is for functions of an expression, a text, and what comes in the place of each match, in which a text of the match may come again.
func replaced(a []reflect.Value) float64 {
	expression, err := regexp.Compile(a[0].String())
	if err != nil {
		return 0 // The function says so.
	}
	matches := float64(len(expression.FindAllStringIndex(a[1].String(), -1)))
	return matches*size(a[2]) + float64(strings.Count(a[2].String(), "$"))*size(a[1])
}

// numbers are those in a format: how wide something is, and how many digits it has.
var numbers = regexp.MustCompile(`[0-9]+`)

// printed is for a format and what goes into it, each as often as the format says.
func printed(a []reflect.Value) float64 {
	format, widths, largest := a[0].String(), 0, 0.0
	for _, digits := range numbers.FindAllString(format, -1) {
		if n, err := strconv.Atoi(digits); err != nil || n > widths {
			widths = min(n, widest)
		}
	}
	for i := range a[1].Len() {
		left := math.MaxInt
		// What is too deep or too much was refused when it was made.
		_ = (&meter{}).weigh(a[1].Index(i).Interface(), &left, 0)
		largest = max(largest, float64(math.MaxInt-left))
	}
	if strings.Contains(format, "*") {
		widths = widest
	}
	return float64(strings.Count(format, "%")) * (float64(widths) + largest)
}
