package serviceset_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

func TestAServiceGoesFromOneOwnerToAnotherWithoutAGap(t *testing.T) {
	s := startAPIServer(t)
	s.templates("a-1.0.0", "a-2.0.0", "a-3.0.0", "b-1.0.0")
	s.chain("a", "a-1.0.0>a-2.0.0>a-3.0.0")
	cd := s.cluster("prod", "a: a-1.0.0\nb: b-1.0.0 after=a")
	own := s.apply(cd, nil, create)
	s.report(own, "a: Deployed a-1.0.0@1.0.0")

	mcs := s.multi("base", 200, "a: a-3.0.0 chain=a")
	s.apply(cd, nil, none) // a is kept, and b waits for what is desired now
	theirs := s.apply(cd, mcs, create)
	if diff := cmp.Diff("a: a-1.0.0@1.0.0\n", said(theirs.Spec.Services)); diff != "" {
		t.Fatalf("the new owner's services differ (-want +got):\n%s", diff)
	}
	s.apply(cd, mcs, none) // as long as both have it
	own = s.apply(cd, nil, update)
	if diff := cmp.Diff("", said(own.Spec.Services)); diff != "" || len(own.Spec.Removing) > 0 {
		t.Fatalf("the old owner's services differ (-want +got):\n%s\nremoving: %v", diff, own.Spec.Removing)
	}
	s.report(theirs, "a: Deployed a-1.0.0@1.0.0")
	theirs = s.apply(cd, mcs, update)
	if diff := cmp.Diff("a: a-2.0.0@2.0.0 to=a-3.0.0@3.0.0\n", said(theirs.Spec.Services)); diff != "" {
		t.Fatalf("the new owner's services differ (-want +got):\n%s", diff)
	}
	s.report(theirs, "a: Deployed a-2.0.0@2.0.0")
	theirs = s.apply(cd, mcs, update)
	s.report(theirs, "a: Deployed a-3.0.0@3.0.0")
	own = s.apply(cd, nil, update)
	if diff := cmp.Diff("b: b-1.0.0@1.0.0 after=a\n", said(own.Spec.Services)); diff != "" {
		t.Errorf("b does not see what the other owner runs (-want +got):\n%s", diff)
	}

	if err := s.Delete(t.Context(), mcs); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the garbage collector takes the set of the other owner away", func() bool {
		return apierrors.IsNotFound(s.Get(t.Context(), client.ObjectKeyFromObject(theirs), &v1alpha1.ServiceSet{}))
	})
	own = s.apply(cd, nil, update)
	if diff := cmp.Diff("a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0 after=a\n", said(own.Spec.Services)); diff != "" {
		t.Errorf("a does not come back when the other owner is gone (-want +got):\n%s", diff)
	}
}

