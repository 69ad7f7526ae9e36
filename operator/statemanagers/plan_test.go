package statemanagers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/plantest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/manifest"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// What carriers write for themselves, by its name in plans or on the cluster.
const (
	releaseKind   = "HelmRelease"
	releasePrefix = "sh.helm.release.v1."
)

func isRevision(o plan.Object) bool  { return strings.HasPrefix(o.Name, releasePrefix) }
func isInventory(o plan.Object) bool { return strings.HasPrefix(o.Name, manifest.InventoryPrefix) }

// onCluster is the target cluster as plans show it: objects without revisions and inventories, and writes without those that left an
// object as it was, because Helm applies all objects of a revision.
type onCluster struct {
	plantest.Cluster
	before map[plan.Object]plantest.Thing
	looked int
	writes []plantest.Write
	// revisions and inventories are how many writes of them there were.
	revisions, inventories int
}

// Things implements plantest.World.
func (c *onCluster) Things(ctx context.Context) (map[plan.Object]plantest.Thing, error) {
	things, err := c.Cluster.Things(ctx)
	for o := range things {
		if isRevision(o) || isInventory(o) {
			delete(things, o)
		}
	}
	c.before = things
	return things, err
}

// Writes implements plantest.World.
func (c *onCluster) Writes() ([]plantest.Write, error) {
	all, err := c.Cluster.Writes()
	if err != nil {
		return nil, err
	}
	now, err := c.Cluster.Things(context.Background())
	if err != nil {
		return nil, err
	}
	for _, w := range all[c.looked:] {
		was, existed := c.before[w.Object]
		switch {
		case isRevision(w.Object):
			c.revisions++
		case isInventory(w.Object):
			c.inventories++
		case w.Delete || !existed || was.Object != now[w.Object].Object:
			c.writes = append(c.writes, w)
		}
	}
	c.looked = len(all)
	return slices.Clone(c.writes), nil
}

// reconciliation is one reconciliation of a ServiceSet as a resource: its plan is that of the framework, and then it is done.
type reconciliation struct {
	framework *framework.Framework
	planned   *plan.Plan
}

// Name implements framework.Resource.
func (r *reconciliation) Name() string { return "reconciliation" }

// Plan implements framework.Planner.
func (r *reconciliation) Plan(ctx context.Context, event plan.Event, obj any) ([]plan.Change, error) {
	p, err := r.framework.Plan(ctx, client.ObjectKeyFromObject(obj.(client.Object)))
	if err != nil {
		return nil, err
	}
	if p.Outcome != plan.Planned || p.Event != event {
		return nil, fmt.Errorf("the plan of an %s for an %s is %s: %s", p.Event, event, p.Outcome, p.Reason)
	}
	r.planned = p
	return slices.DeleteFunc(onTarget(p), func(c plan.Change) bool { return c.Object.Kind == releaseKind || isInventory(c.Object) }), nil
}

// EnsureCreated implements framework.Resource.
func (r *reconciliation) EnsureCreated(ctx context.Context, _ any) error {
	if err := r.framework.ApplyPlan(ctx, r.planned); !errors.Is(err, framework.ErrDeletionUnfinished) {
		return err
	}
	return nil
}

// EnsureDeleted implements framework.Resource.
func (r *reconciliation) EnsureDeleted(ctx context.Context, obj any) error {
	return r.EnsureCreated(ctx, obj)
}

// onTarget returns what a plan changes on the target cluster. The rest is the status of the set.
func onTarget(p *plan.Plan) (changes []plan.Change) {
	for _, r := range p.Resources {
		for _, c := range r.Changes {
			if c.Object.Kind != v1alpha1.ServiceSetKind {
				changes = append(changes, c)
			}
		}
	}
	return changes
}

