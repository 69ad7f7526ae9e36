package servicesets_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

func TestAClusterTellsHowFarItsServicesAre(t *testing.T) {
	w := newWorld(t)
	w.templates("cert-1-0-0", "ingress-1-0-0")
	w.start()
	cd := cluster("prod", "gold", service("cert=cert-1-0-0"), service("ingress=ingress-1-0-0", "cert"))
	w.create(cd)
	w.wants(cd, "Ready=False InFlight: cert 1.0.0 is on its way; ingress waits for cert", "Progressing=True InFlight", "Blocked=False NotBlocked")
	set := w.setName(cd, nil)
	w.report(set, v1alpha1.ServiceStateFailed, "cert")
	w.wants(cd, "Ready=False Failed: cert: 1.0.0 failed: the hook failed; ingress waits for cert", "Progressing=False Failed: ingress waits for cert", "Blocked=True Failed: cert: 1.0.0 failed")
	w.report(set, v1alpha1.ServiceStateDeployed, "cert")
	w.wants(cd, "Ready=False InFlight: ingress 1.0.0 is on its way", "Blocked=False")
	w.report(set, v1alpha1.ServiceStateDeployed, "ingress")
	w.wants(cd, "Ready=True Deployed: all 2 services are deployed", "Progressing=False Deployed", "Blocked=False")
	settles(w, cd, "all is counted", func(cd *v1alpha1.ClusterDeployment) error {
		if cd.Status.ServicesDeployed != "2/2" || len(cd.Status.Services) != 2 || len(cd.Status.ServiceSets) != 1 {
			return fmt.Errorf("%+v", cd.Status)
		}
		return nil
	})
}

func TestWhatAClusterHasWrongIsSaidBeforeAnythingIsWritten(t *testing.T) {
	w := newWorld(t)
	w.templates("a-1-0-0", "b-1-0-0")
	w.start()
	for name, test := range map[string]struct {
		services []v1alpha1.Service
		provider string
		says     string
	}{
		"cycle":    {[]v1alpha1.Service{service("a=a-1-0-0", "b"), service("b=b-1-0-0", "a")}, "", "DependencyCycle: services depend on each other: default/a → default/b → default/a"},
		"absent":   {[]v1alpha1.Service{service("a=a-1-0-0", "c")}, "", "DependencyAbsent: service default/a depends on default/c, which is not listed"},
		"provider": {[]v1alpha1.Service{service("a=a-1-0-0")}, "absent", "ProviderMissing: StateManagementProvider absent does not exist"},
	} {
		cd := cluster(name, "gold", test.services...)
		cd.Spec.ServiceSpec.Provider.Name = test.provider
		w.create(cd)
		w.wants(cd, "Blocked=True "+test.says, "Ready=False "+test.says, "Progressing=False")
		if err := w.user.Get(t.Context(), w.setName(cd, nil), &v1alpha1.ServiceSet{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: the service set was written: %v", name, err)
		}
		settles(w, cd, "every service says so", func(cd *v1alpha1.ClusterDeployment) error {
			for _, s := range cd.Status.Services {
				if blocked := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionBlocked); blocked == nil || !strings.HasPrefix(test.says, blocked.Reason) {
					return fmt.Errorf("%s has %+v", s.Name, s.Conditions)
				}
			}
			return nil
		})
	}
}

func TestAClusterGoesOnWhenWhatItLackedAppears(t *testing.T) {
	w := newWorld(t)
	w.templates("a-1-0-0")
	r := w.start()
	cd := cluster("prod", "gold", service("a=a-1-0-0"), service("b=b-1-0-0", "a"))
	cd.Spec.ServiceSpec.Provider.Name = "later-" + w.namespace
	w.create(cd)
	w.wants(cd, "Blocked=True ProviderMissing")
	provider := &v1alpha1.StateManagementProvider{
		ObjectMeta: metav1.ObjectMeta{Name: "later-" + w.namespace},
		Spec:       v1alpha1.StateManagementProviderSpec{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"by": "later"}}},
	}
	w.create(provider)
	defer func() {
		if err := w.user.Delete(t.Context(), provider); err != nil {
			t.Error(err)
		}
	}()
	w.wants(cd, "Blocked=True TemplateMissing: b: ServiceTemplate b-1-0-0 does not exist: create it", "Progressing=True InFlight: a 1.0.0 is on its way")
	w.report(w.setName(cd, nil), v1alpha1.ServiceStateDeployed, "a")
	w.wants(cd, "Progressing=False TemplateMissing")
	r.reconcileAll(t)
	w.templates("b-1-0-0")
	w.report(w.setName(cd, nil), v1alpha1.ServiceStateDeployed, "b")
	w.wants(cd, "Ready=True")
}

