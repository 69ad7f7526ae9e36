package machines_test

import (
	"context"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	machinesv1alpha1 "github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest/plantest"
	"github.com/operatorkit/operatorkit/operator/statemanagers/machines"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanagerresource"
)

// TestThePlanIsWhatIsDoneThen compares plans with what the API server was asked to write, and with what became of it: for sets of all kinds,
// while somebody changes MachineServices, and the provider is suspended and resumed.
func TestThePlanIsWhatIsDoneThen(t *testing.T) {
	w := newWorld(t)
	there := &plantest.Cluster{
		Client: w.user, Faults: w.faults, Namespace: w.namespace, Kinds: []client.Object{&machinesv1alpha1.MachineService{}},
	}
	w.create(&machinesv1alpha1.MachineService{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}})
	seen := map[plan.Action]int{}
	failed, noted := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		g := newGenerator(w, rt)
		count := func(p *plan.Plan) {
			for _, c := range p.Resources[0].Changes {
				seen[c.Action]++
			}
			noted += len(p.Resources[0].Notes)
			if p.Outcome == plan.Failed {
				failed++
			}
		}
		for range 8 {
			g.draw()
			g.status()
			count(plantest.Update(rt, there, g.set.ServiceSet, g.resources...))
			g.meddle()
		}
		g.release()
		g.suspended = false
		g.set.ServiceSet.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		for left := 10; g.status().Left; left-- {
			count(plantest.Delete(rt, there, g.set.ServiceSet, g.resources...))
			if left == 0 {
				rt.Fatalf("something is left for ever: %+v", g.status())
			}
		}
	})
	t.Logf("changes by action: %v, failures: %d, notes: %d", seen, failed, noted)
	if !testing.Short() && (seen[plan.Create] == 0 || seen[plan.Update] == 0 || seen[plan.Delete] == 0 || failed == 0 || noted == 0) { // a sample need not have them all
		t.Error("the states were not various enough to prove anything")
	}
}

// generator makes up what a set lists, and what people do.
type generator struct {
	*world
	rt        *rapid.T
	set       *statemanager.Set
	suspended bool
	resources []framework.Resource
}

func newGenerator(w *world, rt *rapid.T) *generator {
	g := &generator{world: w, rt: rt, set: w.newSet("prod")}
	w.templates(g.set, "one", "two")
	var about *statemanager.Set
	var work *statemanager.Work
	compute := func(ctx context.Context, set *v1alpha1.ServiceSet) (*statemanager.Set, *statemanager.Work, error) {
		copied := *g.set
		about, copied.ServiceSet = &copied, set
		var err error
		work, err = g.work(ctx, about)
		return about, work, err
	}
	// The check is of the same work: services that come after what is taken away may have their turn right afterwards, and fail.
	computed := func(context.Context, *v1alpha1.ServiceSet) (*statemanager.Set, *statemanager.Work, error) {
		return about, work, nil
	}
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		rt.Fatal(err)
	}
	services, err := statemanagerresource.New(statemanagerresource.Config[*v1alpha1.ServiceSet]{Manager: w.manager, Logger: logger, Compute: compute})
	if err != nil {
		rt.Fatal(err)
	}
	check, err := statemanagerresource.NewCheck(statemanagerresource.CheckConfig[*v1alpha1.ServiceSet]{Compute: computed})
	if err != nil {
		rt.Fatal(err)
	}
	g.resources = []framework.Resource{services, check}
	return g
}

// work is what there is to do.
func (g *generator) work(ctx context.Context, set *statemanager.Set) (*statemanager.Work, error) {
	if g.suspended {
		return g.manager.Suspend(ctx, set)
	}
	return g.manager.Compute(ctx, set)
}

// status writes the status as the resource before does.
func (g *generator) status() *statemanager.Work {
	work, err := g.work(g.t.Context(), g.set)
	if err != nil {
		g.rt.Fatal(err)
	}
	g.set.ServiceSet.Status.Services = work.Services
	return work
}

func (g *generator) bool(what string) bool { return rapid.Bool().Draw(g.rt, what) }

