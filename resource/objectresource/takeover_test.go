package objectresource_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// version is a version of an operator: whose it is, and its resources.
type version struct {
	identity.Identity
	resources []framework.Resource
}

// ctx is that of a step of the version.
func (v version) ctx(t *testing.T) context.Context {
	return identity.NewContext(t.Context(), &identity.Scope{Identity: v.Identity})
}

func (v version) update(t *testing.T, p primary) error {
	return framework.ProcessUpdate(v.ctx(t), p, v.resources)
}

func (v version) plan(t *testing.T, p primary) *plan.Plan {
	t.Helper()
	made, err := framework.PlanUpdate(v.ctx(t), p, v.resources)
	if err != nil || made.Outcome != plan.Planned {
		t.Fatalf("%v, %v", made, err)
	}
	return made
}

func changesOf(p *plan.Plan) (changes []plan.Change) {
	for _, r := range p.Resources {
		changes = append(changes, r.Changes...)
	}
	return changes
}

func named(name string, former ...string) func(*config) {
	return func(c *config) { c.Name, c.FormerNames = name, former }
}

func kinds(objects ...client.Object) func(*config) {
	return func(c *config) { c.Kinds = objects }
}

// renames are the ways in which an operator that has the objects kept and dropped under the name "objects" comes by another: what
// made them, and what takes them over, of which kept is desired in another form.
func renames(k *kit, kept, changed []client.Object) map[string]struct{ before, after version } {
	one := func(i identity.Identity, desired []client.Object, changes ...func(*config)) version {
		return version{i, []framework.Resource{k.resource(just(desired...), changes...)}}
	}
	was := identity.Identity{Operator: "o1", Framework: "f1"}
	before := one(was, kept, named("objects"))
	of := func(kind string) (objects []client.Object) {
		for _, o := range changed {
			if strings.HasSuffix(fmt.Sprintf("%T", o), kind) {
				objects = append(objects, o)
			}
		}
		return objects
	}
	configs := k.resource(just(of("ConfigMap")...), named("configs", "objects"), kinds(&corev1.ConfigMap{}))
	return map[string]struct{ before, after version }{
		"a resource":   {before, one(was, changed, named("pages", "objects"))},
		"a framework":  {before, one(identity.Identity{Operator: "o1", Framework: "f2", FormerFrameworks: []string{"f1"}}, changed, named("objects"))},
		"an operator":  {before, one(identity.Identity{Operator: "o2", Framework: "f1", FormerOperators: []string{"o1"}}, changed, named("objects"))},
		"all of them":  {before, one(identity.Identity{Operator: "o2", Framework: "f2", FormerOperators: []string{"o1"}, FormerFrameworks: []string{"f1"}}, changed, named("pages", "objects"))},
		"a part of it": {before, version{was, []framework.Resource{configs, k.resource(just(of("Secret")...), named("objects"))}}},
		"a part of it, which alone knows its kind": {before, version{was, []framework.Resource{
			configs, k.resource(just(of("Secret")...), named("objects"), kinds(&corev1.Secret{})),
		}}},
		"both parts of it": {before, version{was, []framework.Resource{
			configs, k.resource(just(of("Secret")...), named("secrets", "objects"), kinds(&corev1.Secret{})),
		}}},
	}
}

