package operatorkit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	database "github.com/operatorkit/operatorkit/examples/database/v1alpha1"
	quickstart "github.com/operatorkit/operatorkit/examples/quickstart/v1alpha1"
	postgres "github.com/operatorkit/operatorkit/examples/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/operator"
	machines "github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	clusters "github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	services "github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// unreadable are texts that types with a decoder of their own may or may not be able to read. What one can't read must be refused by its
// schema. Those of a quantity that are marked as large can be read, and take hours to be compared or printed.
var unreadable = map[reflect.Type]struct{ texts, large []string }{
	reflect.TypeFor[metav1.Duration](): {texts: []string{
		"", "30", "1d", "1 minute", "1h 30m", "-", "s", "1e3s", "soon", "9999999h", "99999999999999999999s", "2562047h48m", "10000000h0m0.5s",
	}},
	reflect.TypeFor[resource.Quantity](): {
		texts: []string{"", "much", "1Xi", "1 Gi", "1e99999999999999999999", "1e1.5", "1e.5", "1ki", "1GiB", "."},
		large: []string{"1e2147483647", "1e-2147483000", "1e1000", strings.Repeat("9", 100), "0." + strings.Repeat("1", 100)},
	},
}

// readable are texts that must not be refused, of which a schema may leave out those that are too large or too small for it.
var readable = map[reflect.Type][]string{
	reflect.TypeFor[metav1.Duration](): {"30s", "1m30s", "1h0m0s", "1.5h", "24h0m0s", "2h", "720h"},
	reflect.TypeFor[resource.Quantity](): {
		"1", "0.5", ".5", "1.5", "+1", "500m", "512Mi", "1Gi", "0.25Gi", "1e9", "1E9", "5e-1", "100k", "8Ei", "9223372036854775807", "1000000u", "1000000000n",
	},
}

