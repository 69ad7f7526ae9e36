package plan_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/framework/plan"
)

// credentials is a type that was made of that of Secrets, and lost its methods.
type credentials corev1.Secret

// speaking would say all that is in it.
type speaking struct{ Inner any }

func (s speaking) String() string { return fmt.Sprintf("%v and %+v", s.Inner, s.Inner) }

// marshaling makes JSON of what is in it.
type marshaling struct{ inner any }

func (m marshaling) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"inner": m.inner})
}

// holding has fields of all sorts.
type holding struct {
	Name   string
	Any    any `json:"any"`
	hidden any
}

// kindless is a Secret as it stands in a list.
func kindless(value string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"name": "token"}, "type": "Opaque",
		"data": map[string]any{"password": base64.StdEncoding.EncodeToString([]byte(value))},
	}
}

func withKind(kind string, object map[string]any) map[string]any {
	object["apiVersion"], object["kind"] = "v1", kind
	return object
}

func encoded(value any) []byte {
	b, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return b
}

// secretShapes are the forms in which a part of a patch holds a Secret.
var secretShapes = map[string]func(value string) any{
	"typed":                     func(v string) any { return secret(v) },
	"a value":                   func(v string) any { return *secret(v) },
	"a typed list":              func(v string) any { return &corev1.SecretList{Items: []corev1.Secret{*secret(v)}} },
	"a list as a value":         func(v string) any { return corev1.SecretList{Items: []corev1.Secret{*secret(v)}} },
	"a slice":                   func(v string) any { return []corev1.Secret{*secret(v)} },
	"another type":              func(v string) any { return credentials(*secret(v)) },
	"a pointer to another type": func(v string) any { c := credentials(*secret(v)); return &c },
	"untyped":                   func(v string) any { return untyped(v) },
	"untyped without a kind":    func(v string) any { return &unstructured.Unstructured{Object: kindless(v)} },
	"untyped, text without a kind": func(v string) any {
		return &unstructured.Unstructured{Object: map[string]any{"stringData": map[string]any{"a": v}}}
	},
	"a raw map":                    func(v string) any { return withKind("Secret", kindless(v)) },
	"a raw map of text":            func(v string) any { return untyped(v).Object },
	"a raw map without apiVersion": func(v string) any { return map[string]any{"kind": "Secret", "stringData": map[string]string{"a": v}} },
	"a raw map without a kind":     func(v string) any { return kindless(v) },
	"a raw map with keys of any": func(v string) any {
		return map[any]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[any]any{"a": v}}
	},
	"a raw list":             func(v string) any { return withKind("SecretList", map[string]any{"items": []any{kindless(v)}}) },
	"a raw list of anything": func(v string) any { return withKind("List", map[string]any{"items": []any{untyped(v).Object}}) },
	"an untyped list without kinds": func(v string) any {
		return &unstructured.UnstructuredList{Items: []unstructured.Unstructured{{Object: kindless(v)}}}
	},
	"an untyped list with its kind": func(v string) any { return untypedList("SecretList", kindless(v)) },
	"a list of text with its kind":  func(v string) any { return untypedList("SecretList", map[string]any{"data": map[string]any{"a": v}}) },
	"a list of raw extensions": func(v string) any {
		return &metav1.List{Items: []runtime.RawExtension{{Raw: encoded(untyped(v).Object)}}}
	},
	"a list of extensions":      func(v string) any { return &metav1.List{Items: []runtime.RawExtension{{Object: secret(v)}}} },
	"a raw extension":           func(v string) any { return runtime.RawExtension{Raw: encoded(untyped(v).Object)} },
	"an extension":              func(v string) any { return runtime.RawExtension{Object: secret(v)} },
	"a pointer to an extension": func(v string) any { return &runtime.RawExtension{Object: secret(v)} },
	"unknown":                   func(v string) any { return &runtime.Unknown{Raw: encoded(untyped(v).Object)} },
	"raw JSON":                  func(v string) any { return json.RawMessage(encoded(untyped(v).Object)) },
	"raw JSON without a kind":   func(v string) any { return json.RawMessage(encoded(secret(v))) },
	"bytes of JSON":             func(v string) any { return encoded(untyped(v).Object) },
	"a text of JSON":            func(v string) any { return string(encoded(untyped(v).Object)) },
	"a text of JSON in JSON":    func(v string) any { return string(encoded(string(encoded(untyped(v).Object)))) },
	"a manifest":                func(v string) any { return "apiVersion: v1\nkind: Secret\nstringData:\n  password: " + v + "\n" },
	"an apply configuration": func(v string) any {
		return applycorev1.Secret("token", "default").WithStringData(map[string]string{"a": v})
	},
}

func untypedList(kind string, items ...map[string]any) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	for _, item := range items {
		list.Items = append(list.Items, unstructured.Unstructured{Object: item})
	}
	return list
}