func TestR16WhatStandsUnderAFormerNameIsTakenOverAsItIs(t *testing.T) {
	for name := range renames(newKit(t), nil, nil) {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			p := k.primary("home")
			secret := func(name, value string) *corev1.Secret {
				return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: name}, Data: map[string][]byte{value: nil}}
			}
			was := []client.Object{
				k.data("same", map[string]string{"x": "1"}), k.data("less", map[string]string{"x": "1", "y": "2"}), k.data("none", nil),
				secret("less", "y"), secret("none", "x"),
			}
			want := []client.Object{k.data("same", map[string]string{"x": "1"}), k.data("less", map[string]string{"x": "1"}), secret("less", "z")}
			rename := renames(k, was, want)[name]
			if err := rename.before.update(t, p); err != nil {
				t.Fatal(err)
			}
			k.patch(k.meta("less"), `{"data":{"theirs":"1"}}`)
			uids := k.uids(p)

			// The plan tells, and for everything under the former name once.
			changes := changesOf(rename.after.plan(t, p))
			var got []string
			for _, c := range changes {
				line := fmt.Sprintf("%s %s %s", c.Action, c.Object.Kind, c.Object.Name)
				if c.Description != "" {
					line += ", " + c.Description
				}
				for _, f := range c.Fields {
					if !isMark(f.Path) {
						line += ", " + f.Path
					}
				}
				got = append(got, line)
			}
			taken := `, taken over from resource "objects" of framework "f1" of operator "o1"`
			lines := []string{
				"update ConfigMap same" + taken, "update ConfigMap less" + taken + ", data.y", "update Secret less" + taken + ", data.y, data.z",
				"delete ConfigMap none", "delete Secret none",
			}
			if strings.HasPrefix(name, "a part of it") { // the rest stays where it is
				lines[2] = "update Secret less, data.y, data.z"
			}
			slices.Sort(got)
			slices.Sort(lines)
			if diff := cmp.Diff(lines, got); diff != "" {
				t.Error(diff)
			}

			if err := rename.after.update(t, p); err != nil {
				t.Fatal(err)
			}
			for _, w := range k.faults.Writes() {
				if w.Verb == "delete" && w.Name != "none" {
					t.Errorf("%s", w)
				}
			}
			wantUIDs := map[string]types.UID{"ConfigMap same": uids["ConfigMap same"], "ConfigMap less": uids["ConfigMap less"], "Secret less": uids["Secret less"]}
			if diff := cmp.Diff(wantUIDs, k.uids(p)); diff != "" {
				t.Error(diff)
			}
			less, _ := k.configMap("less")
			if diff := cmp.Diff(map[string]string{"x": "1", "theirs": "1"}, less.Data); diff != "" {
				t.Error(diff)
			}
			for _, m := range less.ManagedFields {
				if strings.HasPrefix(m.Manager, "operatorkit-") && strings.Contains(m.Manager, "_o1_f1_objects") {
					t.Errorf("the former name manages %s still", m.FieldsV1)
				}
			}
			if made := rename.after.plan(t, p); made.Counts().Any() {
				t.Errorf("left to do: %v", changesOf(made))
			}
		})
	}
}

// uids are those of what has a mark, by kind and name.
func (k *kit) uids(p primary) map[string]types.UID {
	k.t.Helper()
	found := map[string]types.UID{}
	for kind, list := range map[string]client.ObjectList{"ConfigMap": &corev1.ConfigMapList{}, "Secret": &corev1.SecretList{}} {
		if err := k.user.List(k.t.Context(), list, client.InNamespace(p.Namespace), client.HasLabels{objectresource.OwnerLabel}); err != nil {
			k.t.Fatal(err)
		}
		var objects []client.Object
		switch l := list.(type) {
		case *corev1.ConfigMapList:
			for i := range l.Items {
				objects = append(objects, &l.Items[i])
			}
		case *corev1.SecretList:
			for i := range l.Items {
				objects = append(objects, &l.Items[i])
			}
		}
		for _, o := range objects {
			if o.GetAnnotations()[objectresource.OwnerAnnotation] == "ConfigMap/"+p.Namespace+"/"+p.Name {
				found[kind+" "+o.GetName()] = o.GetUID()
			}
		}
	}
	return found
}

