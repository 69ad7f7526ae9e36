package statemanagers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/statemanagers"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// claimAnnotation is a public name: people take it off.
const claimAnnotation = "operatorkit.io/claimed-by"

// beside returns the world of another operator on the same objects.
func (w *world) beside(operator string, former ...string) *world {
	other := *w
	other.operator, other.former = operator, former
	other.config = configOf(w.t, w.namespace, w.east)
	other.config.Native.Provider, other.config.LeaveProviders = w.config.Native.Provider, w.config.LeaveProviders
	return &other
}

// wantRefusal waits until an event on an object, with a reason, says that an operator does nothing for a provider, because another one has
// it.
func (w *world) wantRefusal(o client.Object, reason, operator, holder string) {
	w.t.Helper()
	claimed := fmt.Sprintf("StateManagementProvider %s is claimed by %s", w.config.Native.Provider, w.nameOf(holder))
	refused := fmt.Sprintf("and %s does nothing for it", w.nameOf(operator))
	operatortest.Eventually(w.t, fmt.Sprintf("%s says on %T that the provider is the one of %s", operator, o, holder), func() error {
		events := &corev1.EventList{}
		if err := w.user.List(w.t.Context(), events); err != nil {
			return err
		}
		var all []string
		for i := range events.Items {
			e := &events.Items[i]
			if e.InvolvedObject.UID != o.GetUID() {
				continue
			}
			all = append(all, e.Reason+": "+e.Message)
			if e.Reason == reason && strings.Contains(e.Message, claimed) && strings.Contains(e.Message, refused) {
				return nil
			}
		}
		return fmt.Errorf("the events are %q", all)
	})
}

// nameOf is how the framework for the sets of the world's provider is called.
func (w *world) nameOf(operator string) string {
	return fmt.Sprintf("framework %q of operator %q", "statemanager-"+w.config.Native.Provider, operator)
}

// managersOf are the frameworks of the state managers.
func managersOf(r *running) []*framework.Framework { return r.managers }

func TestR16OneOfTwoOperatorsHasAProviderAndTheOtherSaysWhose(t *testing.T) {
	w := newWorld(t)
	provider := w.ownProvider()
	w.config.LeaveProviders = false
	w.files("rules", map[string]string{"rules.yaml": mapManifest})
	w.create(filesTemplate("rules"), cluster("one"))
	w.reach("one")
	first := w.run(managersOf)
	w.wantProvider(provider, "Ready=True Running: operator platform carries the service sets out")
	set := w.ownSet(provider.Name, map[string]string{statemanagers.ProviderLabel: provider.Name}, "rules=rules")
	w.create(set)
	w.wantSet(set.Name, "Ready=True Deployed")

	second := w.beside("second")
	other := second.run(managersOf)
	w.wantRefusal(provider, statemanagers.EventClaimed, "second", "platform")
	w.wantRefusal(set, framework.ReasonReconciliationFailed, "second", "platform")
	w.edit("rules-files", func(files map[string]string) { files["rules.yaml"] = dataMap("rules", "allow: all") })
	w.wantText("rules", "allow", "all")
	w.wantSet(set.Name, "Ready=True Deployed")
	w.wantProvider(provider, "Ready=True Running: operator platform carries the service sets out")
	now, err := w.set(set.Name)
	if want := []string{first.managers[1].Finalizer()}; err != nil || !slices.Equal(now.Finalizers, want) {
		t.Errorf("the set has the finalizers %q, want %q: %v", now.Finalizers, want, err)
	}
	if p, err := other.managers[1].Plan(t.Context(), client.ObjectKeyFromObject(set)); err == nil && p.Counts().Any() {
		t.Errorf("the second one plans %s", p.Counts())
	}

	// The first one has gone for good. The next one has its name as a former one, and goes on.
	other.stop()
	first.stop()
	heir := w.beside("heir", "platform").run(managersOf)
	w.wantProvider(provider, "Ready=True Running: operator heir carries the service sets out")
	w.edit("rules-files", func(files map[string]string) { files["rules.yaml"] = dataMap("rules", "allow: none") })
	w.wantText("rules", "allow", "none")
	w.wantSet(set.Name, "Ready=True Deployed")

	// Whoever comes then gets the provider by hand.
	heir.stop()
	change(w, provider, func(p *v1alpha1.StateManagementProvider) { delete(p.Annotations, claimAnnotation) })
	second.run(managersOf)
	w.wantProvider(provider, "Ready=True Running: operator second carries the service sets out")
	w.wantSet(set.Name, "Ready=False")
	w.wantText("rules", "allow", "none")
}

func TestR16AProviderOfAFormerNameHasItsSetsAndWhatTheyConsistOf(t *testing.T) {
	w := newWorld(t)
	provider := w.ownProvider()
	w.config.LeaveProviders = false
	w.files("rules", map[string]string{"rules.yaml": mapManifest})
	w.create(filesTemplate("rules"), pageTemplate(w.charts, "1.0.0"), cluster("one"))
	w.reach("one")
	before := w.run(managersOf)
	w.wantProvider(provider, "Ready=True Running")
	set := w.ownSet(provider.Name, map[string]string{statemanagers.ProviderLabel: provider.Name}, "rules=rules")
	set.Spec.Services = append(set.Spec.Services, v1alpha1.ServiceWithValues{Name: "shop", Namespace: w.namespace, Template: "page-1.0.0", Version: "1.0.0"})
	w.create(set)
	w.wantSet(set.Name, "Ready=True Deployed: all 2 services are deployed")
	was := map[string]types.UID{}
	for _, name := range []string{"rules", "shop"} {
		was[name] = w.uidOf(name)
	}
	before.stop()

	former := provider.Name
	renamed := &v1alpha1.StateManagementProvider{ObjectMeta: metav1.ObjectMeta{Name: "new-" + former}}
	w.config.Native.Provider, w.config.Native.FormerProviders = renamed.Name, []string{former}
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(w.user.Delete(context.Background(), renamed)); err != nil {
			t.Error(err)
		}
	})
	after := w.run(managersOf)
	want := []string{after.managers[1].Finalizer()}
	operatortest.Eventually(t, fmt.Sprintf("the set has the finalizers %q", want), func() error {
		now, err := w.set(set.Name)
		if err == nil && !slices.Equal(now.Finalizers, want) {
			err = fmt.Errorf("they are %q", now.Finalizers)
		}
		return err
	})
	w.wantProvider(renamed, "Ready=True Running")
	w.wantProvider(provider, "Ready=True Running")
	if by := provider.Annotations[claimAnnotation]; !strings.Contains(by, renamed.Name) {
		t.Errorf("the provider of the former name is claimed by %q", by)
	}
	w.edit("rules-files", func(files map[string]string) { files["rules.yaml"] = dataMap("rules", "allow: all") })
	w.wantText("rules", "allow", "all")
	w.wantSet(set.Name, "Ready=True Deployed: all 2 services are deployed")
	for name, uid := range was {
		if is := w.uidOf(name); is != uid {
			t.Errorf("%s was made anew", name)
		}
	}
	if err := w.user.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	w.wantGone(set)
	w.wantText("rules", "allow", "")
	w.wantText("shop", "version", "")
}

// uidOf returns the UID of a ConfigMap.
func (w *world) uidOf(name string) types.UID {
	w.t.Helper()
	cm := &corev1.ConfigMap{}
	if err := w.user.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, cm); err != nil {
		w.t.Fatal(err)
	}
	return cm.UID
}
