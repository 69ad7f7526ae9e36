package servicesetresource_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/operatortest/plantest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

const (
	// planRounds is how many states each check of the property goes through.
	planRounds = 6
	// patience is how many reconciliations it may take until nothing is left to do without a state manager.
	patience = 10
)

// The plan is what is done then, service by service, whatever there is and whatever is desired: with several owners that take
// services over, while services fail, wait and are being removed, beside owners that have something to mend.
func TestThePlanIsWhatIsDoneThen(t *testing.T) {
	k := newKit(t)
	k.templates(map[string][]string{
		"a": {"1.0.0", "2.0.0", "3.0.0"}, "b": {"1.0.0", "2.0.0", "3.0.0"}, "c": {"1.0.0", "2.0.0", "3.0.0"}, "d": {"1.0.0", "2.0.0", "3.0.0"},
	})
	k.create(&v1alpha1.ServiceTemplateChain{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "a"},
		Spec: v1alpha1.ServiceTemplateChainSpec{SupportedTemplates: []v1alpha1.SupportedTemplate{
			{Name: "a-1-0-0", AvailableUpgrades: []v1alpha1.AvailableUpgrade{{Name: "a-2-0-0"}}},
			{Name: "a-2-0-0", AvailableUpgrades: []v1alpha1.AvailableUpgrade{{Name: "a-3-0-0"}}},
			{Name: "a-3-0-0"},
		}},
	})
	seen := map[plan.Action]int{}
	failed, noted, run := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		g := newGenerator(k, rt, run)
		w := &world{k: k, cluster: g.cd.Name, read: k.faults.Count()}
		resources := k.resources(k.compute)
		for range planRounds {
			for range rapid.IntRange(1, 3).Draw(rt, "edits") {
				g.edit()
			}
			for left := patience; ; left-- {
				p := plantest.Update(rt, w, g.cd, resources...)
				count(seen, p)
				noted += len(p.Resources[0].Notes)
				if p.Outcome == plan.Failed {
					failed++
				}
				if !p.Counts().Any() {
					break
				}
				if left == 0 {
					rt.Fatalf("there is something to do for ever: %+v", p)
				}
			}
		}
		g.cd.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		count(seen, plantest.Delete(rt, w, g.cd, resources...))
		g.end()
	})
	t.Logf("%d sequences, changes by action: %v, failures: %d, notes: %d", run, seen, failed, noted)
	if !testing.Short() && (seen[plan.Create] == 0 || seen[plan.Update] == 0 || seen[plan.Delete] == 0 || failed == 0 || noted == 0) { // a sample need not have them all
		t.Error("the states were not various enough to prove anything")
	}
}

func count(seen map[plan.Action]int, p *plan.Plan) {
	n := p.Counts()
	seen[plan.Create] += n.Create
	seen[plan.Update] += n.Update
	seen[plan.Delete] += n.Delete
}

// generator makes up what owners want, and what a state manager and people do.
type generator struct {
	k     *kit
	rt    *rapid.T
	cd    cluster
	owner map[string]*v1alpha1.MultiClusterService
}

// newGenerator begins with a cluster and two MultiClusterServices that select it.
func newGenerator(k *kit, rt *rapid.T, run int) *generator {
	g := &generator{k: k, rt: rt, owner: map[string]*v1alpha1.MultiClusterService{}}
	g.cd = clusterOf(k.namespace, fmt.Sprintf("p%d", run), g.services()...)
	g.cd.Labels[testLabel] = g.label()
	k.create(g.cd)
	for _, name := range []string{"base", "edge"} {
		mcs := servicesOf(k.namespace, g.cd.Name+"-"+name, g.services()...)
		mcs.Spec.ClusterSelector.MatchLabels[testLabel] = g.label()
		mcs.Spec.ServiceSpec.Priority = 100
		k.create(mcs)
		g.owner[name] = mcs
	}
	return g
}

func (g *generator) label() string { return g.k.namespace + "." + g.cd.Name }

// end takes the owners of all clusters away.
func (g *generator) end() {
	for _, mcs := range g.owner {
		if err := client.IgnoreNotFound(g.k.user.Delete(g.k.t.Context(), mcs)); err != nil {
			g.rt.Fatal(err)
		}
	}
}

func (g *generator) bool(what string) bool { return rapid.Bool().Draw(g.rt, what) }

// rarely is true now and then.
func (g *generator) rarely(what string) bool { return rapid.IntRange(0, 9).Draw(g.rt, what) == 0 }

