package servicesets_test

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// observe has a state manager take note of a ServiceSet as it is, with what it says of it as a whole.
func (w *world) observe(key client.ObjectKey, conditions ...metav1.Condition) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("%s takes that it was observed", key), func() error {
		set := &v1alpha1.ServiceSet{}
		if err := w.user.Get(w.t.Context(), key, set); err != nil {
			return err
		}
		set.Status.ObservedGeneration = set.Generation
		for _, c := range conditions {
			meta.SetStatusCondition(&set.Status.Conditions, c)
		}
		return w.user.Status().Update(w.t.Context(), set)
	})
}

// entry returns an entry of a ServiceSet, as soon as it is there.
func (w *world) entry(key client.ObjectKey, name, values string) {
	w.t.Helper()
	set := &v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	settles(w, set, fmt.Sprintf("%s has %s with the values %q", key, name, values), func(set *v1alpha1.ServiceSet) error {
		for _, e := range set.Spec.Services {
			if e.Name == name && e.Values == values {
				return nil
			}
		}
		return fmt.Errorf("%+v", set.Spec.Services)
	})
}

func TestNewValuesAreNotReadyBeforeTheyAreRolledOut(t *testing.T) {
	w := newWorld(t)
	w.templates("a-1-0-0", "b-1-0-0")
	w.start()
	one, mcs := cluster("one", "gold", service("a=a-1-0-0"), service("b=b-1-0-0", "a")), w.multi("base", "gold", service("m=a-1-0-0"))
	w.create(one, mcs)
	own, theirs := w.setName(one, nil), w.setName(one, mcs)
	w.report(own, v1alpha1.ServiceStateDeployed, "a")
	w.report(own, v1alpha1.ServiceStateDeployed, "b")
	w.report(theirs, v1alpha1.ServiceStateDeployed, "m")
	w.observe(own)
	w.observe(theirs)
	w.wants(one, "Ready=True")
	w.wants(mcs, "Ready=True")

	change(w, one, func(cd *v1alpha1.ClusterDeployment) {
		for i := range cd.Spec.ServiceSpec.Services {
			cd.Spec.ServiceSpec.Services[i].Values = "color: blue"
		}
	})
	w.entry(own, "a", "color: blue")
	w.wants(one, "Ready=False InFlight: a 1.0.0 is on its way; b waits for a", "Progressing=True", "Blocked=False")
	w.entry(own, "b", "")
	w.observe(own)
	w.entry(own, "b", "color: blue")
	w.wants(one, "Ready=False InFlight: b 1.0.0 is on its way")
	w.observe(own)
	w.wants(one, "Ready=True")

	change(w, mcs, func(mcs *v1alpha1.MultiClusterService) { mcs.Spec.ServiceSpec.Services[0].Values = "color: blue" })
	w.entry(theirs, "m", "color: blue")
	w.wants(mcs, "Ready=False InFlight: m 1.0.0 is on its way")
	w.observe(theirs)
	w.wants(mcs, "Ready=True")
}

func TestReadyIsNotToldWhileNobodyKnows(t *testing.T) {
	w := newWorld(t)
	w.templates("a-1-0-0")
	provider := &v1alpha1.StateManagementProvider{ObjectMeta: metav1.ObjectMeta{Name: "provider-" + w.namespace}}
	provider.Spec.Selector.MatchLabels = map[string]string{"provider": w.namespace}
	if err := w.user.Create(t.Context(), provider); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.user.Delete(t.Context(), provider) })
	w.start()
	one, mcs := cluster("one", "gold", service("a=a-1-0-0")), w.multi("base", "gold", service("m=a-1-0-0"))
	one.Spec.ServiceSpec.Provider.Name, mcs.Spec.ServiceSpec.Provider.Name = provider.Name, provider.Name
	w.create(one, mcs)
	sets := []client.ObjectKey{w.setName(one, nil), w.setName(one, mcs)}
	for i, name := range []string{"a", "m"} {
		w.report(sets[i], v1alpha1.ServiceStateDeployed, name)
	}
	bothSay := func(condition string) {
		t.Helper()
		w.wants(one, condition)
		w.wants(mcs, condition)
	}
	bothSay("Ready=True")
	says := func(conditionType string, status metav1.ConditionStatus, reason, message string) {
		t.Helper()
		for _, key := range sets {
			w.observe(key, metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message})
		}
	}
	says(v1alpha1.ConditionReachable, metav1.ConditionFalse, "Unreachable", "no answer")
	bothSay("Ready=False Unreachable: the cluster can't be reached: no answer")
	settles(w, one, "nor is that of the service told", func(cd *v1alpha1.ClusterDeployment) error {
		if c := meta.FindStatusCondition(cd.Status.Services[0].Conditions, v1alpha1.ConditionReady); c.Status != metav1.ConditionUnknown {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	says(v1alpha1.ConditionReachable, metav1.ConditionTrue, "Connected", "")
	bothSay("Ready=True")
	says(v1alpha1.ConditionReady, metav1.ConditionFalse, "Other", "something is wrong")
	bothSay("Ready=False " + v1alpha1.ReasonSetNotReady)
	says(v1alpha1.ConditionReady, metav1.ConditionTrue, "Deployed", "")
	bothSay("Ready=True")
	change(w, provider, func(p *v1alpha1.StateManagementProvider) { p.Spec.Suspend = true })
	bothSay("Ready=False " + v1alpha1.ReasonProviderSuspended)
	change(w, provider, func(p *v1alpha1.StateManagementProvider) { p.Spec.Suspend = false })
	bothSay("Ready=True")
}

func TestWhatIsNotSelectedAnyMoreIsWithdrawnWhateverTheSelectorWas(t *testing.T) {
	w := newWorld(t)
	w.templates("m-1-0-0")
	w.start()
	one, two, three := cluster("one", "gold"), cluster("two", "silver"), cluster("three", "bronze")
	mended, deleted := w.multi("mended", "gold", service("m=m-1-0-0")), w.multi("deleted", "bronze", service("m=m-1-0-0"))
	w.create(one, two, three, mended, deleted)
	w.report(w.setName(one, mended), v1alpha1.ServiceStateDeployed, "m")
	w.report(w.setName(three, deleted), v1alpha1.ServiceStateDeployed, "m")
	for _, mcs := range []*v1alpha1.MultiClusterService{mended, deleted} {
		w.wants(mcs, "Ready=True")
		change(w, mcs, func(mcs *v1alpha1.MultiClusterService) {
			mcs.Spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Likes"}}
		})
		w.wants(mcs, "Ready=False SelectorInvalid", "Blocked=True SelectorInvalid")
	}

	change(w, mended, func(mcs *v1alpha1.MultiClusterService) {
		mcs.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "silver"}}
	})
	w.report(w.setName(two, mended), v1alpha1.ServiceStateDeployed, "m")
	w.takeAway(w.setName(one, mended))
	w.wantGone(&v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.setName(one, mended).Name}})
	w.wants(mended, "Ready=True Deployed: all services are deployed on 1 cluster", "Blocked=False")
	w.wantClusters(mended, "two 1/1")

	if err := w.user.Delete(t.Context(), deleted); err != nil {
		t.Fatal(err)
	}
	set := &v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: w.setName(three, deleted).Name}}
	settles(w, set, "the services are withdrawn", func(set *v1alpha1.ServiceSet) error {
		if len(set.Spec.Services) > 0 {
			return errors.New("they are not")
		}
		return nil
	})
	w.takeAway(w.setName(three, deleted))
	w.wantGone(deleted)
}