// read returns the framework for the sets of the provider "native" in a process that only reads, as the commands "plan" and "apply"
// do, until it is closed.
func (w *world) read() (f *framework.Framework, closed func()) {
	w.t.Helper()
	deps := w.dependencies()
	_, managers, err := newOperators(deps, w.namespace, w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	f = managers[1]
	ctx, cancel := context.WithCancel(context.Background())
	var sources sync.WaitGroup
	for _, source := range f.Sources() {
		sources.Go(func() {
			if err := source.Run(ctx); err != nil {
				w.t.Error(err)
			}
		})
	}
	closed = sync.OnceFunc(func() {
		cancel()
		sources.Wait()
		deps.Close()
	})
	w.t.Cleanup(closed)
	for _, source := range f.Sources() {
		if err := source.WaitForSync(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
	return f, closed
}

// comesTo reconciles a set until nothing is left to do, and compares each plan with what was written on the cluster then. All that was
// planned there has to be what is wanted, as "create ConfigMap rules".
func (w *world) comesTo(set *v1alpha1.ServiceSet, want ...string) {
	w.t.Helper()
	f, closed := w.read()
	defer closed()
	operatortest.Eventually(w.t, "the set is known and its cluster is reached", func() error {
		current, err := w.set(set.Name)
		if err != nil {
			return err
		}
		return reached(w.t.Context(), f, current)
	})

	there := &onCluster{looked: w.east.Count(), Cluster: plantest.Cluster{
		Client: w.user, Faults: w.east, Namespace: w.namespace, Kinds: []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}},
		Defaulted: map[string][]string{"Secret": {"type"}},
	}}
	r := &reconciliation{framework: f}
	var planned []string
	operatortest.Eventually(w.t, fmt.Sprintf("all is done of %q", want), func() error {
		current, err := w.set(set.Name)
		if apierrors.IsNotFound(err) {
			if diff := cmp.Diff(want, planned); diff != "" {
				w.t.Fatalf("all was planned (-want +got):\n%s", diff)
			}
			return nil
		}
		if err != nil {
			return err
		}
		w.once(there, r, current)
		for _, c := range onTarget(r.planned) {
			planned = append(planned, fmt.Sprintf("%s %s %s", c.Action, c.Object.Kind, c.Object.Name))
		}
		if w.t.Failed() || len(planned) > len(want) {
			w.t.Fatalf("planned so far (-want +got):\n%s", cmp.Diff(want, planned))
		}
		if r.planned.Counts().Any() {
			return fmt.Errorf("there was something to do: %s", r.planned.Counts())
		}
		if diff := cmp.Diff(want, planned); diff != "" {
			return fmt.Errorf("planned so far (-want +got):\n%s", diff)
		}
		return conditionIs(current.Status.Conditions, "Ready=True")
	})
}

// once does one reconciliation of a set and compares it with its plan.
func (w *world) once(there *onCluster, r *reconciliation, set *v1alpha1.ServiceSet) {
	w.t.Helper()
	revisions, inventories := there.revisions, there.inventories
	r.planned = nil
	if set.DeletionTimestamp != nil {
		plantest.Delete(w.t, there, set, r)
	} else {
		plantest.Update(w.t, there, set, r)
	}
	if r.planned == nil {
		w.t.Fatal("nothing could be planned")
	}
	changes := onTarget(r.planned)
	release := slices.ContainsFunc(changes, func(c plan.Change) bool { return c.Object.Kind == releaseKind })
	if wrote := there.revisions > revisions; wrote != release {
		w.t.Errorf("that the release changes is planned: %t, and a revision was written: %t", release, wrote)
	}
	if there.inventories > inventories && len(changes) == 0 {
		w.t.Error("nothing is planned, and an inventory was written")
	}
}

// reached is an error as long as the plan is not about the set as it is now, or says that the cluster does not answer.
func reached(ctx context.Context, f *framework.Framework, set *v1alpha1.ServiceSet) error {
	p, err := f.Plan(ctx, client.ObjectKeyFromObject(set))
	if err != nil {
		return err
	}
	if p.Object.Version != set.ResourceVersion {
		return fmt.Errorf("the plan is about version %q of %q", p.Object.Version, set.ResourceVersion)
	}
	if p.Outcome != plan.Planned {
		return fmt.Errorf("the plan is %s: %s", p.Outcome, p.Reason)
	}
	for _, r := range p.Resources {
		for _, c := range r.Changes {
			for _, field := range c.Fields {
				told, _ := field.New.(string)
				if strings.HasSuffix(field.Path, "["+target.ConditionReachable+"]") && !strings.HasPrefix(told, string(metav1.ConditionTrue)) {
					return errors.New(told)
				}
			}
		}
	}
	return nil
}

// edit changes an entry of a ConfigMap as somebody else would.
func (w *world) edit(name string, edit func(data map[string]string)) {
	w.t.Helper()
	object := configMap(name)
	object.Namespace = w.namespace
	change(w, object, func(cm *corev1.ConfigMap) { edit(cm.Data) })
}

func dataMap(name, entry string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {%s}\n", name, entry)
}

// TestThePlanOfASetIsWhatIsDoneOnItsClusterThen compares plans of the framework with what the API server of the target cluster was
// asked to write, and with what became of its objects.
func TestThePlanOfASetIsWhatIsDoneOnItsClusterThen(t *testing.T) {
	w := newWorld(t)
	provider := w.ownProvider()
	if err := w.user.Create(t.Context(), provider.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	w.files("rules", map[string]string{"rules.yaml": dataMap("rules", "allow: some"), "limits.yaml": dataMap("limits", "cpu: '1'")})
	w.files("look", kustomization)
	w.create(filesTemplate("rules"), kustomizeTemplate("look"), pageTemplate(w.charts, "1.0.0"), pageTemplate(w.charts, "2.0.0"))
	w.create(cluster("one"))
	w.reach("one")
	set := w.ownSet(provider.Name, provider.Spec.Selector.MatchLabels, "rules=rules")
	set.Spec.Provider.Config = &apiextensionsv1.JSON{Raw: fmt.Appendf(nil, `{"syncMode": %q}`, v1alpha1.SyncModeContinuousWithDriftDetection)}
	set.Spec.Services = append(set.Spec.Services,
		v1alpha1.ServiceWithValues{Name: "look", Namespace: w.namespace, Template: "look", Version: "1.0.0"},
		v1alpha1.ServiceWithValues{
			Name: "shop", Namespace: w.namespace, Template: "page-1.0.0", Version: "1.0.0", Values: "{text: one, password: first}",
			DependsOn: []v1alpha1.ServiceDependsOn{{Namespace: w.namespace, Name: "rules"}},
		})
	w.create(set)

	w.comesTo(set,
		"create ConfigMap my-look", "create ConfigMap limits", "create ConfigMap rules",
		"create HelmRelease shop", "create Secret shop", "create ConfigMap shop")
	w.comesTo(set)

	change(w, set, func(s *v1alpha1.ServiceSet) {
		shop := &s.Spec.Services[2]
		shop.Template, shop.Version, shop.Values = "page-2.0.0", "2.0.0", "{text: two, password: second}"
	})
	w.edit("rules-files", func(files map[string]string) {
		delete(files, "limits.yaml")
		files["rules.yaml"], files["quotas.yaml"] = dataMap("rules", "allow: all"), dataMap("quotas", "pods: '5'")
	})
	w.edit("look-files", func(files map[string]string) { files["look.yaml"] = dataMap("look", "colour: green") })
	w.comesTo(set,
		"update ConfigMap my-look", "create ConfigMap quotas", "update ConfigMap rules", "delete ConfigMap limits",
		"update HelmRelease shop", "update Secret shop", "update ConfigMap shop")
	w.comesTo(set)

	w.edit("shop", func(data map[string]string) { data["text"] = "theirs" })
	w.edit("my-look", func(data map[string]string) { data["colour"], data["theirs"] = "red", "too" })
	for _, name := range []string{"rules", "quotas"} {
		if err := w.user.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	w.comesTo(set, "update ConfigMap my-look", "create ConfigMap quotas", "create ConfigMap rules", "update ConfigMap shop")
	w.comesTo(set)

	change(w, set, func(s *v1alpha1.ServiceSet) { s.Spec.Services = s.Spec.Services[:1] })
	w.comesTo(set,
		"delete ConfigMap shop", "delete Secret shop", "update HelmRelease shop", "delete ConfigMap my-look", "delete HelmRelease shop")
	if err := w.user.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	w.comesTo(set, "delete ConfigMap rules", "delete ConfigMap quotas")
	w.wantGone(set)
}
