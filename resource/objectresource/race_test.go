package objectresource_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// planned returns the update part for a primary, with meanwhile called between looking and comparing.
func (k *kit) planned(r *resource, p primary, meanwhile func()) objectresource.State {
	k.t.Helper()
	current, err := r.GetCurrentState(k.t.Context(), p)
	if err != nil {
		k.t.Fatal(err)
	}
	desired, err := r.GetDesiredState(k.t.Context(), p)
	if err != nil {
		k.t.Fatal(err)
	}
	meanwhile()
	patch, err := r.NewUpdatePatch(k.t.Context(), p, current, desired)
	if err != nil {
		k.t.Fatal(err)
	}
	update, ok := patch.UpdateChange()
	if !ok {
		k.t.Fatal("nothing is to be updated")
	}
	return update
}

func TestWhatOthersChangeMeanwhileIsNotPartOfThePatch(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	child := k.data("a", map[string]string{"x": "1"})
	r := k.resource(func() []client.Object { return just(child)() })
	k.update(r, p)
	child.Data["x"] = "2"
	update := k.planned(r, p, func() { k.patch(k.meta("a"), `{"metadata":{"labels":{"theirs":"x"}}}`) })
	if diff := cmp.Diff([]string{"update ConfigMap a", `  data.x: "1" -> "2"`}, lines(update.Changes())); diff != "" {
		t.Error(diff)
	}
}

// others are what another writer does to an object of a resource, such as the next leader.
var others = map[string]func(k *kit){
	"changed": func(k *kit) { k.patch(k.meta("a"), `{"data":{"theirs":"1"}}`) },
	"deleted": func(k *kit) { k.delete(k.meta("a")) },
	"replaced": func(k *kit) {
		k.delete(k.meta("a"))
		k.create(k.data("a", map[string]string{"theirs": "1"}))
	},
}

func (k *kit) delete(o client.Object) {
	k.t.Helper()
	if err := k.user.Delete(k.t.Context(), o); err != nil {
		k.t.Fatal(err)
	}
}

func TestR17WhatAnotherWriterChangedMeanwhileIsAConflictAndNotUpdated(t *testing.T) {
	for name, meanwhile := range others {
		for from, former := range map[string][]string{"children": nil, "objects": {"objects"}} {
			t.Run(name+", made by "+from, func(t *testing.T) {
				k := newKit(t)
				p := k.primary("home")
				k.update(k.resource(just(k.data("a", map[string]string{"x": "1"})), func(c *config) { c.Name = from }), p)
				r := k.resource(just(k.data("a", map[string]string{"x": "2"})), func(c *config) { c.FormerNames = former })
				update := k.planned(r, p, func() {})
				meanwhile(k)
				before, existed := k.configMap("a")

				err := r.ApplyUpdateChange(t.Context(), p, update)
				if !apierrors.IsConflict(err) {
					t.Errorf("got %v, want a conflict", err)
				}
				after, exists := k.configMap("a")
				if diff := cmp.Diff(before, after); diff != "" || exists != existed {
					t.Errorf("the object was written: %s", diff)
				}
			})
		}
	}
}

func TestR17WhatAnotherWriterCreatedMeanwhileIsAConflictAndNotAdopted(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	r := k.resource(just(k.data("a", map[string]string{"x": "ours"})), adopt)
	var before *corev1.ConfigMap
	err := appearing(k, r, p, func() {
		k.create(k.data("a", map[string]string{"x": "theirs"}))
		before, _ = k.configMap("a")
	})
	if !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict", err)
	}
	after, _ := k.configMap("a")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the object was written: %s", diff)
	}
	if changes := k.plan(r, p); len(changes) != 1 || changes[0].Action != plan.Update {
		t.Errorf("got %v, want an update that takes it over", lines(changes))
	}
	k.update(r, p)
	k.wantQuiet(r, p)
}

