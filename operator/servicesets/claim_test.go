package servicesets_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/frameworktest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// claimAnnotation is a public name: people take it off.
const claimAnnotation = "operatorkit.io/claimed-by"

// wantRefusal waits until an event on an object says that an operator does nothing for it, because another one has it.
func (w *world) wantRefusal(o client.Object, operator, holder string) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("%s says that %T %s is the one of %s", operator, o, o.GetName(), holder), func() error {
		events := &corev1.EventList{}
		if err := w.user.List(w.t.Context(), events, client.InNamespace(o.GetNamespace())); err != nil {
			return err
		}
		var all []string
		for i := range events.Items {
			e := &events.Items[i]
			if e.InvolvedObject.UID != o.GetUID() {
				continue
			}
			all = append(all, e.Message)
			claimed, refused, _ := strings.Cut(e.Message, ", and ")
			if strings.HasSuffix(claimed, fmt.Sprintf("of operator %q", holder)) && strings.Contains(refused, fmt.Sprintf("of operator %q does nothing for it", operator)) {
				return nil
			}
		}
		return fmt.Errorf("the events are %q", all)
	})
}

func TestR16OneOfTwoOperatorsHasAClusterAndTheOtherSaysWhose(t *testing.T) {
	w := newWorld(t)
	w.templates("m-1-0-0", "n-1-0-0")
	first := w.start()
	one, base := cluster("one", "gold", service("m=m-1-0-0")), w.multi("base", "gold", service("n=n-1-0-0"))
	w.create(one, base)
	own, shared := w.setName(one, nil), w.setName(one, base)
	w.report(own, v1alpha1.ServiceStateDeployed, "m")
	w.report(shared, v1alpha1.ServiceStateDeployed, "n")
	w.wants(one, "Ready=True Deployed")
	w.wants(base, "Ready=True Deployed")

	// A second one does not know the MultiClusterService: by itself it would take away what that has on the cluster.
	second := *w
	second.operator, second.scenario = "second", w.namespace+"-other"
	follower := second.start()
	w.wantRefusal(one, "second", "servicesets")
	change(w, one, func(cd *v1alpha1.ClusterDeployment) { cd.Labels["seen"] = "again" })
	for _, r := range []*running{follower, first} {
		frameworktest.Look(t, r.frameworks[0], one)
	}
	for key, name := range map[client.ObjectKey]string{own: "m", shared: "n"} {
		set := &v1alpha1.ServiceSet{}
		if err := w.user.Get(t.Context(), key, set); err != nil || set.DeletionTimestamp != nil || len(set.Spec.Services) != 1 || set.Spec.Services[0].Name != name {
			t.Errorf("ServiceSet %s: %v, %v", key, err, set.Spec.Services)
		}
	}
	w.wants(one, "Ready=True Deployed")
	if len(one.Finalizers) != 1 || one.Annotations[claimAnnotation] == "" {
		t.Errorf("the cluster has the finalizers %v and the annotations %v", one.Finalizers, one.Annotations)
	}

	// The first one has gone for good: its claim is taken off by hand.
	first.stop()
	change(w, one, func(cd *v1alpha1.ClusterDeployment) { delete(cd.Annotations, claimAnnotation) })
	settles(w, one, "the second one has the cluster", func(cd *v1alpha1.ClusterDeployment) error {
		if by := cd.Annotations[claimAnnotation]; !strings.Contains(by, `operator "second"`) {
			return fmt.Errorf("it is claimed by %q", by)
		}
		return nil
	})

	// What comes back does nothing but let go.
	w.start()
	w.wantRefusal(one, "servicesets", "second")
	if err := w.user.Delete(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	w.wantGone(one)
}

func TestR16AClaimOfAFormerNameIsTakenOver(t *testing.T) {
	w := newWorld(t)
	w.templates("m-1-0-0", "n-1-0-0")
	first := w.start()
	one, base := cluster("one", "gold", service("m=m-1-0-0")), w.multi("base", "gold", service("n=n-1-0-0"))
	w.create(one, base)
	w.report(w.setName(one, nil), v1alpha1.ServiceStateDeployed, "m")
	w.wants(one, "Ready=True Deployed")
	first.stop()

	w.operator, w.former = "renamed", []string{"servicesets"}
	w.start()
	for _, o := range []client.Object{one, base} {
		operatortest.Eventually(t, fmt.Sprintf("%T has another claim", o), func() error {
			if err := w.user.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			if by := o.GetAnnotations()[claimAnnotation]; !strings.Contains(by, `operator "renamed"`) {
				return fmt.Errorf("it is claimed by %q", by)
			}
			return nil
		})
	}
	change(w, one, func(cd *v1alpha1.ClusterDeployment) { cd.Spec.ServiceSpec.Services = nil })
	w.takeAway(w.setName(one, nil))
	operatortest.Eventually(t, "the set is gone", func() bool {
		return apierrors.IsNotFound(w.user.Get(t.Context(), w.setName(one, nil), &v1alpha1.ServiceSet{}))
	})
}

// Versions of the operator may judge a chain differently, and would write over each other for ever.
func TestR16OneOfTwoOperatorsTellsOfAChainAndTheOtherSaysWhose(t *testing.T) {
	w := newWorld(t)
	chain := chainOf("a", "a-1")
	w.create(chain)
	first := w.start()
	settles(w, chain, "the first one tells of it", func(chain *v1alpha1.ServiceTemplateChain) error {
		if chain.Status.ObservedGeneration == 0 || chain.Annotations[claimAnnotation] == "" {
			return fmt.Errorf("it is %+v", chain)
		}
		return nil
	})
	first.stop()
	second := *w
	second.operator = "second"
	follower := second.start()
	change(w, chain, func(chain *v1alpha1.ServiceTemplateChain) {
		chain.Spec.SupportedTemplates = append(chain.Spec.SupportedTemplates, v1alpha1.SupportedTemplate{Name: "a-2"})
	})
	w.wantRefusal(chain, "second", "servicesets")
	follower.settle(t)
	if err := w.user.Get(t.Context(), client.ObjectKeyFromObject(chain), chain); err != nil || chain.Status.ObservedGeneration == chain.Generation {
		t.Errorf("the second one tells of it: %v, %+v", err, chain.Status)
	}
}
