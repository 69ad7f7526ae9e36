package plan_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operatorkit/operatorkit/framework/plan"
)

// teller tells its changes.
type teller struct{ changes []plan.Change }

func (t teller) Changes() []plan.Change { return t.changes }

// chore describes itself in a phrase.
type chore struct{ Name, Phrase string }

func (c *chore) DescribeChange() string { return c.Phrase }

// release has a string.
type release struct{ Name, Version string }

func (r release) String() string { return r.Name + "@" + r.Version }

// container is a thing without methods.
type container struct {
	Name    string
	Image   string `json:"image"`
	Ports   []int  `json:"ports,omitempty"`
	Started time.Time
	env     map[string]string
	limit   *resource.Quantity
}

type phase string

// lines are the changes as text, one line for each change and each of its fields.
func lines(changes []plan.Change) []string {
	got := []string{}
	for _, c := range changes {
		line := strings.TrimSpace(fmt.Sprintf("%s %s", c.Action, c.Object))
		if c.Description != "" {
			line += ": " + c.Description
		}
		got = append(got, line)
		for _, f := range c.Fields {
			got = append(got, "  "+f.String())
		}
	}
	return got
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: data}
}

// stored is an object as a server returns it.
func stored(cm *corev1.ConfigMap) *corev1.ConfigMap {
	cm.UID, cm.ResourceVersion, cm.Generation = "f00", "7", 3
	cm.CreationTimestamp = metav1.NewTime(time.Unix(1e9, 0))
	cm.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "somebody"}}
	return cm
}