func TestAProviderThatIsNamedLaterIsRefusedAloud(t *testing.T) {
	w := newWorld(t)
	w.templates("a-1-0-0")
	other := &v1alpha1.StateManagementProvider{
		ObjectMeta: metav1.ObjectMeta{Name: "other-" + w.namespace},
		Spec:       v1alpha1.StateManagementProviderSpec{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"by": "other"}}},
	}
	w.create(other)
	defer func() {
		if err := w.user.Delete(t.Context(), other); err != nil {
			t.Error(err)
		}
	}()
	rename := func(cd *v1alpha1.ClusterDeployment) { cd.Spec.ServiceSpec.Provider.Name = other.Name }

	// One whose provider was named when its set was carried out by native already.
	past := cluster("past", "gold", service("a=a-1-0-0"))
	rename(past)
	w.create(past)
	set := &v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.setName(past, nil).Name}, Spec: v1alpha1.ServiceSetSpec{
		Cluster: past.Name, Provider: v1alpha1.StateManagementProviderConfig{Name: v1alpha1.DefaultStateManagementProvider},
	}}
	if err := controllerutil.SetControllerReference(past, set, w.scheme); err != nil {
		t.Fatal(err)
	}
	w.create(set)
	w.start()
	says := fmt.Sprintf(`Invalid: it is carried out by provider "native", and can't go to %q: set the provider's name back, or delete the ServiceSet`, other.Name)
	w.wants(past, "Blocked=True "+says, "Ready=False "+says)
	change(w, past, func(cd *v1alpha1.ClusterDeployment) { cd.Spec.ServiceSpec.Provider.Name = "" })
	w.wants(past, "Blocked=False", "Progressing=True InFlight: a 1.0.0 is on its way")

	now := cluster("now", "gold", service("a=a-1-0-0"))
	w.create(now)
	w.wants(now, "Progressing=True InFlight")
	rename(now)
	if err := w.user.Update(t.Context(), now); err == nil || !strings.Contains(err.Error(), "the provider's name can't change") {
		t.Errorf("a provider was named later: %v", err)
	}
}

func TestAClusterIsGoneOnlyAfterItsServiceSets(t *testing.T) {
	w := newWorld(t)
	w.templates("a-1-0-0", "m-1-0-0")
	w.start()
	cd, mcs := cluster("prod", "gold", service("a=a-1-0-0")), w.multi("base", "gold", service("m=m-1-0-0"))
	w.create(cd, mcs)
	own, others := w.setName(cd, nil), w.setName(cd, mcs)
	for _, key := range []client.ObjectKey{own, others} {
		w.holdSet(key)
	}
	if err := w.user.Delete(t.Context(), cd); err != nil {
		t.Fatal(err)
	}
	w.wants(cd, "Ready=False Deleting: waits until its service sets are gone: "+own.Name+", "+others.Name)
	w.letSetGo(own)
	w.wants(cd, "Ready=False Deleting: waits until its service sets are gone: "+others.Name)
	w.letSetGo(others)
	w.wantGone(cd)
	w.wants(mcs, "Ready=True Deployed: no cluster is selected")
}

func TestADeletionThatWaitsForSomebodyElsesSetSaysSo(t *testing.T) {
	w := newWorld(t)
	w.templates("a-1-0-0", "m-1-0-0")
	w.system = w.kube.Namespace(t)
	w.start()
	cd, mcs := cluster("prod", "gold", service("a=a-1-0-0")), w.multi("base", "gold", service("m=m-1-0-0"))
	w.create(cd, mcs)
	w.wants(cd, "Progressing=True InFlight: a 1.0.0 is on its way")
	w.wants(mcs, "Progressing=True InFlight: m 1.0.0 is on its way")
	set := func(name, namespace, cluster, mcs string) *v1alpha1.ServiceSet {
		s := &v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1alpha1.ServiceSetSpec{
			Cluster: cluster, MultiClusterService: mcs, Provider: v1alpha1.StateManagementProviderConfig{Name: v1alpha1.DefaultStateManagementProvider},
		}}
		w.create(s)
		return s
	}
	own := set("own", w.namespace, cd.Name, "")
	set("elsewhere", w.namespace, "", mcs.Name)
	system := set("own", w.system, "", mcs.Name)
	if err := w.user.Delete(t.Context(), cd); err != nil {
		t.Fatal(err)
	}
	w.wants(cd, "Ready=False Deleting: waits until its service sets are gone: own")
	if err := w.user.Delete(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	w.wantGone(cd)

	if err := w.user.Delete(t.Context(), mcs); err != nil {
		t.Fatal(err)
	}
	w.wants(mcs, "Ready=False Deleting: waits until its service sets are gone from the management cluster")
	if err := w.user.Delete(t.Context(), system); err != nil {
		t.Fatal(err)
	}
	w.wantGone(mcs)
}

func TestServicesThatGoAndStayAreListed(t *testing.T) {
	w := newWorld(t)
	w.templates("a-1-0-0", "b-1-0-0", "c-1-0-0")
	w.start()
	c := service("c=c-1-0-0")
	c.Disable = true
	cd := cluster("prod", "gold", service("a=a-1-0-0"), service("b=b-1-0-0", "a"), c)
	w.create(cd)
	set := w.setName(cd, nil)
	w.report(set, v1alpha1.ServiceStateDeployed, "a")
	w.report(set, v1alpha1.ServiceStateDeployed, "b")
	w.wants(cd, "Ready=True Deployed: all 2 services are deployed, and a disabled one is left as it is")
	change(w, cd, func(cd *v1alpha1.ClusterDeployment) { cd.Spec.ServiceSpec.Services = []v1alpha1.Service{c} })
	w.wants(cd, "Ready=True Deployed: no services are desired", "Progressing=True Removing: a is removed after b; b is being removed")
	w.takeAway(set)
	w.wants(cd, "Progressing=False Deployed")
	settles(w, cd, "only the disabled service is left", func(cd *v1alpha1.ClusterDeployment) error {
		if len(cd.Status.Services) != 1 || cd.Status.Services[0].Conditions[0].Reason != v1alpha1.ReasonDisabled {
			return fmt.Errorf("%+v", cd.Status.Services)
		}
		return nil
	})
}