func TestR17WhatAnotherWriterChangedMeanwhileIsAConflictAndNotDeleted(t *testing.T) {
	for name, meanwhile := range others {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			p := k.primary("home")
			k.update(k.resource(just(k.data("a", nil))), p)
			r := k.resource(just())
			current, err := r.GetCurrentState(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			patch, err := r.NewDeletePatch(t.Context(), p, current, objectresource.State{})
			if err != nil {
				t.Fatal(err)
			}
			change, _ := patch.DeleteChange()
			meanwhile(k)
			_, existed := k.configMap("a")

			err = r.ApplyDeleteChange(t.Context(), p, change)
			if existed && !apierrors.IsConflict(err) || !existed && err != nil {
				t.Errorf("got %v, want a conflict for what is there, and none for what is gone", err)
			}
			if _, exists := k.configMap("a"); exists != existed {
				t.Error("it was deleted")
			}
		})
	}
}

func TestAFieldThatCannotBeChangedIsAnErrorThatSaysWhatToDo(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	deployment := k.web()
	r := k.resource(func() []client.Object { return just(deployment)() })
	k.update(r, p)
	deployment.Spec.Selector.MatchLabels["more"] = "1"
	deployment.Spec.Template.Labels["more"] = "1"
	_, err := k.tryPlan(r, p)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "takes deleting the object first") ||
		!strings.Contains(err.Error(), "Deployment.apps "+k.namespace+"/web") {
		t.Errorf("got %v, want an error that names the object and says what to do", err)
	}
}

func TestADefinitionAndAnObjectOfItCanBeDesiredTogether(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	group := k.namespace + ".example.com"
	open := true
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gadgets." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Kind: "Gadget"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &open,
				}},
			}},
		},
	}
	definition := &unstructured.Unstructured{Object: unstructuredOf(t, crd)}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	gadget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Gadget",
		"metadata": map[string]any{"name": "a", "namespace": k.namespace},
		"spec":     map[string]any{"size": int64(1), "parts": []any{map[string]any{"id": "x"}}},
	}}
	r := k.resource(func() []client.Object { return []client.Object{definition, gadget} }, func(c *config) {
		c.Kinds = []client.Object{definition, gadget}
	})
	k.until("the definition is served and the object is created", func() bool {
		return framework.ProcessUpdate(t.Context(), p, []framework.Resource{r}) == nil
	})
	k.wantQuiet(r, p)

	_ = unstructured.SetNestedField(gadget.Object, int64(2), "spec", "size")
	k.wantPlan(r, p, "update Gadget a", "  spec.size: 1 -> 2")
	k.update(r, p)
	k.wantQuiet(r, p)
	k.deletionOf(r, p)
	k.until("the definition is gone", func() bool { _, exists := read(k, crdNamed(definition)); return !exists })
	k.deletionOf(r, p)
}

func crdNamed(definition *unstructured.Unstructured) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(definition.GroupVersionKind())
	u.SetName(definition.GetName())
	return u
}

// Whatever is desired, in whatever order, and whatever others do to it: one update makes it so, and a second one does
// nothing.
func TestAnySequenceConverges(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	names := rapid.SampledFrom([]string{"a", "b", "c"})
	data := rapid.MapOf(rapid.SampledFrom([]string{"x", "y", "z"}), rapid.SampledFrom([]string{"", "1", "2"}))
	rapid.Check(t, func(rt *rapid.T) {
		desired := map[string]map[string]string{}
		r := k.resource(func() []client.Object {
			var objects []client.Object
			for name, d := range desired {
				objects = append(objects, k.data(name, d))
			}
			return objects
		})
		for range rapid.IntRange(1, 4).Draw(rt, "rounds") {
			desired = rapid.MapOf(names, data).Draw(rt, "desired")
			if name := names.Draw(rt, "drifting"); rapid.Bool().Draw(rt, "drifts") {
				drift := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"x":"drifted","y":null}}`))
				if err := client.IgnoreNotFound(k.user.Patch(t.Context(), k.meta(name), drift, client.FieldOwner("user"))); err != nil {
					rt.Fatal(err)
				}
			}
			k.update(r, p)
			k.wantQuiet(r, p)
			for _, name := range []string{"a", "b", "c"} {
				got, exists := k.configMap(name)
				want, wanted := desired[name]
				if exists != wanted {
					rt.Fatalf("%s exists: %t, want %t", name, exists, wanted)
				}
				for key, value := range want {
					if got.Data[key] != value {
						rt.Fatalf("%s is %v, want %v", name, got.Data, want)
					}
				}
			}
		}
	})
}
