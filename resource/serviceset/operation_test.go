package serviceset_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// contextAfter returns a context for what is done after a test, when the test's own is cancelled.
func contextAfter(t *testing.T) context.Context { return context.WithoutCancel(t.Context()) }

const (
	create = v1alpha1.ServiceSetOperationCreate
	update = v1alpha1.ServiceSetOperationUpdate
	none   = v1alpha1.ServiceSetOperationNone
)

func TestAServiceSetFollowsItsClusterFromTheFirstInstallToARemoval(t *testing.T) {
	s := startAPIServer(t)
	s.templates("a-1.0.0", "a-2.0.0", "a-3.0.0", "b-1.0.0")
	s.chain("a", "a-1.0.0>a-2.0.0>a-3.0.0")
	cd := s.cluster("prod", "a: a-1.0.0 chain=a\nb: b-1.0.0 after=a values=x")
	check := func(what string, set *v1alpha1.ServiceSet, want string) {
		t.Helper()
		if diff := cmp.Diff(trimmed(want), said(set.Spec.Services)); diff != "" {
			t.Fatalf("%s: the services differ (-want +got):\n%s", what, diff)
		}
	}

	set := s.apply(cd, nil, create)
	check("first", set, "a: a-1.0.0@1.0.0")
	s.apply(cd, nil, none)
	s.report(set, "a: Deployed a-1.0.0@1.0.0")
	set = s.apply(cd, nil, update)
	check("the second layer", set, "a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0 after=a values=x")
	s.report(set, "a: Deployed a-1.0.0@1.0.0\nb: Deployed b-1.0.0@1.0.0")
	s.apply(cd, nil, none)

	cd.Spec.ServiceSpec.Services = desired(t, "b: b-1.0.0 after=a values=y\na: a-3.0.0 chain=a")
	set = s.apply(cd, nil, update)
	check("one step, b is locked", set, "a: a-2.0.0@2.0.0 to=a-3.0.0@3.0.0\nb: b-1.0.0@1.0.0 after=a values=x")
	s.report(set, "a: Deployed a-2.0.0@2.0.0\nb: Deployed b-1.0.0@1.0.0")
	set = s.apply(cd, nil, update)
	s.report(set, "a: Deployed a-3.0.0@3.0.0\nb: Deployed b-1.0.0@1.0.0")
	set = s.apply(cd, nil, update)
	check("at the end", set, "a: a-3.0.0@3.0.0\nb: b-1.0.0@1.0.0 after=a values=y")
	s.apply(cd, nil, none)

	cd.Spec.ServiceSpec.Services = nil
	set = s.apply(cd, nil, update)
	check("b goes before a", set, "a: a-3.0.0@3.0.0")
	s.report(set, "a: Deployed a-3.0.0@3.0.0\nb: Deleting b-1.0.0@1.0.0")
	s.apply(cd, nil, none)
	s.report(set, "a: Deployed a-3.0.0@3.0.0")
	set = s.apply(cd, nil, update)
	check("then a", set, "")
	s.report(set, "")
	s.apply(cd, nil, v1alpha1.ServiceSetOperationDelete)
	s.apply(cd, nil, none)
}

func TestNothingIsWrittenWhenNothingChangesInMeaning(t *testing.T) {
	s := startAPIServer(t)
	s.templates("a-1.0.0", "b-1.0.0", "c-1.0.0")
	cd := s.cluster("prod", "a: a-1.0.0\nb: b-1.0.0")
	cd.Spec.ServiceSpec.Provider.Config = &apiextensionsv1.JSON{Raw: []byte(`{"a":1,"b":[1.0,true]}`)}
	set := s.apply(cd, nil, create)
	s.report(set, "a: Deployed\nb: Deployed")
	cd.Spec.ServiceSpec.Services = desired(t, "a: a-1.0.0\nb: b-1.0.0\nc: c-1.0.0 after=a,b")
	set = s.apply(cd, nil, update)
	s.report(set, "a: Deployed\nb: Deployed\nc: Deployed")

	cd.Spec.ServiceSpec.Services = desired(t, "default/c: c-1.0.0 after=default/b,a\nb: b-1.0.0\na: a-1.0.0")
	cd.Spec.ServiceSpec.Provider.Config = &apiextensionsv1.JSON{Raw: []byte(`{ "b": [1, true], "a": 1 }`)}
	s.apply(cd, nil, none)
	s.report(set, "c: Deployed\na: Failed\nb: Deployed")
	s.apply(cd, nil, none)

	cd.Spec.ServiceSpec.Provider.Config = &apiextensionsv1.JSON{Raw: []byte(`{"a":2}`)}
	s.apply(cd, nil, update)
}

