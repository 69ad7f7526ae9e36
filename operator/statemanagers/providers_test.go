package statemanagers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/statemanagers"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
)

// ownProvider gives the world a provider that no other one has, which does not exist yet.
func (w *world) ownProvider() *v1alpha1.StateManagementProvider {
	name := "own-" + w.namespace[len(w.namespace)-5:]
	w.config.Native.Provider, w.config.LeaveProviders = name, true
	provider := &v1alpha1.StateManagementProvider{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.StateManagementProviderSpec{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}},
	}
	w.t.Cleanup(func() {
		if err := client.IgnoreNotFound(w.user.Delete(context.Background(), provider.DeepCopy())); err != nil {
			w.t.Error(err)
		}
	})
	return provider
}

// wantProvider waits until a provider has a condition.
func (w *world) wantProvider(provider *v1alpha1.StateManagementProvider, want string) {
	w.t.Helper()
	operatortest.Eventually(w.t, "the provider says "+want, func() error {
		if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(provider), provider); err != nil {
			return err
		}
		if provider.Status.ObservedGeneration != provider.Generation {
			return errors.New("the status is about another generation")
		}
		return conditionIs(provider.Status.Conditions, want)
	})
}

// ownSet is a set of one service that a user has made.
func (w *world) ownSet(provider string, labels map[string]string, service string) *v1alpha1.ServiceSet {
	s := w.service(service)
	return &v1alpha1.ServiceSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "own", Labels: labels},
		Spec: v1alpha1.ServiceSetSpec{
			Cluster: "one", Provider: v1alpha1.StateManagementProviderConfig{Name: provider},
			Services: []v1alpha1.ServiceWithValues{{Name: s.Name, Namespace: s.Namespace, Template: s.Template, Version: "1.0.0"}},
		},
	}
}

func TestAProviderThatIsMissingIsCreatedAndReady(t *testing.T) {
	w := newWorld(t)
	provider := w.ownProvider()
	w.config.LeaveProviders = false
	w.start()
	w.wantProvider(provider, "Ready=True Running: operator platform carries the service sets out")
	if got := provider.Spec.Selector.MatchLabels; len(got) != 1 || got[statemanagers.ProviderLabel] != provider.Name {
		t.Errorf("it selects by %v", got)
	}
}

