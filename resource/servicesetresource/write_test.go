package servicesetresource_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/context/updateallowedcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

func TestASetIsWrittenOnceForAllItsServices(t *testing.T) {
	k := newKit(t)
	k.templates(map[string][]string{"a": {"1.0.0", "2.0.0"}, "b": {"1.0.0"}, "c": {"1.0.0"}})
	cd := k.cluster("prod", wanted("a", "1.0.0"), wanted("b", "1.0.0"), wanted("c", "1.0.0", "a"))
	k.mustUpdate(cd)
	k.manage()
	k.want(cd, wanted("a", "2.0.0"), wanted("c", "1.0.0", "a"))
	k.mustUpdate(cd)
	set, _ := k.set("prod")
	if diff := cmp.Diff([]string{"a 2.0.0"}, names(set)); diff != "" {
		t.Errorf("services (-want +got):\n%s", diff)
	}
	want := []string{
		"POST servicesets.services.operatorkit.io " + k.namespace + "/prod",
		"PUT servicesets.services.operatorkit.io " + k.namespace + "/prod",
	}
	if diff := cmp.Diff(want, k.writes()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestTheLogTellsOfEveryServiceAndOfNoValues(t *testing.T) {
	k := newKit(t)
	k.templates(map[string][]string{"a": {"1.0.0", "2.0.0"}, "b": {"1.0.0"}})
	first := wanted("a", "1.0.0")
	first.Values = "token: hidden"
	cd := k.cluster("prod", first, wanted("b", "1.0.0"))
	k.mustUpdate(cd)
	k.manage()
	second := wanted("a", "2.0.0")
	second.Values = "token: hidden too"
	k.want(cd, second)
	k.mustUpdate(cd)
	log := k.log.String()
	for _, want := range []string{
		`"message":"created a ServiceSet"`, `"service":"default/b","step"`,
		`"change":"is installed in version 1.0.0"`, `"message":"created the entry of a service"`,
		`"change":"1.0.0 → 2.0.0"`, `"fields":"template, values, version"`, `"message":"updated the entry of a service"`,
		`"message":"deleted the entry of a service"`, `"written":"ServiceSet ` + k.namespace + `/prod"`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("%s is not in the log:\n%s", want, log)
		}
	}
	if strings.Contains(log, "hidden") {
		t.Errorf("values are in the log:\n%s", log)
	}
}

func TestNothingIsWrittenWhenNothingChanges(t *testing.T) {
	k := newKit(t)
	k.templates(map[string][]string{"a": {"1.0.0"}, "b": {"1.0.0"}})
	cd := k.cluster("prod", wanted("a", "1.0.0"))
	k.services("base", wanted("b", "1.0.0"))
	k.mustUpdate(cd)
	before := len(k.writes())
	k.mustUpdate(cd)
	k.manage()
	k.mustUpdate(cd)
	if more := k.writes()[before:]; len(more) > 0 {
		t.Errorf("written: %v", more)
	}
}

func TestWhatOthersHaveOnASetStays(t *testing.T) {
	k := newKit(t)
	k.templates(map[string][]string{"a": {"1.0.0", "2.0.0"}})
	cd := k.cluster("prod", wanted("a", "1.0.0"))
	k.mustUpdate(cd)
	k.manage()
	set, _ := k.set("prod")
	k.patch(set, `{"metadata":{"labels":{"theirs":"yes"},"annotations":{"theirs":"yes"},"finalizers":["example.com/manager"]}}`)
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "theirs"}}
	k.create(theirs)
	set.OwnerReferences = append(set.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "theirs", UID: theirs.UID})
	if err := k.user.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	before, _ := k.set("prod")

	k.want(cd, wanted("a", "2.0.0"))
	k.mustUpdate(cd)
	after, _ := k.set("prod")
	if got := names(after); !slices.Equal(got, []string{"a 2.0.0"}) {
		t.Fatalf("services = %v", got)
	}
	for name, diff := range map[string]string{
		"labels":      cmp.Diff(before.Labels, after.Labels),
		"annotations": cmp.Diff(before.Annotations, after.Annotations),
		"finalizers":  cmp.Diff(before.Finalizers, after.Finalizers),
		"owners":      cmp.Diff(before.OwnerReferences, after.OwnerReferences),
		"status":      cmp.Diff(before.Status, after.Status),
	} {
		if diff != "" {
			t.Errorf("the %s differ (-before +after):\n%s", name, diff)
		}
	}
	k.patch(after, `{"metadata":{"finalizers":null}}`)
}