func TestR16ADeletionDeletesWhatStandsUnderFormerNames(t *testing.T) {
	for name := range renames(newKit(t), nil, nil) {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			p := k.primary("home")
			rename := renames(k, []client.Object{k.data("a", nil), k.secret(nil)}, nil)[name]
			if err := rename.before.update(t, p); err != nil {
				t.Fatal(err)
			}
			planned, err := framework.PlanDelete(rename.after.ctx(t), p, rename.after.resources)
			if err != nil || planned.Counts() != (plan.Counts{Delete: 2}) {
				t.Errorf("planned %v, %v", changesOf(planned), err)
			}
			if err := framework.ProcessDelete(rename.after.ctx(t), p, rename.after.resources); err != nil {
				t.Fatal(err)
			}
			if left := k.uids(p); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// A resource that stays, and one that was split off, see the same store: what the one took over, the other does not delete, although
// the store says that it is under its name and nobody desires it.
func TestR16AStoreThatIsBehindDeletesNothingThatWasTakenOver(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	before := version{identity.Identity{Operator: "o", Framework: "f"}, []framework.Resource{k.resource(just(k.data("a", nil), k.data("b", nil)), named("objects"))}}
	if err := before.update(t, p); err != nil {
		t.Fatal(err)
	}
	a, _ := k.configMap("a")
	b, _ := k.configMap("b")
	behind := stores(&frozen{synced: true, objects: []any{a, b}})
	after := version{before.Identity, []framework.Resource{
		k.resource(just(k.data("a", nil)), named("configs", "objects"), behind), k.resource(just(k.data("b", nil)), named("objects"), behind),
	}}
	for range 3 {
		if err := after.update(t, p); err != nil {
			t.Fatal(err)
		}
	}
	if now, _ := k.configMap("a"); now.UID != a.UID || now.Annotations[objectresource.ResourceAnnotation] != "configs" {
		t.Errorf("it was not taken over as it is: %v", now)
	}
}

func TestR16AShadowOfARenamedVersionDiffersByTheTakeoverAlone(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	objects := []client.Object{k.data("a", map[string]string{"x": "1"}), k.secret(map[string]string{"x": "1"})}
	rename := renames(k, objects, objects)["a resource"]
	if err := rename.before.update(t, p); err != nil {
		t.Fatal(err)
	}
	compared := plan.Compare(rename.before.plan(t, p), rename.after.plan(t, p))
	if len(compared.Differences) != 2 || compared.Error != "" {
		t.Fatalf("%+v", compared)
	}
	for _, d := range compared.Differences {
		if d.Active != nil || d.Shadow.Action != plan.Update || !strings.HasPrefix(d.Shadow.Description, "taken over from") {
			t.Errorf("%+v", d)
		}
		for _, f := range d.Shadow.Fields {
			if !isMark(f.Path) {
				t.Errorf("it differs in %s", f)
			}
		}
	}
}

func TestR16WhatHasAnothersMarkIsRefusedByName(t *testing.T) {
	first := identity.Identity{Operator: "first", Framework: "sites"}
	second := identity.Identity{Operator: "second", Framework: "sites"}
	by := `it is of resource "objects" of framework "sites" of operator "first", for ConfigMap/NAMESPACE/home`
	for name, test := range map[string]struct {
		patch, want string
		as          identity.Identity
		resource    string
	}{
		"another operator's":    {want: by, as: second, resource: "objects"},
		"another framework's":   {want: by, as: identity.Identity{Operator: "first", Framework: "pages"}, resource: "objects"},
		"another resource's":    {want: by + `; with "objects" among its FormerNames, the resource would take it over`, as: first, resource: "pages"},
		"without the label":     {patch: `{"labels":null}`, want: by, as: second, resource: "objects"},
		"without annotations":   {patch: `{"annotations":null}`, want: `its mark "v1-`, as: second, resource: "objects"},
		"with untrue ones":      {patch: `{"annotations":{"operatorkit.io/operator":"second"}}`, want: "another's, and its annotations don't say whose", as: second, resource: "objects"},
		"with a form to come":   {patch: `{"labels":{"operatorkit.io/owner":"v2-x"}}`, want: `its mark "v2-x" has a form that this version does not know; its annotations say: ` + by, as: first, resource: "objects"},
		"with an older version": {patch: `{"labels":{"operatorkit.io/owner":"0123456789ab"}}`, want: `its mark "0123456789ab" has a form`, as: first, resource: "objects"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			p := k.primary("home")
			made := version{first, []framework.Resource{k.resource(just(k.data("a", map[string]string{"x": "1"})), named("objects"))}}
			if err := made.update(t, p); err != nil {
				t.Fatal(err)
			}
			if test.patch != "" {
				k.patch(k.meta("a"), `{"metadata":`+test.patch+`}`)
			}
			before, _ := k.configMap("a")
			r := k.resource(just(k.data("a", nil)), named(test.resource), adopt)
			other := version{test.as, []framework.Resource{r}}
			want := strings.ReplaceAll(test.want, "NAMESPACE", k.namespace)
			if err := other.update(t, p); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
			if err := framework.ProcessDelete(other.ctx(t), p, other.resources); err != nil {
				t.Fatal(err)
			}
			after, _ := k.configMap("a")
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("it was written: %s", diff)
			}
		})
	}
}

// lineage is a resource through its renames and splits.
type lineage struct {
	name    string
	former  []string
	desired map[string]int
}