func TestAChangedProviderSelectorIsAnUpdate(t *testing.T) {
	s := startAPIServer(t)
	s.templates("a-1.0.0")
	cd := s.cluster("prod", "a: a-1.0.0")
	s.apply(cd, nil, create)
	s.provider.Spec.Selector.MatchLabels = map[string]string{"manager": "two"}
	if err := s.Update(t.Context(), s.provider); err != nil {
		t.Fatal(err)
	}
	set := s.apply(cd, nil, update)
	want := map[string]string{"manager": "two", v1alpha1.ClusterLabel: "prod"}
	if diff := cmp.Diff(want, set.Labels); diff != "" {
		t.Errorf("the labels differ (-want +got):\n%s", diff)
	}
	s.apply(cd, nil, none)
}

func TestAStoredEntryWithoutAVersionIsWrittenWithOne(t *testing.T) {
	s := startAPIServer(t)
	s.templates("a-1.0.0")
	cd := s.cluster("prod", "a: a-1.0.0")
	set := s.apply(cd, nil, create)
	set.Spec.Services[0].Version = ""
	if err := s.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	set = s.apply(cd, nil, update)
	if diff := cmp.Diff("a: a-1.0.0@1.0.0\n", said(set.Spec.Services)); diff != "" {
		t.Errorf("the services differ (-want +got):\n%s", diff)
	}
}

func TestAWriteThatCameFirstIsNoError(t *testing.T) {
	s := startAPIServer(t)
	s.templates("a-1.0.0", "a-2.0.0")
	cd := s.cluster("prod", "a: a-1.0.0")
	p := serviceset.NewProcessor(s)
	set, op, err := serviceset.GetServiceSetWithOperation(t.Context(), s, s.requisites(cd, nil))
	if err != nil || op != create {
		t.Fatal(op, err)
	}
	if err := p.CreateOrUpdateServiceSet(t.Context(), op, set.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if err := p.CreateOrUpdateServiceSet(t.Context(), op, set.DeepCopy()); err != nil {
		t.Errorf("a set that exists already: %v", err)
	}

	current := &v1alpha1.ServiceSet{}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(set), current); err != nil {
		t.Fatal(err)
	}
	stale := current.DeepCopy()
	current.Annotations["somebody"] = "else"
	if err := s.Update(t.Context(), current); err != nil {
		t.Fatal(err)
	}
	stale.Spec.Services = nil
	if err := p.CreateOrUpdateServiceSet(t.Context(), update, stale); err != nil {
		t.Errorf("a set that was changed: %v", err)
	}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(set), current); err != nil {
		t.Fatal(err)
	}
	if len(current.Spec.Services) != 1 {
		t.Error("the other write was overwritten")
	}

	for what, err := range map[string]error{
		"no set":            p.CreateOrUpdateServiceSet(t.Context(), update, nil),
		"unknown operation": p.CreateOrUpdateServiceSet(t.Context(), "upsert", current),
		"no namespace":      p.CreateOrUpdateServiceSet(t.Context(), create, &v1alpha1.ServiceSet{}),
	} {
		if err == nil {
			t.Errorf("%s: there is no error", what)
		}
	}
}

func TestAProviderThatDoesNotExistIsAnErrorThatSaysHowToMendIt(t *testing.T) {
	s := startAPIServer(t)
	s.templates("a-1.0.0")
	cd := s.cluster("prod", "a: a-1.0.0")
	cd.Spec.ServiceSpec.Provider.Name = "absent"
	_, _, err := serviceset.GetServiceSetWithOperation(t.Context(), s, s.requisites(cd, nil))
	want := "StateManagementProvider absent does not exist: create it, or name another one in serviceSpec.provider"
	if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v", err)
	}
}

func TestASetOfAnotherOwnerIsNotTakenOver(t *testing.T) {
	s := startAPIServer(t)
	s.templates("a-1.0.0")
	cd := s.cluster("prod", "a: a-1.0.0")
	s.create(&v1alpha1.ServiceSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "prod"},
		Spec:       v1alpha1.ServiceSetSpec{Cluster: "staging"},
	})
	_, _, err := serviceset.GetServiceSetWithOperation(t.Context(), s, s.requisites(cd, nil))
	if err == nil || !strings.Contains(err.Error(), `it belongs to cluster "staging"`) {
		t.Errorf("the error is %v", err)
	}
}

func TestASetThatIsBeingDeletedIsLeftAlone(t *testing.T) {
	s := startAPIServer(t)
	s.templates("a-1.0.0")
	cd := s.cluster("prod", "a: a-1.0.0")
	set := s.apply(cd, nil, create)
	set.Finalizers = []string{"example.org/held"}
	if err := s.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	cd.Spec.ServiceSpec.Services = desired(t, "a: a-1.0.0 values=x")
	set = s.apply(cd, nil, none)
	set.Finalizers = nil
	if err := s.Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	s.apply(cd, nil, create)
}