// once returns what is computed, and has something happen before it is applied.
func (k *kit) once(happens func()) []framework.Resource {
	return k.resources(func(ctx context.Context, cd cluster) ([]serviceset.OwnerOperation, error) {
		operations, err := k.compute(ctx, cd)
		if happens != nil {
			happens()
			happens = nil
		}
		return operations, err
	})
}

func TestASetThatChangedMeanwhileIsAConflict(t *testing.T) {
	k := newKit(t)
	k.templates(map[string][]string{"a": {"1.0.0", "2.0.0"}})
	replace := func(name string) {
		old, _ := k.set(name)
		fresh := &v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: old.Namespace, Name: old.Name, Labels: old.Labels}, Spec: old.Spec}
		if err := k.user.Delete(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		k.create(fresh)
	}
	for name, c := range map[string]struct {
		// update is made of the set, or else its deletion.
		update bool
		// there is set when the set exists before.
		there bool
		// happens between the computation and the write.
		happens func(name string)
		// fine is set when nothing has to be done again.
		fine bool
		// want are the services afterwards, nil for no set.
		want []string
	}{
		"a label of others": {update: true, there: true, want: []string{"a 1.0.0"}, happens: func(name string) {
			set, _ := k.set(name)
			k.patch(set, `{"metadata":{"labels":{"theirs":"yes"}}}`)
		}},
		"a status": {update: true, there: true, want: []string{"a 1.0.0"}, happens: func(name string) {
			set, _ := k.set(name)
			set.Status.ObservedGeneration = 99
			if err := k.user.Status().Update(t.Context(), set); err != nil {
				t.Fatal(err)
			}
		}},
		"another of its name": {update: true, there: true, want: []string{"a 1.0.0"}, happens: replace},
		"gone": {update: true, there: true, happens: func(name string) {
			set, _ := k.set(name)
			if err := k.user.Delete(t.Context(), set); err != nil {
				t.Fatal(err)
			}
		}},
		"appeared": {update: true, want: []string{}, happens: func(name string) {
			k.create(&v1alpha1.ServiceSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: name}, Spec: v1alpha1.ServiceSetSpec{Cluster: name},
			})
		}},
		"filled before its deletion": {there: true, want: []string{"a 1.0.0"}, happens: func(name string) {
			set, _ := k.set(name)
			set.Spec.Services = []v1alpha1.ServiceWithValues{entry("a", "1.0.0")}
			if err := k.user.Update(t.Context(), set); err != nil {
				t.Fatal(err)
			}
		}},
		"another of its name before its deletion": {there: true, want: []string{}, happens: replace},
		"gone before its deletion": {there: true, fine: true, happens: func(name string) {
			set, _ := k.set(name)
			if err := k.user.Delete(t.Context(), set); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			id := strings.ReplaceAll(name, " ", "-")
			cd := k.cluster(id, wanted("a", "1.0.0"))
			if c.there {
				k.mustUpdate(cd)
				k.manage()
			}
			switch {
			case c.there && c.update:
				k.want(cd, wanted("a", "2.0.0"))
			case c.there:
				k.want(cd)
				k.mustUpdate(cd) // takes the service out
				k.manage()
				k.mustUpdate(cd) // notes that it is gone, and deletes
				if _, there := k.set(id); there {
					t.Fatal("an empty set was not deleted")
				}
				k.create(&v1alpha1.ServiceSet{
					ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: id, Labels: map[string]string{v1alpha1.ClusterLabel: id}},
					Spec:       v1alpha1.ServiceSetSpec{Cluster: id},
				})
			}
			err := framework.ProcessUpdate(t.Context(), cd, k.once(func() { c.happens(id) }))
			switch {
			case c.fine && err != nil:
				t.Errorf("error = %v, want none", err)
			case !c.fine && !apierrors.IsConflict(err):
				t.Errorf("error = %v, want a conflict", err)
			}
			set, there := k.set(id)
			if there != (c.want != nil) {
				t.Fatalf("there is a set: %v", there)
			}
			if got := names(set); there && !slices.Equal(got, c.want) {
				t.Errorf("services = %v, want %v", got, c.want)
			}
		})
	}
}

