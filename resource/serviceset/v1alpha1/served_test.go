package v1alpha1_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

func TestLargeObjectsAreWithinTheServersBudgetForRules(t *testing.T) {
	c, namespace := start(t)
	create := func(o client.Object) {
		t.Helper()
		operatortest.Eventually(t, o.GetName()+" is created", func() bool {
			err := c.Create(t.Context(), o)
			if err != nil && !apierrors.IsTimeout(err) && !apierrors.IsAlreadyExists(err) { // a busy API server takes its time
				t.Fatal(err)
			}
			return !apierrors.IsTimeout(err)
		})
	}
	cd := &v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Name: "large", Namespace: namespace}}
	for i := range 1000 {
		s := v1alpha1.Service{Name: fmt.Sprintf("service-with-quite-a-long-name-%04d", i), Template: "some-template-1-0-0"}
		for d := max(0, i-15); d < i; d++ {
			s.DependsOn = append(s.DependsOn, v1alpha1.ServiceDependsOn{Name: fmt.Sprintf("service-with-quite-a-long-name-%04d", d)})
		}
		cd.Spec.ServiceSpec.Services = append(cd.Spec.ServiceSpec.Services, s)
	}
	create(cd)

	chain := &v1alpha1.ServiceTemplateChain{ObjectMeta: metav1.ObjectMeta{Name: "large", Namespace: namespace}}
	name := func(i int) string { return fmt.Sprintf("%s-%03d", strings.Repeat("long", 20), i) }
	for i := range 128 {
		supported := v1alpha1.SupportedTemplate{Name: name(i)}
		for u := i + 1; u < min(128, i+33); u++ {
			supported.AvailableUpgrades = append(supported.AvailableUpgrades, v1alpha1.AvailableUpgrade{Name: name(u), Version: fmt.Sprintf("%d.0.0-%s", u, strings.Repeat("long", 20))})
		}
		chain.Spec.SupportedTemplates = append(chain.Spec.SupportedTemplates, supported)
	}
	create(chain)
}

func TestEmptyFieldsGetTheirDefaults(t *testing.T) {
	c, namespace := start(t)
	cd := &v1alpha1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "defaults", Namespace: namespace},
		Spec: v1alpha1.ClusterDeploymentSpec{ServiceSpec: v1alpha1.ServiceSpec{Services: []v1alpha1.Service{
			{Name: "a", Template: "a-1", DependsOn: []v1alpha1.ServiceDependsOn{{Name: "b"}}},
		}}},
	}
	if err := c.Create(t.Context(), cd); err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.ServiceSpec{
		Priority: v1alpha1.DefaultPriority,
		Services: []v1alpha1.Service{
			{Name: "a", Namespace: "default", Template: "a-1", DependsOn: []v1alpha1.ServiceDependsOn{{Name: "b", Namespace: "default"}}},
		},
	}
	if diff := cmp.Diff(want, cd.Spec.ServiceSpec); diff != "" {
		t.Errorf("the services differ (-want +got):\n%s", diff)
	}
}

func TestAStatusIsWrittenApartFromItsSpec(t *testing.T) {
	c, namespace := start(t)
	set := &v1alpha1.ServiceSet{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: namespace},
		Spec:       v1alpha1.ServiceSetSpec{Cluster: "a"},
	}
	if err := c.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	set.Status.Services = []v1alpha1.ServiceState{{
		Name: "a", State: v1alpha1.ServiceStateFailed, Type: v1alpha1.ServiceTypeHelm, FailureMessage: "the hook failed",
		LastDeployed: &v1alpha1.LastDeployed{ServiceVersion: v1alpha1.ServiceVersion{Template: "a-1", Version: "1.0.0"}, Fingerprint: "f"},
	}}
	want := set.Status.DeepCopy()
	want.Services[0].Namespace = "default"
	set.Spec.Cluster = "" // would be refused if it was looked at
	if err := c.Status().Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	got := &v1alpha1.ServiceSet{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(set), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*want, got.Status); diff != "" {
		t.Errorf("the status differs (-want +got):\n%s", diff)
	}
	if got.Spec.Cluster != "a" {
		t.Errorf("the spec was written with the status: %+v", got.Spec)
	}

	got.Status.Services[0].State = "Fine"
	if err := c.Status().Update(t.Context(), got); err == nil || !strings.Contains(err.Error(), `supported values: "Pending"`) {
		t.Errorf("a state that does not exist was not refused as it should be: %v", err)
	}
}

func TestEveryKindHasAShortNameColumnsAndAStatus(t *testing.T) {
	var kinds []string
	for _, crd := range definitions(t) {
		kinds = append(kinds, crd.Spec.Names.Kind)
		version := crd.Spec.Versions[0]
		if len(crd.Spec.Names.ShortNames) == 0 {
			t.Errorf("%s has no short name", crd.Name)
		}
		if len(version.AdditionalPrinterColumns) < 2 {
			t.Errorf("%s has no columns", crd.Name)
		}
		// A chain is all said by what people write.
		if crd.Spec.Names.Kind != v1alpha1.ServiceTemplateChainKind && (version.Subresources == nil || version.Subresources.Status == nil) {
			t.Errorf("%s has no status subresource", crd.Name)
		}
	}
	slices.Sort(kinds)
	want := []string{
		v1alpha1.ClusterDeploymentKind, v1alpha1.MultiClusterServiceKind, v1alpha1.ServiceSetKind,
		v1alpha1.ServiceTemplateKind, v1alpha1.ServiceTemplateChainKind, v1alpha1.StateManagementProviderKind,
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("the kinds differ (-want +got):\n%s", diff)
	}
}