// services makes up a list. Services depend on earlier ones; now and then one depends on a later one, or on one that is not there.
func (g *generator) services() []service {
	var list []service
	for _, name := range []string{"a", "b", "c", "d"} {
		if !g.bool("wants " + name) {
			continue
		}
		s := wanted(name, rapid.SampledFrom([]string{"1.0.0", "2.0.0", "3.0.0"}).Draw(g.rt, "version"))
		if name == "a" && g.bool("has a chain") {
			s.TemplateChain = "a"
		}
		s.Values = rapid.SampledFrom([]string{"", "x: 1", "x: 1\ny: 2\n", "x: 2\ny: 2\n"}).Draw(g.rt, "values")
		s.Disable = g.rarely("is disabled")
		for _, d := range []string{"a", "b", "c", "d"} {
			earlier := slices.ContainsFunc(list, func(s service) bool { return s.Name == d })
			if d != name && (earlier && g.bool("depends on "+d) || !earlier && g.rarely("depends on "+d+" all the same") && g.rarely("really")) {
				s.DependsOn = append(s.DependsOn, v1alpha1.ServiceDependsOn{Namespace: "default", Name: d})
			}
		}
		list = append(list, s)
	}
	return list
}

func (g *generator) sets() []v1alpha1.ServiceSet {
	return slices.DeleteFunc(g.k.sets(), func(set v1alpha1.ServiceSet) bool { return set.Spec.Cluster != g.cd.Name })
}

// edit is something that happens between two reconciliations.
func (g *generator) edit() {
	mcs := g.owner[rapid.SampledFrom([]string{"base", "edge"}).Draw(g.rt, "owner")]
	edits := map[string]func(){
		"the cluster wants something else": func() { g.k.want(g.cd, g.services()...) },
		"an owner wants something else": func() {
			before := mcs.DeepCopy()
			mcs.Spec.ServiceSpec.Services = g.services()
			g.patch(mcs, before)
		},
		"an owner gets another priority": func() {
			before := mcs.DeepCopy()
			mcs.Spec.ServiceSpec.Priority = rapid.Int32Range(99, 101).Draw(g.rt, "priority")
			g.patch(mcs, before)
		},
		"an owner does not select the cluster, or does again": func() {
			before := mcs.DeepCopy()
			if mcs.Spec.ClusterSelector.MatchLabels[testLabel] = g.label(); g.bool("another cluster") {
				mcs.Spec.ClusterSelector.MatchLabels[testLabel] = "none"
			}
			g.patch(mcs, before)
		},
		"the state manager is done with all":   func() { g.manage(false) },
		"the state manager is done with some":  func() { g.manage(true) },
		"the state manager goes on a bit more": func() { g.manage(true) },
		"somebody marks the sets": func() {
			for _, set := range g.sets() {
				g.k.patch(&set, `{"metadata":{"labels":{"theirs":"yes"}}}`)
			}
		},
		"somebody takes the labels of the provider away": func() {
			for _, set := range g.sets() {
				g.k.patch(&set, `{"metadata":{"labels":{"provider":null}}}`)
			}
		},
	}
	edits[rapid.SampledFrom(slices.Sorted(maps.Keys(edits))).Draw(g.rt, "edit")]()
}

// manage is a state manager that is done with all services, or with some, of which some fail.
func (g *generator) manage(some bool) {
	for _, set := range g.sets() {
		known := set.DeepCopy().Status.Services
		var failing []string
		for _, s := range set.Spec.Services {
			if some && g.rarely(s.Name+" fails") {
				failing = append(failing, s.Name)
			}
		}
		before := set.DeepCopy()
		report(&set, failing...)
		if some {
			for i := range set.Status.Services {
				if g.bool("not yet") && i < len(known) {
					set.Status.Services[i] = known[i]
				}
			}
		}
		set.Status.Services = unique(set.Status.Services)
		if err := g.k.user.Status().Patch(g.k.t.Context(), &set, client.MergeFrom(before)); err != nil {
			g.rt.Fatal(err)
		}
	}
}

// unique keeps the first state of each service.
func unique(states []v1alpha1.ServiceState) []v1alpha1.ServiceState {
	var kept []v1alpha1.ServiceState
	for _, s := range states {
		if !slices.ContainsFunc(kept, func(k v1alpha1.ServiceState) bool { return k.Name == s.Name }) {
			kept = append(kept, s)
		}
	}
	return kept
}

func (g *generator) patch(mcs, before *v1alpha1.MultiClusterService) {
	if err := g.k.user.Patch(g.k.t.Context(), mcs, client.MergeFrom(before)); err != nil {
		g.rt.Fatal(err)
	}
}