func TestTheManagementClusterHasASetOfItsOwn(t *testing.T) {
	s := startAPIServer(t)
	s.templates("a-1.0.0", "b-1.0.0")
	cd := s.cluster("management", "a: a-1.0.0")
	mcs := s.multi("base", 100, "a: a-1.0.0\nb: b-1.0.0 after=a")
	mcs.Spec.ServiceSpec.Provider.SelfManagement = true
	if err := s.Update(t.Context(), mcs); err != nil {
		t.Fatal(err)
	}
	s.report(s.apply(cd, nil, create), "a: Deployed")
	set := s.apply(nil, mcs, create)
	if diff := cmp.Diff("a: a-1.0.0@1.0.0\n", said(set.Spec.Services)); diff != "" {
		t.Errorf("the services differ (-want +got):\n%s", diff)
	}
	want := map[string]string{"manager": "one", v1alpha1.ManagementLabel: "true"}
	if diff := cmp.Diff(want, set.Labels); diff != "" {
		t.Errorf("the labels differ (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(set.Name, "management-") || set.Namespace != s.namespace || !set.Spec.Provider.SelfManagement {
		t.Errorf("the set is %s/%s of %+v", set.Namespace, set.Name, set.Spec.Provider)
	}
	s.report(set, "a: Deployed")
	set = s.apply(nil, mcs, update)
	if diff := cmp.Diff("a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0 after=a\n", said(set.Spec.Services)); diff != "" {
		t.Errorf("the services differ (-want +got):\n%s", diff)
	}
}

func TestEligibleServicesAreReadFromTheClustersSets(t *testing.T) {
	s := startAPIServer(t)
	s.templates("a-1.0.0", "b-1.0.0", "c-1.0.0")
	cd := s.cluster("prod", "a: a-1.0.0\nb: b-1.0.0 after=a\nc: c-1.0.0 after=b")
	s.report(s.apply(cd, nil, create), "a: Deployed a-1.0.0@1.0.0")

	eligible, err := serviceset.FilterServiceDependencies(t.Context(), s, s.namespace, nil, cd, cd.Spec.ServiceSpec.Services)
	if err != nil {
		t.Fatal(err)
	}
	want := []v1alpha1.Service{
		{Name: "a", Namespace: "default", Template: "a-1.0.0", Version: "1.0.0"},
		{Name: "b", Namespace: "default", Template: "b-1.0.0", Version: "1.0.0", DependsOn: []v1alpha1.ServiceDependsOn{{Name: "a", Namespace: "default"}}},
	}
	if diff := cmp.Diff(want, eligible); diff != "" {
		t.Errorf("the eligible services differ (-want +got):\n%s", diff)
	}
	if cd.Spec.ServiceSpec.Services[0].Version != "" {
		t.Error("the desired services were changed")
	}

	services, err := serviceset.ResolveServicesToApply(t.Context(), s, s.namespace, nil, cd, cd.Spec.ServiceSpec.Services, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("a: a-1.0.0@1.0.0\nb: b-1.0.0@1.0.0 after=a\n", said(services)); diff != "" {
		t.Errorf("the services to apply differ (-want +got):\n%s", diff)
	}

	_, err = serviceset.FilterServiceDependencies(t.Context(), s, s.namespace, nil, cd, desired(t, "a: a-1.0.0 after=x"))
	if err == nil || !strings.Contains(err.Error(), "service default/a depends on default/x, which is not listed") {
		t.Errorf("the error of an absent dependency is %v", err)
	}
}

func TestVersionsComeFromTheServiceItsTemplateItsChartOrItsName(t *testing.T) {
	s := startAPIServer(t)
	s.templates("own-1.0.0", "named")
	chart := &v1alpha1.ServiceTemplate{}
	chart.Namespace, chart.Name = s.namespace, "chart"
	chart.Spec.Helm = &v1alpha1.HelmChart{Repository: "oci://registry.example.org", Chart: "c", Version: "4.5.6"}
	both := chart.DeepCopy()
	both.Name, both.Spec.Version = "both", "7.0.0"
	s.create(chart, both)
	s.chain("c", "own-1.0.0>both@7.0.0")

	services := desired(t, "a: own-1.0.0\nb: named\nc: chart\nd: both\ne: both version=9\nf: chain=c version=v7")
	if err := serviceset.ResolveServiceVersions(t.Context(), s, s.namespace, services); err != nil {
		t.Fatal(err)
	}
	want := desired(t, "a: own-1.0.0 version=1.0.0\nb: named version=named\nc: chart version=4.5.6\nd: both version=7.0.0\n"+
		"e: both version=9\nf: both chain=c version=v7")
	if diff := cmp.Diff(want, services); diff != "" {
		t.Errorf("the services differ (-want +got):\n%s", diff)
	}

	entries := []v1alpha1.ServiceWithValues{{Name: "a", Template: "chart"}, {Name: "b", Template: "gone", Version: "1"}}
	if err := serviceset.ResolveServiceVersions(t.Context(), s, s.namespace, entries); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("a: chart@4.5.6\nb: gone@1\n", said(entries)); diff != "" {
		t.Errorf("the entries differ (-want +got):\n%s", diff)
	}
}

func TestErrorsOfVersionsNameEveryCulprit(t *testing.T) {
	s := startAPIServer(t)
	s.templates("a-1.0.0")
	s.chain("c", "a-1.0.0")
	services := desired(t, "a: gone\nb: a-1.0.0\nc: lost\nd: chain=c version=2\ne: chain=x version=2")
	err := serviceset.ResolveServiceVersions(t.Context(), s, s.namespace, services)
	want := strings.ReplaceAll("ServiceTemplate NS/gone of service default/a does not exist: create it; "+
		"ServiceTemplate NS/lost of service default/c does not exist: create it; "+
		"ServiceTemplateChain NS/c of service default/d can't be used: ServiceTemplateChain c has no template with version 2: add one (it lists 1.0.0 as a-1.0.0); "+
		"ServiceTemplateChain NS/x of service default/e can't be used: ServiceTemplateChain x does not exist: create it", "NS", s.namespace)
	if err == nil || err.Error() != want {
		t.Errorf("the error differs:\ngot:  %v\nwant: %s", err, want)
	}
	if services[1].Version != "1.0.0" {
		t.Error("the service that can be resolved was not")
	}
	err = serviceset.ResolveServiceVersions(t.Context(), s, s.namespace, []v1alpha1.ServiceWithValues{{Name: "a", Template: "gone"}})
	if err == nil || !strings.Contains(err.Error(), "gone of service default/a does not exist") {
		t.Errorf("the error of an entry is %v", err)
	}
	if err := serviceset.ResolveServiceVersions(t.Context(), s, s.namespace, "services"); err == nil {
		t.Error("there is no error for a text")
	}
}

// moreChains reads one chain more than there is: one of before the server refused it.
type moreChains struct {
	client.Reader
	chain v1alpha1.ServiceTemplateChain
}

// List implements client.Reader.
func (m *moreChains) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := m.Reader.List(ctx, list, options...)
	if chains, ok := list.(*v1alpha1.ServiceTemplateChainList); ok {
		chains.Items = append(chains.Items, m.chain)
	}
	return err
}

func TestUpgradePathsOfDeployedServices(t *testing.T) {
	s := startAPIServer(t)
	s.templates("a-1.0.0", "a-2.0.0")
	s.chain("a", "a-1.0.0>a-2.0.0>a-3.0.0@3.0.0")
	bad := v1alpha1.ServiceTemplateChain{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "bad"}, Spec: chainSpec("a-1.0.0>x@1>y@2 a-2.0.0>x@2")}
	services := serviceset.ServicesWithDesiredChains(
		desired(t, "a: a-3.0.0 chain=a\nb: a-3.0.0 chain=gone\nc: a-3.0.0\nd: a-3.0.0 chain=a\ne: a-3.0.0 chain=bad"),
		[]v1alpha1.ServiceWithValues{
			{Name: "a", Template: "a-1.0.0"}, {Name: "b", Template: "a-1.0.0"}, {Name: "c", Template: "a-1.0.0"},
			{Name: "d", Template: "other"}, {Name: "e", Template: "a-1.0.0"}, {Name: "f", Template: "a-1.0.0"},
		})
	paths, err := serviceset.ServicesUpgradePaths(t.Context(), &moreChains{s, bad}, services, s.namespace)
	want := []v1alpha1.ServiceUpgradePaths{
		{Name: "a", Namespace: "default", Template: "a-1.0.0", AvailableUpgrades: []v1alpha1.UpgradePath{
			{Versions: []v1alpha1.AvailableUpgrade{{Name: "a-2.0.0", Version: "2.0.0"}}},
			{Versions: []v1alpha1.AvailableUpgrade{{Name: "a-2.0.0", Version: "2.0.0"}, {Name: "a-3.0.0", Version: "3.0.0"}}},
		}},
		{Name: "c", Namespace: "default", Template: "a-1.0.0"},
		{Name: "f", Namespace: "default", Template: "a-1.0.0"},
	}
	if diff := cmp.Diff(want, paths, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the paths differ (-want +got):\n%s", diff)
	}
	for _, culprit := range []string{
		"ServiceTemplateChain " + s.namespace + "/gone of service default/b does not exist: create it",
		"/a of service default/d does not have template other: add it there (it lists 1.0.0 as a-1.0.0, 2.0.0 as a-2.0.0, 3.0.0 as a-3.0.0)",
		"/bad of service default/e ", "template x has the versions 1 and 2",
	} {
		if err == nil || !strings.Contains(err.Error(), culprit) {
			t.Errorf("the error does not say %q: %v", culprit, err)
		}
	}
}
