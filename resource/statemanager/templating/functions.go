package templating

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"

	"github.com/operatorkit/operatorkit/resource/internal/exact"
	"github.com/operatorkit/operatorkit/resource/internal/yamlsize"
)

// unrepeatable are functions of sprig that are left out beside those that sprig itself calls not hermetic: they read the time or the time
// zone, make something up, or are there to take long.
var unrepeatable = []string{
	"ago", "durationRound", "mustDateModify", "mustToDate", "must_date_modify", "toDate", "unixEpoch",
	"bcrypt", "derivePassword", "encryptAES", "htpasswd", "randInt", "shuffle",
	"genCA", "genCAWithKey", "genPrivateKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey",
}

// functions are those of templates, for one rendering, and the one through which goes what they print.
func functions() (all template.FuncMap, printed any) {
	all = sprig.HermeticTxtFuncMap()
	for _, name := range unrepeatable {
		delete(all, name)
	}
	maps.Copy(all, template.FuncMap{
		"fromYaml": fromYAML, "index": index, "keys": keys, "required": required, "toYaml": toYAML, "values": values,
	})
	m := &meter{bounds: Bounds{Text: MaxSize, Value: maxValue, Total: maxMade}}
	return m.functions(all), func(value any) (any, error) { return value, m.whole(value) }
}

// index is that of text/template, but for a key that a map does not have: it is an error.
func index(item any, keys ...any) (any, error) {
	for _, key := range keys {
		of, by := reflect.ValueOf(item), reflect.ValueOf(key)
		switch {
		case of.Kind() == reflect.Map && by.IsValid() && by.Type().AssignableTo(of.Type().Key()):
			found := of.MapIndex(by)
			if !found.IsValid() {
				return nil, fmt.Errorf("%s %q", missing, key)
			}
			item = found.Interface()
		case of.Kind() == reflect.Slice && by.IsValid() && by.CanInt():
			if i := by.Int(); i < 0 || i >= int64(of.Len()) {
				return nil, fmt.Errorf("there is no element %d in a list of %d", i, of.Len())
			}
			item = of.Index(int(by.Int())).Interface()
		default:
			return nil, fmt.Errorf("%T has nothing at a %T", item, key)
		}
	}
	return item, nil
}

// keys are those of maps, in their order; sprig has them in any.
func keys(of ...map[string]any) []string {
	var all []string
	for _, each := range of {
		all = append(all, slices.Collect(maps.Keys(each))...)
	}
	slices.Sort(all)
	return all
}

// values are those of a map in the order of its keys; sprig has them in any.
func values(of map[string]any) []any {
	var all []any
	for _, key := range keys(of) {
		all = append(all, of[key])
	}
	return all
}

func toYAML(value any) (string, error) {
	text, err := yaml.Marshal(value)
	return strings.TrimSuffix(string(text), "\n"), err
}

func fromYAML(text string) (map[string]any, error) {
	if _, err := yamlsize.Of([]byte(text), maxValue); err != nil {
		return nil, err
	}
	value, err := exact.Map([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("it is no YAML map: %w", err)
	}
	return value, nil
}

func required(message string, value any) (any, error) {
	if value == nil || value == "" {
		return nil, errors.New(message)
	}
	return value, nil
}