func TestAProviderSelectsItsSets(t *testing.T) {
	w := newWorld(t)
	provider := w.ownProvider()
	if err := w.user.Create(t.Context(), provider.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	w.files("rules", map[string]string{"rules.yaml": mapManifest})
	w.create(filesTemplate("rules"), cluster("one"))
	w.reach("one")
	w.start()
	w.wantProvider(provider, "Ready=True Running")
	set := w.ownSet(provider.Name, map[string]string{"team": "other"}, "rules=rules")
	w.create(set)

	change(w, set, func(s *v1alpha1.ServiceSet) { s.Labels["team"] = "shop" })
	w.wantSet("own", "Ready=True Deployed")
	w.wantText("rules", "allow", "some")

	change(w, set, func(s *v1alpha1.ServiceSet) { s.Labels["team"], s.Spec.Services = "other", nil })
	w.wantSet("own", "Suspended=True "+statemanagers.ReasonNotSelected)
	w.wantText("rules", "allow", "some")
	w.wantService("own", "rules", "Deployed rules")

	change(w, set, func(s *v1alpha1.ServiceSet) { s.Labels["team"] = "shop" })
	w.wantText("rules", "allow", "")
	if err := w.user.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	w.wantGone(set)
}

func TestASetThatIsNotSelectedIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	provider := w.ownProvider()
	if err := w.user.Create(t.Context(), provider.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	w.files("rules", map[string]string{"rules.yaml": mapManifest})
	w.create(filesTemplate("rules"), cluster("one"))
	w.reach("one")
	set := w.ownSet(provider.Name, nil, "rules=rules")
	w.create(set)
	r := w.start()
	w.wantProvider(provider, "Ready=True Running")
	p, err := r.native().Plan(t.Context(), client.ObjectKeyFromObject(set))
	if err == nil && p.Counts().Any() {
		t.Errorf("%s is planned", p.Counts())
	}
	left, err := w.set("own")
	if err != nil || len(left.Finalizers) > 0 || len(left.Status.Conditions) > 0 {
		t.Errorf("the set was touched: %v, %v, %v", left.Finalizers, left.Status, err)
	}
}

func TestNothingIsDoneWhileAProviderIsSuspended(t *testing.T) {
	w := newWorld(t)
	provider := w.ownProvider()
	if err := w.user.Create(t.Context(), provider.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	w.create(pageTemplate(w.charts, "1.0.0"), pageTemplate(w.charts, "2.0.0"), cluster("one"))
	w.reach("one")
	w.start()
	set := w.ownSet(provider.Name, map[string]string{"team": "shop"}, "shop=page-1.0.0")
	w.create(set)
	w.wantSet("own", "Ready=True Deployed")

	change(w, provider, func(p *v1alpha1.StateManagementProvider) { p.Spec.Suspend = true })
	w.wantProvider(provider, "Ready=False "+statemanagers.ReasonSuspended)
	w.wantSet("own", "Suspended=True "+statemanagers.ReasonSuspended)
	w.wantSet("own", "Ready=False "+statemanagers.ReasonSuspended)
	w.wantSet("own", "Blocked=True "+statemanagers.ReasonSuspended)
	change(w, set, func(s *v1alpha1.ServiceSet) {
		s.Spec.Services[0].Template, s.Spec.Services[0].Version = "page-2.0.0", "2.0.0"
	})
	operatortest.Eventually(t, "the change is seen", func() error {
		s, err := w.set("own")
		if err != nil {
			return err
		}
		for _, c := range s.Status.Conditions {
			if c.Type == statemanagers.ConditionSuspended && c.ObservedGeneration == s.Generation {
				return nil
			}
		}
		return fmt.Errorf("the conditions are %v", s.Status.Conditions)
	})
	w.wantText("shop", "version", "1.0.0")

	change(w, provider, func(p *v1alpha1.StateManagementProvider) { p.Spec.Suspend = false })
	w.wantText("shop", "version", "2.0.0")
	w.wantSet("own", "Ready=True Deployed")
	w.wantProvider(provider, "Ready=True Running")
}

// TestR19OnlyTheSystemNamespaceHasSetsOfTheManagementCluster holds that who may write ServiceSets elsewhere does not get the operator's rights
// on the management cluster, and that what an earlier version has carried out can be deleted.
func TestR19OnlyTheSystemNamespaceHasSetsOfTheManagementCluster(t *testing.T) {
	w := newWorld(t)
	provider := w.ownProvider()
	if err := w.user.Create(t.Context(), provider.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	w.files("rules", map[string]string{"rules.yaml": mapManifest})
	w.create(filesTemplate("rules"))
	r := w.start()
	labels := map[string]string{"team": "shop"}
	before := w.ownSet(provider.Name, labels, "rules=rules")
	before.Spec.Cluster, before.Spec.MultiClusterService = "", "base"
	w.create(before)
	w.wantText("rules", "allow", "some")
	w.wantSet("own", "Ready=True Deployed")
	r.stop()

	w.config.SystemNamespace = w.kube.Namespace(t)
	after := w.ownSet(provider.Name, labels, "more=rules")
	after.Name, after.Spec.Cluster, after.Spec.MultiClusterService = "more", "", "base"
	w.create(after)
	r = w.start()
	held := "Suspended=True " + statemanagers.ReasonMisplaced +
		": the set names no cluster, and those of the management cluster are in the namespace " + w.config.SystemNamespace
	w.wantSet("own", held)
	w.wantSet("more", held)
	w.wantSet("more", "Ready=False "+statemanagers.ReasonMisplaced)
	w.wantText("rules", "allow", "some")
	set, err := w.set("more")
	if err != nil || len(set.Status.Services) > 0 {
		t.Errorf("it was carried out: %+v, %v", set.Status, err)
	}
	for _, set := range []*v1alpha1.ServiceSet{after, before} {
		if err := w.user.Delete(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		w.wantGone(set)
	}
	w.wantText("rules", "allow", "")
	r.stop()
}

// standstill is a state manager whose objects go on working by themselves. It notes what is carried out.
type standstill struct {
	mu   sync.Mutex
	done []string
}

func (s *standstill) Name() string { return "standstill" }

func (s *standstill) Compute(_ context.Context, set *statemanager.Set) (*statemanager.Work, error) {
	if set.ServiceSet.DeletionTimestamp != nil {
		return &statemanager.Work{}, nil
	}
	return s.work("go", set), nil
}

// Suspend implements statemanager.Suspender.
func (s *standstill) Suspend(_ context.Context, set *statemanager.Set) (*statemanager.Work, error) {
	return s.work("stand still", set), nil
}

// work has something to do until it was done last.
func (s *standstill) work(what string, set *statemanager.Set) *statemanager.Work {
	s.mu.Lock()
	defer s.mu.Unlock()
	entry := set.ServiceSet.Spec.Services[0]
	work := &statemanager.Work{Services: []v1alpha1.ServiceState{{
		Name: entry.Name, Namespace: entry.Namespace, Template: entry.Template, Version: entry.Version, State: v1alpha1.ServiceStateDeployed,
	}}}
	if len(s.done) == 0 || s.done[len(s.done)-1] != what {
		work.Operations = []statemanager.Operation{{
			Service: client.ObjectKey{Namespace: entry.Namespace, Name: entry.Name}, Payload: what,
			Changes: []plan.Change{{Action: plan.Update, Object: plan.Object{Kind: "Machine", Name: entry.Name}}},
		}}
	}
	return work
}

func (s *standstill) CarryOut(_ context.Context, _ *statemanager.Set, operation *statemanager.Operation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, operation.Payload.(string))
	return nil
}

func (s *standstill) Release(client.ObjectKey) {}

func TestWhatGoesOnByItselfStandsStillWhileItsProviderIsSuspended(t *testing.T) {
	w := newWorld(t)
	provider := w.ownProvider()
	if err := w.user.Create(t.Context(), provider.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	manager := &standstill{}
	w.config.Native, w.config.Managers = nil, []statemanagers.Manager{{Provider: provider.Name, StateManager: manager}}
	w.create(filesTemplate("rules"), cluster("one"))
	w.start()
	set := w.ownSet(provider.Name, map[string]string{"team": "shop"}, "rules=rules")
	w.create(set)
	wantDone := func(want ...string) {
		t.Helper()
		operatortest.Eventually(t, fmt.Sprintf("%v is done", want), func() error {
			manager.mu.Lock()
			defer manager.mu.Unlock()
			if !slices.Equal(manager.done, want) {
				return fmt.Errorf("done: %v", manager.done)
			}
			return nil
		})
	}
	wantDone("go")
	change(w, provider, func(p *v1alpha1.StateManagementProvider) { p.Spec.Suspend = true })
	wantDone("go", "stand still")
	w.wantSet("own", "Suspended=True "+statemanagers.ReasonSuspended)
	change(w, provider, func(p *v1alpha1.StateManagementProvider) { p.Spec.Suspend = false })
	wantDone("go", "stand still", "go")
	w.wantSet("own", "Ready=True Deployed")
}