func TestDescribe(t *testing.T) {
	started := time.Unix(0, 0).UTC()
	limit := resource.MustParse("1Gi")
	for name, tc := range map[string]struct {
		action        plan.Action
		part, current any
		want          []string
	}{
		"nothing":              {plan.Create, nil, nil, nil},
		"a nil pointer":        {plan.Create, (*corev1.ConfigMap)(nil), nil, nil},
		"a zero value":         {plan.Create, container{}, nil, nil},
		"an empty slice":       {plan.Create, []*corev1.ConfigMap{}, nil, nil},
		"an empty map":         {plan.Update, map[string]string{}, nil, nil},
		"a slice of nothing":   {plan.Create, []*corev1.ConfigMap{nil, nil}, nil, nil},
		"a list without items": {plan.Create, &corev1.ConfigMapList{}, nil, nil},

		"a changer": {
			plan.Update, teller{[]plan.Change{
				{Object: plan.Object{Name: "a"}, Fields: []plan.FieldChange{{Path: "x", Old: 1, New: []string{"2"}}}},
				{Action: plan.Delete, Object: plan.Object{Name: "b"}},
			}}, nil,
			[]string{"update a", `  x: 1 -> ["2"]`, "delete b"},
		},
		"changers in a slice": {
			plan.Create, []any{&teller{[]plan.Change{{Object: plan.Object{Name: "a"}}}}, nil, teller{}}, nil,
			[]string{"create a"},
		},
		"a changer whose field is sensitive": {
			plan.Update, teller{[]plan.Change{{
				Object: plan.Object{Name: "a"}, Fields: []plan.FieldChange{{Path: "x", Old: "1", New: "2", Sensitive: true}},
			}}}, nil,
			[]string{"update a", "  x: (sensitive, changed)"},
		},

		"an object that is created": {
			plan.Create, configMap("a", map[string]string{"x": "1", "a.b": "2"}), nil,
			[]string{"create ConfigMap default/a", `  data["a.b"]: "2"`, `  data.x: "1"`},
		},
		"an object that is updated": {
			plan.Update,
			configMap("a", map[string]string{"x": "2", "new": "1"}),
			stored(configMap("a", map[string]string{"x": "1", "old": "1", "same": "1"})),
			[]string{"update ConfigMap default/a", `  data.new: "1"`, `  data.old: "1" removed`, `  data.same: "1" removed`, `  data.x: "1" -> "2"`},
		},
		"an object that is deleted": {
			plan.Delete, stored(configMap("a", map[string]string{"x": "1"})), nil,
			[]string{"delete ConfigMap default/a"},
		},
		"an object that is updated among others": {
			plan.Update,
			[]corev1.ConfigMap{*configMap("b", map[string]string{"x": "2"})},
			map[string]*corev1.ConfigMap{"1": configMap("a", nil), "2": configMap("b", map[string]string{"x": "1"})},
			[]string{"update ConfigMap default/b", `  data.x: "1" -> "2"`},
		},
		"an object that current does not hold": {
			plan.Update, configMap("a", map[string]string{"x": "1"}), configMap("b", nil),
			[]string{"update ConfigMap default/a", `  data.x: "1"`},
		},
		"an object in another form than in current": {
			plan.Update,
			&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "default", "name": "a"},
				"data": map[string]any{"x": "2"},
			}},
			corev1.ConfigMapList{Items: []corev1.ConfigMap{*stored(configMap("a", map[string]string{"x": "1"}))}},
			[]string{"update ConfigMap default/a", `  data.x: "1" -> "2"`},
		},
		"elements of lists are found by name": {
			plan.Update, deployment("web:2"), deployment("web:1"),
			[]string{"update Deployment default/web", `  spec.template.spec.containers[name=web].image: "web:1" -> "web:2"`},
		},
		"an untyped object with numbers that are not JSON's": {
			plan.Create,
			&unstructured.Unstructured{Object: map[string]any{"kind": "Website", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"replicas": 2}}}, nil,
			[]string{"create Website a", "  spec.replicas: 2"},
		},

		"a describer": {plan.Update, &chore{"token", "rotate it"}, nil, []string{"update chore token: rotate it"}},
		"describers by value": {
			plan.Update, []chore{{"a", "x"}, {"b", "y"}}, nil,
			[]string{"update chore a: x", "update chore b: y"},
		},
		"a stringer": {plan.Create, release{"web", "v1"}, nil, []string{"create release web: web@v1"}},
		"a stringer that changes": {
			plan.Update, []release{{"web", "v2"}}, []release{{"db", "v1"}, {"web", "v1"}},
			[]string{"update release web: web@v1 -> web@v2"},
		},
		"an address is one thing": {plan.Create, net.IPv4(127, 0, 0, 1), nil, []string{"create IP: 127.0.0.1"}},

		"a struct that is created": {
			plan.Create, container{Name: "web", Image: "web:1", Started: started, env: map[string]string{"A": "1"}, limit: &limit}, nil,
			[]string{"create container web", `  Name: "web"`, `  Started: "1970-01-01T00:00:00Z"`, `  env.A: "1"`, `  image: "web:1"`, `  limit: "1Gi"`},
		},
		"a struct that is updated": {
			plan.Update,
			container{Name: "web", Image: "web:2", Ports: []int{80, 443}, env: map[string]string{"A": "1"}},
			[]*container{{Name: "db"}, {Name: "web", Image: "web:1", Ports: []int{80}, env: map[string]string{"A": "0"}}},
			[]string{"update container web", `  env.A: "0" -> "1"`, `  image: "web:1" -> "web:2"`, "  ports: [80] -> [80,443]"},
		},
		"a struct that is deleted": {plan.Delete, container{Name: "web", Image: "web:1"}, nil, []string{"delete container web"}},
		"a map sorted by key": {
			plan.Create, map[phase]any{"b": 2, "a": "x", "c": nil}, nil,
			[]string{`create a: "x"`, "create b: 2"},
		},
		"a map of maps": {plan.Update, map[string]map[int]bool{"x": {10: true}}, nil, []string{"update x/10: true"}},
		"entries of a map that change": {
			plan.Update, map[string]int{"a": 2}, map[string]int{"a": 1, "b": 1},
			[]string{"update a: 1 -> 2"},
		},
		"names":    {plan.Delete, []string{"a", "b"}, nil, []string{"delete a", "delete b"}},
		"phases":   {plan.Delete, [2]phase{"a", "b"}, nil, []string{"delete phase a", "delete phase b"}},
		"a string": {plan.Create, "hello", nil, []string{`create: "hello"`}},
		"an error": {plan.Create, errors.New("x"), nil, []string{`create errorString: "x"`}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.want == nil {
				tc.want = []string{}
			}
			got := plan.Describe(tc.action, tc.part, tc.current)
			if diff := cmp.Diff(tc.want, lines(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func deployment(image string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "proxy", Image: "proxy:1"}, {Name: "web", Image: image}},
		}}},
	}
}