// draw makes up another desire.
func (g *generator) draw() {
	set := g.set
	set.Config.SyncMode = rapid.SampledFrom([]v1alpha1.SyncMode{
		v1alpha1.SyncModeContinuous, v1alpha1.SyncModeContinuousWithDriftDetection, v1alpha1.SyncModeContinuousWithDriftDetection,
		v1alpha1.SyncModeOneTime, v1alpha1.SyncModeDryRun,
	}).Draw(g.rt, "sync mode")
	set.Config.StopOnConflict = g.bool("stops on conflict")
	before := set.ServiceSet.Spec.Services
	set.ServiceSet.Spec.Services, set.ServiceSet.Spec.Removing = nil, nil
	for _, name := range []string{"a", "b", "foreign", "z"} {
		if rapid.IntRange(0, 3).Draw(g.rt, "lists "+name) == 0 {
			continue
		}
		var dependsOn []string
		for _, s := range set.ServiceSet.Spec.Services {
			if g.bool("depends on "+s.Name) && g.bool("really") {
				dependsOn = append(dependsOn, s.Name)
			}
		}
		entry := list(set, name+"="+rapid.SampledFrom([]string{"one", "two", "one", "two", "one", "two", "one", "absent"}).Draw(g.rt, "template"), dependsOn...)
		entry.Values = rapid.SampledFrom([]string{
			"", "", "replicas: 2", "replicas: 3", "container: {env: {A: x, B: null}, secretEnv: {P: psst}}", "configs: [{name: c, content: psst}]",
			"strategy: {type: canary, steps: [{percent: 10}]}", "strategy: {steps: [{percent: 10}]}", "replicas: -1",
		}).Draw(g.rt, "values")
		if g.bool("is not to be there") && g.bool("really") {
			entry.HelmAction = v1alpha1.HelmActionUninstall
		}
	}
	for _, s := range before {
		if !slices.ContainsFunc(set.ServiceSet.Spec.Services, func(now v1alpha1.ServiceWithValues) bool { return now.Name == s.Name }) {
			gone := v1alpha1.ServiceRemoval{Name: s.Name, Namespace: s.Namespace, DependsOn: s.DependsOn}
			set.ServiceSet.Spec.Removing = append(set.ServiceSet.Spec.Removing, gone)
		}
	}
}

// meddle is what happens between two reconciliations.
func (g *generator) meddle() {
	name := rapid.SampledFrom([]string{"a", "b", "z"}).Draw(g.rt, "name")
	service := g.service(name)
	edits := []string{"nothing", "the operator", "the suspend", "a change", "a change", "a change", "a pause", "a pause", "a deletion", "a hold", "a release", "a loss"}
	what := rapid.SampledFrom(edits).Draw(g.rt, "edit")
	switch {
	case what == "the suspend":
		g.suspended = !g.suspended
	case service == nil || what == "nothing":
	case what == "the operator":
		g.works(name)
	case what == "a change":
		g.change(name, func(s *machinesv1alpha1.MachineService) {
			s.Spec.Replicas, s.Spec.Container.User = new(int32(7)), "somebody"
			delete(s.Labels, "services.operatorkit.io/owner")
		})
	case what == "a hold":
		g.change(name, func(s *machinesv1alpha1.MachineService) { s.Finalizers = []string{"example.com/holds"} })
	case what == "a release":
		g.change(name, func(s *machinesv1alpha1.MachineService) { s.Finalizers = nil })
	case what == "a loss":
		g.change(name, func(s *machinesv1alpha1.MachineService) {
			delete(s.Annotations, rapid.SampledFrom([]string{
				machines.FingerprintAnnotation, machines.TemplateAnnotation, machines.SuspendedAnnotation, framework.PausedAnnotation,
			}).Draw(g.rt, "annotation"))
		})
	case what == "a pause":
		g.change(name, func(s *machinesv1alpha1.MachineService) { s.Annotations[framework.PausedAnnotation] = "true" })
	default:
		if err := g.user.Delete(g.t.Context(), service); err != nil {
			g.rt.Fatal(err)
		}
	}
}

// release lets what is deleted go.
func (g *generator) release() {
	for _, name := range []string{"a", "b", "z"} {
		if g.service(name) != nil {
			g.change(name, func(s *machinesv1alpha1.MachineService) { s.Finalizers = nil })
		}
	}
}