func TestASetThatTheServerRefusesDoesNotKeepTheOthersFromTheirWrites(t *testing.T) {
	k := newKit(t)
	k.templates(map[string][]string{"a": {"1.0.0", "2.0.0"}, "b": {"1.0.0"}})
	cd := k.cluster("prod", wanted("a", "1.0.0"))
	k.mustUpdate(cd)
	k.manage()
	k.want(cd, wanted("a", "2.0.0"))
	k.services("base", wanted("b", "1.0.0"))
	spoilt := func(ctx context.Context, cd cluster) ([]serviceset.OwnerOperation, error) {
		operations, err := k.compute(ctx, cd)
		for _, o := range operations {
			if o.Operation.Operation == v1alpha1.ServiceSetOperationCreate {
				o.Operation.ServiceSet.Spec.Services[0].Name = strings.Repeat("long", 99)
			}
		}
		return operations, err
	}
	err := framework.ProcessUpdate(t.Context(), cd, k.resources(spoilt))
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "create ServiceSet "+k.namespace+"/prod.") {
		t.Errorf("error = %v, want one that names the refused set", err)
	}
	if set, _ := k.set("prod"); !slices.Equal(names(set), []string{"a 2.0.0"}) {
		t.Errorf("services = %v: the set that is right was not written", names(set))
	}
}

// A refusal is told even if another set is a conflict, which nobody would hear of.
func TestARefusalIsNotTakenForAConflict(t *testing.T) {
	k := newKit(t)
	k.templates(map[string][]string{"a": {"1.0.0", "2.0.0"}, "b": {"1.0.0"}})
	cd := k.cluster("prod", wanted("a", "1.0.0"))
	k.mustUpdate(cd)
	k.manage()
	k.want(cd, wanted("a", "2.0.0"))
	k.services("base", wanted("b", "1.0.0"))
	err := framework.ProcessUpdate(t.Context(), cd, k.resources(func(ctx context.Context, cd cluster) ([]serviceset.OwnerOperation, error) {
		operations, err := k.compute(ctx, cd)
		for _, o := range operations {
			o.Operation.ServiceSet.ResourceVersion = "1"
			if o.Operation.Operation == v1alpha1.ServiceSetOperationCreate {
				o.Operation.ServiceSet.Namespace = "does-not-exist"
				o.Operation.ServiceSet.ResourceVersion = ""
			}
		}
		return operations, err
	}))
	if err == nil || apierrors.IsConflict(err) || !strings.Contains(err.Error(), "update ServiceSet "+k.namespace+"/prod") {
		t.Errorf("error = %v, want one that names both and is no conflict", err)
	}
}

func TestWhereUpdatesAreForbiddenSetsAreStillCreatedAndDeleted(t *testing.T) {
	k := newKit(t)
	k.templates(map[string][]string{"a": {"1.0.0", "2.0.0"}, "b": {"1.0.0"}})
	cd := k.cluster("prod", wanted("a", "1.0.0"))
	k.mustUpdate(cd)
	k.manage()
	k.want(cd, wanted("a", "2.0.0"))
	k.services("base", wanted("b", "1.0.0"))
	k.create(&v1alpha1.ServiceSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "prod.empty", Labels: map[string]string{v1alpha1.ClusterLabel: "prod"}},
		Spec:       v1alpha1.ServiceSetSpec{Cluster: "prod", MultiClusterService: k.namespace + "-gone"},
	})
	if err := framework.ProcessUpdate(updateallowedcontext.NewContext(t.Context()), cd, k.resources(k.compute)); err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, set := range k.sets() {
		got[set.Spec.MultiClusterService] = names(&set)
	}
	want := map[string][]string{"": {"a 1.0.0"}, k.namespace + "-base": {"b 1.0.0"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sets (-want +got):\n%s", diff)
	}
}

func TestASetOfSomebodyElseIsLeftAlone(t *testing.T) {
	k := newKit(t)
	k.templates(map[string][]string{"a": {"1.0.0"}})
	foreign := &v1alpha1.ServiceSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "prod"}, Spec: v1alpha1.ServiceSetSpec{Cluster: "staging"},
	}
	k.create(foreign)
	cd := k.cluster("prod", wanted("a", "1.0.0"))
	if err := k.update(cd); err == nil || !strings.Contains(err.Error(), "prod") {
		t.Errorf("error = %v, want one that names the set", err)
	}
	after, _ := k.set("prod")
	if diff := cmp.Diff(foreign, after); diff != "" {
		t.Errorf("it was written (-before +after):\n%s", diff)
	}
	if err := k.user.Delete(t.Context(), foreign); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	k.mustUpdate(cd)
}