// Whatever becomes of the names of an operator, its framework and its resources, and wherever it crashes meanwhile: an object that is
// desired before and after stays the same one, what is desired by nobody goes, and what others made is left alone.
func TestR16NoHistoryOfRenamesSplitsAndCrashesLosesAnObject(t *testing.T) {
	k := newKit(t)
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		p := k.primary(fmt.Sprintf("p%d", run))
		object := func(name string) string { return fmt.Sprintf("r%d-%s", run, name) }
		neighbour := version{identity.Identity{Operator: "neighbour", Framework: "f"}, []framework.Resource{
			k.resource(just(k.data(object("theirs"), nil)), named("objects")),
		}}
		if err := neighbour.update(t, p); err != nil {
			rt.Fatal(err)
		}
		v := version{Identity: identity.Identity{Operator: "o", Framework: "f"}}
		all := []lineage{{name: "objects", desired: map[string]int{}}}
		names := 0
		fresh := func() string { names++; return fmt.Sprintf("n%d", names) }
		uids := map[string]types.UID{}
		for range rapid.IntRange(2, 5).Draw(rt, "versions") {
			i := rapid.IntRange(0, len(all)-1).Draw(rt, "resource")
			l := &all[i]
			switch rapid.SampledFrom([]string{"none", "resource", "split", "split in two", "framework", "operator"}).Draw(rt, "rename") {
			case "resource":
				l.former = append(l.former, l.name)
				l.name = fresh()
			case "split", "split in two":
				part := lineage{name: fresh(), former: append(slices.Clone(l.former), l.name), desired: map[string]int{}}
				for _, name := range slices.Sorted(maps.Keys(l.desired)) {
					if rapid.Bool().Draw(rt, name+" goes over") {
						part.desired[name] = l.desired[name]
						delete(l.desired, name)
					}
				}
				if rapid.Bool().Draw(rt, "both are new") {
					l.former = append(l.former, l.name)
					l.name = fresh()
				}
				all = slices.Insert(all, i, part)
			case "framework":
				v.FormerFrameworks = append(v.FormerFrameworks, v.Framework)
				v.Framework = fresh()
			case "operator":
				v.FormerOperators = append(v.FormerOperators, v.Operator)
				v.Operator = fresh()
			}
			v.resources = nil
			of := map[string]string{}
			for n := range all {
				l := &all[n]
				for _, name := range []string{"a", "b", "c"} {
					_, elsewhere := uids["ConfigMap "+object(name)]
					_, has := l.desired[name]
					switch {
					case has && rapid.IntRange(0, 3).Draw(rt, "drop "+name) == 0:
						delete(l.desired, name)
					case has || !elsewhere && of[name] == "" && rapid.Bool().Draw(rt, "want "+name):
						l.desired[name] = rapid.IntRange(0, 3).Draw(rt, "data of "+name)
						of[name] = l.name
					}
				}
				var objects []client.Object
				for name, fields := range l.desired {
					data := map[string]string{}
					for f := range fields {
						data[fmt.Sprint(f)] = "x"
					}
					objects = append(objects, k.data(object(name), data))
				}
				v.resources = append(v.resources, k.resource(just(objects...), named(l.name, l.former...)))
			}

			var crash *operatortest.Rule
			if rapid.Bool().Draw(rt, "crashes") {
				fault := rapid.SampledFrom([]operatortest.Fault{operatortest.FailBefore(), operatortest.FailAfter()}).Draw(rt, "fault")
				crash = k.faults.At(k.faults.Count()+rapid.IntRange(1, 6).Draw(rt, "write"), fault)
				if err := v.update(t, p); err != nil && crash.Hits() == 0 {
					rt.Fatal(err)
				}
				crash.Remove()
			}
			if err := v.update(t, p); err != nil {
				rt.Fatal(err)
			}
			if made := v.plan(t, p); made.Counts().Any() {
				rt.Fatalf("left to do: %v", changesOf(made))
			}
			now := k.uids(p)
			delete(now, "ConfigMap "+object("theirs"))
			for name, resource := range of {
				key := "ConfigMap " + object(name)
				if was, existed := uids[key]; existed && was != now[key] {
					rt.Errorf("%s was made anew", name)
				}
				cm, _ := k.configMap(object(name))
				mark := v.Operator + " " + v.Framework + " " + resource
				if got := cm.Annotations[objectresource.OperatorAnnotation] + " " + cm.Annotations[objectresource.FrameworkAnnotation] + " " +
					cm.Annotations[objectresource.ResourceAnnotation]; got != mark {
					rt.Errorf("%s is of %s, want %s", name, got, mark)
				}
				for _, l := range all {
					if fields, ok := l.desired[name]; ok && len(cm.Data) != fields {
						rt.Errorf("%s has the fields %v, want %d", name, cm.Data, fields)
					}
				}
			}
			if len(now) != len(of) {
				rt.Errorf("there are %v, and wanted %v", now, of)
			}
			uids = now
		}
		if made := neighbour.plan(t, p); made.Counts().Any() {
			rt.Errorf("the neighbour's was changed: %v", changesOf(made))
		}
	})
}
