package sveltos_test

import (
	"context"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/operatortest/plantest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/sveltos/v1beta1"
	"github.com/operatorkit/operatorkit/resource/statemanagerresource"
)

// TestThePlanIsWhatIsDoneThen compares plans with what the API server was asked to write, and with what became of it: for sets of all
// kinds, while Sveltos is at work, somebody changes the profile, and the provider is suspended and resumed.
func TestThePlanIsWhatIsDoneThen(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		there := &plantest.Cluster{
			Client: w.client, Faults: w.faults, Namespace: w.namespace,
			Kinds: []client.Object{&v1beta1.Profile{}, &v1beta1.ClusterProfile{}, &v1beta1.SveltosCluster{}},
			// What the definitions fill in.
			Defaulted: map[string][]string{"Profile": {"spec"}, "ClusterProfile": {"spec"}, "SveltosCluster": {"spec"}},
		}
		seen := map[plan.Action]int{}
		failed, noted := 0, 0
		count := func(p *plan.Plan) {
			for _, c := range p.Resources[0].Changes {
				seen[c.Action]++
			}
			noted += len(p.Resources[0].Notes)
			if p.Outcome == plan.Failed {
				failed++
			}
		}
		rapid.Check(t, func(rt *rapid.T) {
			g := newGenerator(w, rt)
			for range 5 {
				g.draw()
				g.status()
				count(plantest.Update(rt, there, g.set.ServiceSet, g.resources...))
				g.meddle()
			}
			g.suspended = false
			g.set.ServiceSet.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			for left := 20; g.status().Left; left-- {
				count(plantest.Delete(rt, there, g.set.ServiceSet, g.resources...))
				g.sveltos()
				if left == 0 {
					rt.Fatalf("something is left for ever: %+v", g.status())
				}
			}
			g.end()
		})
		t.Logf("changes by action: %v, failures: %d, notes: %d", seen, failed, noted)
		if !testing.Short() && (seen[plan.Create] == 0 || seen[plan.Update] == 0 || seen[plan.Delete] == 0 || failed == 0 || noted == 0) { // a sample need not have them all
			t.Error("the states were not various enough to prove anything")
		}
	})
}

// generator makes up what a set lists, and what Sveltos and people do.
type generator struct {
	*world
	rt        *rapid.T
	set       *statemanager.Set
	suspended bool
	resources []framework.Resource
}

func newGenerator(w *world, rt *rapid.T) *generator {
	g := &generator{world: w, rt: rt, set: w.newSet("prod", rapid.SampledFrom([]string{"prod", "prod", "prod", ""}).Draw(rt, "cluster"))}
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
	services, err := statemanagerresource.New(statemanagerresource.Config[*v1alpha1.ServiceSet]{
		Manager: w.manager, Logger: logger, Compute: compute,
	})
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
	set.Config = statemanager.Config{
		Priority: rapid.OneOf(rapid.Int32Range(1, math.MaxInt32-1), rapid.SampledFrom([]int32{1, 100, math.MaxInt32 - 1})).Draw(g.rt, "priority"),
		SyncMode: rapid.SampledFrom([]v1alpha1.SyncMode{
			v1alpha1.SyncModeOneTime, v1alpha1.SyncModeContinuous, v1alpha1.SyncModeContinuousWithDriftDetection, v1alpha1.SyncModeDryRun,
		}).Draw(g.rt, "sync mode"),
		StopOnConflict: g.bool("stops on conflict"), ContinueOnError: g.bool("continues on error"), Reload: g.bool("reloads"),
	}
	before := set.ServiceSet.Spec.Services
	set.ServiceSet.Spec.Services, set.ServiceSet.Spec.Removing = nil, nil
	for _, name := range []string{"a", "b", "files", "pinned"} {
		if !g.bool("lists " + name) {
			continue
		}
		var dependsOn []string
		for _, s := range set.ServiceSet.Spec.Services {
			if g.bool("depends on " + s.Name) {
				dependsOn = append(dependsOn, s.Name)
			}
		}
		if name == "files" {
			files(set, name, dependsOn...)
			continue
		}
		version := rapid.SampledFrom([]string{"1.0.0", "2.0.0"}).Draw(g.rt, "version")
		entry := chart(set, name, version, dependsOn...)
		entry.Values = rapid.SampledFrom([]string{"", "x: 1\n", "x: 2\ny: [1]\n"}).Draw(g.rt, "values")
		if name == "pinned" && g.bool("pins a digest") {
			set.Templates[entry.Template].Spec.Helm.Digest = "sha256:" + strings.Repeat("0", 64)
		}
	}
	for _, s := range before {
		if !slices.ContainsFunc(set.ServiceSet.Spec.Services, func(now v1alpha1.ServiceWithValues) bool { return now.Name == s.Name }) {
			set.ServiceSet.Spec.Removing = append(set.ServiceSet.Spec.Removing, v1alpha1.ServiceRemoval{Name: s.Name, Namespace: s.Namespace, DependsOn: s.DependsOn})
		}
	}
}

// sveltos does its work, where a cluster has one.
func (g *generator) sveltos() {
	if g.set.Cluster == nil {
		return
	}
	if err := plays(g.t.Context(), g.client, g.namespace); err != nil {
		g.rt.Fatal(err)
	}
}

// meddle is what happens between two reconciliations.
func (g *generator) meddle() {
	edits := map[string]func(){
		"nothing":     func() {},
		"Sveltos":     g.sveltos,
		"the suspend": func() { g.suspended = !g.suspended },
		"a change of the profile": func() {
			g.edit(`{"spec":{"tier":7,"syncMode":"OneTime"}}`)
		},
		"a change of an annotation": func() {
			g.edit(`{"metadata":{"annotations":{"services.operatorkit.io/services":"[]","example.com/by":"somebody"}}}`)
		},
		"a pause by somebody": func() {
			g.edit(`{"metadata":{"annotations":{"` + v1beta1.PausedAnnotation + `":"true"}}}`)
		},
		"the loss of the cluster": func() {
			if g.set.Cluster == nil {
				return
			}
			cluster := &v1beta1.SveltosCluster{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: "prod"}}
			if err := client.IgnoreNotFound(g.client.Delete(g.t.Context(), cluster)); err != nil {
				g.rt.Fatal(err)
			}
		},
	}
	edits[rapid.SampledFrom(slices.Sorted(maps.Keys(edits))).Draw(g.rt, "edit")]()
}

// edit changes the profile as a person would.
func (g *generator) edit(patch string) {
	var profile client.Object = &v1beta1.Profile{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: "prod"}}
	if g.set.Cluster == nil {
		profile = &v1beta1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Name: g.namespace + ".prod"}}
	}
	err := g.client.Patch(g.t.Context(), profile, client.RawPatch("application/merge-patch+json", []byte(patch)))
	if client.IgnoreNotFound(err) != nil {
		g.rt.Fatal(err)
	}
}

// end leaves nothing for the next check.
func (g *generator) end() {
	cluster := &v1beta1.SveltosCluster{ObjectMeta: metav1.ObjectMeta{Namespace: g.namespace, Name: "prod"}}
	if err := client.IgnoreNotFound(g.client.Delete(g.t.Context(), cluster)); err != nil {
		g.rt.Fatal(err)
	}
}