// wrappings are what a value can be in.
var wrappings = map[string]func(inner any) any{
	"a pointer":        func(inner any) any { return &inner },
	"a slice":          func(inner any) any { return []any{"public", inner} },
	"an array":         func(inner any) any { return [1]any{inner} },
	"a map":            func(inner any) any { return map[string]any{"key": inner} },
	"a map by number":  func(inner any) any { return map[int]any{7: inner} },
	"a field":          func(inner any) any { return holding{Name: "h", Any: inner} },
	"a hidden field":   func(inner any) any { return &holding{Name: "h", hidden: inner} },
	"a Stringer":       func(inner any) any { return speaking{inner} },
	"a json.Marshaler": func(inner any) any { return marshaling{inner} },
	"a changer": func(inner any) any {
		return teller{[]plan.Change{{Object: plan.Object{Name: "t"}, Fields: []plan.FieldChange{{Path: "f", New: inner}}}}}
	},
	"a custom resource": func(inner any) any {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Vault", "metadata": map[string]any{"name": "v"}, "spec": map[string]any{"inner": inner},
		}}
	},
}

// everythingShown is all that people can see of changes.
func everythingShown(t interface {
	Helper()
	Fatal(...any)
}, changes, others []plan.Change) string {
	t.Helper()
	of := func(changes []plan.Change) *plan.Plan {
		return &plan.Plan{Outcome: plan.Planned, Resources: []plan.Resource{{Name: "r", Changes: changes}}}
	}
	var b strings.Builder
	b.WriteString(plan.Difference(of(changes), of(others)))
	comparisons := []*plan.Comparison{plan.Compare(of(changes), of(others))}
	for _, err := range []error{
		plan.WriteText(&b, []*plan.Plan{of(changes)}, plan.TextOptions{MaxValue: -1, MaxLines: -1}), plan.WriteJSON(&b, []*plan.Plan{of(changes)}),
		plan.WriteShadowText(&b, comparisons, plan.TextOptions{MaxValue: -1}), plan.WriteShadowJSON(&b, comparisons),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprintf(&b, "%v\n%+v\n%#v\n", changes, changes, changes)
	return b.String()
}

func notShown(t interface {
	Helper()
	Errorf(string, ...any)
}, shown string, values ...string) {
	t.Helper()
	for _, v := range values {
		inner := base64.StdEncoding.EncodeToString([]byte(v))
		for name, form := range map[string]string{
			"as it is": v, "as base64": strings.TrimRight(inner, "="), "as bytes": strings.Trim(fmt.Sprintf("%d", []byte(v)), "[]"),
			"as bytes of its base64": strings.Trim(fmt.Sprintf("%d", []byte(inner)), "[]"), "in hexadecimal": fmt.Sprintf("%x", v),
		} {
			if strings.Contains(shown, form) {
				t.Errorf("%q is shown %s in:\n%s", v, name, shown)
			}
		}
		for shift := range 3 { // in a longer base64
			longer := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat(" ", shift) + v))
			if part := longer[(shift*8+5)/6 : len(longer)-2]; strings.Contains(shown, part) {
				t.Errorf("%q is shown within base64 in:\n%s", v, shown)
			}
		}
	}
}

func TestR14NoShapeOfASecretIsInAPlan(t *testing.T) {
	const first, second = "hunter2-and-more", "correct-horse!battery"
	for name, shape := range secretShapes {
		t.Run(name, func(t *testing.T) {
			for wrapping, wrap := range wrappings {
				describe(t, "in "+wrapping, func(v string) any { return wrap(shape(v)) }, first, second)
			}
			describe(t, "alone", shape, first, second)
		})
	}
}

func describe(t *testing.T, where string, part func(value string) any, first, second string) {
	t.Helper()
	create := plan.Describe(plan.Create, part(first), nil)
	update := plan.Describe(plan.Update, part(second), part(first))
	remove := plan.Describe(plan.Delete, part(second), nil)
	if len(create) == 0 || len(update) == 0 || len(remove) == 0 {
		t.Errorf("%s: a change is missing", where)
	}
	for _, changes := range [][]plan.Change{create, update, remove} {
		notShown(t, where+":\n"+everythingShown(t, changes, create), first, second)
	}
}

// R14: however deep a Secret is in a part of a patch, and in whatever form.
func TestR14NoSecretIsInAPlanHoweverDeepItIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-zA-Z0-9+/_-]{12,24}`), 2, 2, rapid.ID[string]).Draw(t, "values")
		shape := rapid.SampledFrom(keysOf(secretShapes)).Draw(t, "shape")
		around := rapid.SliceOfN(rapid.SampledFrom(keysOf(wrappings)), 0, 4).Draw(t, "wrappings")
		part := func(value string) any {
			inner := secretShapes[shape](value)
			for _, wrapping := range around {
				inner = wrappings[wrapping](inner)
			}
			return inner
		}
		create := plan.Describe(plan.Create, part(values[0]), nil)
		update := plan.Describe(plan.Update, part(values[1]), part(values[0]))
		remove := plan.Describe(plan.Delete, part(values[1]), nil)
		for _, changes := range [][]plan.Change{create, update, remove} {
			notShown(t, everythingShown(t, changes, create), values...)
		}
	})
}