// TestEverySchemaRefusesWhatCanNotBeRead holds for all that users write: a typed list of objects can't be read when one of them can't, so
// that a slip of one user would stop an operator for all.
func TestEverySchemaRefusesWhatCanNotBeRead(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		database.AddToScheme, quickstart.AddToScheme, postgres.AddToScheme, machines.AddToScheme, clusters.AddToScheme, services.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	var folders []string
	err := filepath.WalkDir(".", func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); name == "testdata" || len(name) > 1 && strings.HasPrefix(name, ".") {
			return filepath.SkipDir
		}
		if entry.Name() == "crd" {
			folders = append(folders, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	env, err := cel.NewEnv(cel.Variable("self", cel.StringType))
	if err != nil {
		t.Fatal(err)
	}
	w := &schemaWalk{t: t, env: env}
	for _, folder := range folders {
		crds, err := operator.ReadCRDs(os.DirFS(folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, crd := range crds {
			for _, version := range crd.Spec.Versions {
				kind := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
				obj, err := scheme.New(kind)
				if err != nil {
					t.Errorf("%s: add its API to this test: %v", folder, err)
					continue
				}
				w.object(kind.Kind, version.Schema.OpenAPIV3Schema, reflect.TypeOf(obj).Elem(), "apiVersion", "kind", "metadata", "status")
			}
		}
	}
	for kind := range unreadable {
		if w.seen[kind] == 0 {
			t.Errorf("no field of type %v was found: the test looks at something else", kind)
		}
	}
}

// schemaWalk goes through a schema and the type into which it is read, side by side.
type schemaWalk struct {
	t    *testing.T
	env  *cel.Env
	seen map[reflect.Type]int
}

func (w *schemaWalk) object(path string, s *apiextensionsv1.JSONSchemaProps, typ reflect.Type, but ...string) {
	for field := range typ.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && field.Anonymous {
			w.object(path, s, field.Type, but...)
			continue
		}
		// What a schema does not have the server takes away.
		if p, ok := s.Properties[name]; ok && !slices.Contains(but, name) {
			w.value(path+"."+name, &p, field.Type)
		}
	}
}

func (w *schemaWalk) value(path string, s *apiextensionsv1.JSONSchemaProps, typ reflect.Type) {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if _, own := reflect.New(typ).Interface().(json.Unmarshaler); own {
		w.text(path, s, typ)
		return
	}
	switch typ.Kind() {
	case reflect.Struct:
		w.object(path, s, typ)
	case reflect.Map:
		if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
			w.value(path+".*", s.AdditionalProperties.Schema, typ.Elem())
		}
	case reflect.Slice:
		if s.Items != nil && s.Items.Schema != nil {
			w.value(path+"[]", s.Items.Schema, typ.Elem())
		}
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		w.number(path, s, typ)
	}
}

// number wants bounds of what is smaller than the 64 bits with a sign that a server takes.
func (w *schemaWalk) number(path string, s *apiextensionsv1.JSONSchemaProps, typ reflect.Type) {
	if s.Format == "int32" && typ.Kind() == reflect.Int32 {
		return
	}
	v := reflect.New(typ).Elem()
	within := func(bound *float64) bool {
		if bound == nil {
			return false
		}
		if v.CanUint() {
			return *bound >= 0 && !v.OverflowUint(uint64(*bound))
		}
		return !v.OverflowInt(int64(*bound))
	}
	if !within(s.Minimum) || typ.Size() < 8 && !within(s.Maximum) {
		w.t.Errorf("%s: the schema takes numbers that a %v can't have: give it a Minimum and a Maximum", path, typ)
	}
}

// text wants a rule that refuses what can't be read.
func (w *schemaWalk) text(path string, s *apiextensionsv1.JSONSchemaProps, typ reflect.Type) {
	samples, known := unreadable[typ]
	switch {
	case typ == reflect.TypeFor[apiextensionsv1.JSON](), typ == reflect.TypeFor[runtime.RawExtension]():
		return
	case !known:
		w.t.Errorf("%s: say in this test which texts a %v can't be read from", path, typ)
		return
	}
	if w.seen == nil {
		w.seen = map[reflect.Type]int{}
	}
	w.seen[typ]++
	for _, text := range samples.texts {
		quoted, err := json.Marshal(text)
		if err != nil {
			w.t.Fatal(err)
		}
		if json.Unmarshal(quoted, reflect.New(typ).Interface()) != nil && w.refusal(path, s, text) == nil {
			w.t.Errorf("%s: the schema takes %q, which can't be read: give it a rule like those of other fields of the type %v", path, text, typ)
		}
	}
	for _, text := range samples.large {
		if w.refusal(path, s, text) == nil {
			w.t.Errorf("%s: the schema takes %.20q: bound its digits as other fields of the type %v do", path, text, typ)
		}
		if api.IsQuantity(text) {
			w.t.Errorf("api.IsQuantity takes %.20q", text)
		}
	}
	taken := 0
	for _, text := range readable[typ] {
		err := w.refusal(path, s, text)
		if typ == reflect.TypeFor[resource.Quantity]() && !api.IsQuantity(text) {
			w.t.Errorf("api.IsQuantity refuses %q", text)
		}
		if err == nil {
			taken++
		} else if typ != reflect.TypeFor[metav1.Duration]() {
			w.t.Errorf("%s: the schema refuses %q: %v", path, text, err)
		}
	}
	if taken == 0 {
		w.t.Errorf("%s: the schema refuses all of %q", path, readable[typ])
	}
}

// refusal returns why a schema refuses a text.
func (w *schemaWalk) refusal(path string, s *apiextensionsv1.JSONSchemaProps, text string) error {
	if s.MaxLength != nil && int64(len(text)) > *s.MaxLength {
		return fmt.Errorf("it has more than %d characters", *s.MaxLength)
	}
	for _, one := range append([]apiextensionsv1.JSONSchemaProps{*s}, s.AllOf...) {
		if one.Pattern != "" && !regexp.MustCompile(one.Pattern).MatchString(text) {
			return fmt.Errorf("it does not match %s", one.Pattern)
		}
	}
	for _, rule := range s.XValidations {
		ast, issues := w.env.Compile(rule.Rule)
		if issues.Err() != nil {
			w.t.Fatalf("%s: rule %s: %v", path, rule.Rule, issues.Err())
		}
		program, err := w.env.Program(ast)
		if err != nil {
			w.t.Fatalf("%s: rule %s: %v", path, rule.Rule, err)
		}
		is, _, err := program.Eval(map[string]any{"self": text})
		if err == nil && is != types.True {
			err = errors.New("it is not so")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", rule.Message, err)
		}
	}
	return nil
}
