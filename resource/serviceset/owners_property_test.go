package serviceset_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// Whatever owners do, at every single write:
//   - a service that somebody lists does not leave the last set that has it;
//   - sets that have the same service ask for the same;
//   - nothing changes while something below it is not ready, in version and values, as the state manager has seen them, and no step is
//     skipped;
//   - nothing is taken away below something else;
//   - only empty sets are deleted.
//
// Selectors may be unreadable meanwhile. And when they stop, everything comes to what is wanted, without going anywhere twice, each service is in the set of its owner
// alone, and who wants nothing has no set.
func TestOwnersComeAndGoWithoutAGapOrAFight(t *testing.T) { checkOwners(t, nil) }

// The same holds of MultiClusterServices that depend on each other, and at every single write:
//   - nothing of one is installed or changed while something that an earlier one lists on the cluster is not ready;
//   - nothing of one that wants nothing any more is taken away while a later one has something on the cluster.
func TestMultiClusterServicesComeAndGoInTheirOrder(t *testing.T) {
	// What comes later by its owner does not come earlier by what it depends on itself, or nothing could ever be rolled out. Some
	// services are in two ranges.
	checkOwners(t, map[string][2]int{"x": {0, 2}, "y": {2, 3}, "z": {3, 4}})
}

func checkOwners(t *testing.T, ranges map[string][2]int) {
	t.Helper()
	rapid.Check(t, func(r *rapid.T) {
		s := newOwnersSimulation(t, r, ranges)
		for range rapid.IntRange(0, 5).Draw(r, "disturbances") {
			s.disturb()
			for range rapid.IntRange(0, 12).Draw(r, "rounds") {
				s.operate()
				s.manage()
			}
		}
		s.settle()
		for rounds := 0; ; rounds++ {
			operated := s.operate()
			if managed := s.manage(); !operated && !managed {
				break
			}
			if rounds > maxRounds {
				r.Fatal("it does not come to an end")
			}
		}
		s.checkEnd()
	})
}

// settle makes what is desired something that can be had, for good.
func (s *ownersSimulation) settle() {
	s.settled = true
	specs := []*v1alpha1.ServiceSpec{&s.cd.Spec.ServiceSpec}
	for _, mcs := range s.multis {
		mcs.Spec.ClusterSelector.MatchExpressions = nil
		mcs.Spec.DependsOn = slices.DeleteFunc(mcs.Spec.DependsOn, func(name string) bool {
			return !slices.ContainsFunc(s.multis, func(below *v1alpha1.MultiClusterService) bool { return below.Name == name && wantsAnything(below) })
		})
		specs = append(specs, &mcs.Spec.ServiceSpec)
	}
	for _, spec := range specs {
		for i := range spec.Services {
			spec.Services[i].Disable = false
		}
	}
}

// checkEnd checks that everything is where it is wanted, and nothing else anywhere.
func (s *ownersSimulation) checkEnd() {
	want, got := map[string][]string{}, map[string][]string{}
	for name, w := range s.wants() {
		want[w.owner] = append(want[w.owner], name+" "+w.service.Template+" "+w.service.Values)
	}
	for _, set := range s.sets() {
		of := set.Spec.MultiClusterService
		got[of] = []string{}
		for _, e := range set.Spec.Services {
			one := simulation{t: s.t}
			one.in.Owner.Set = set
			if !one.done(e) {
				s.t.Fatalf("%s is not deployed", e.Name)
			}
			got[of] = append(got[of], e.Name+" "+e.Template+" "+e.Values)
		}
		slices.Sort(want[of])
		slices.Sort(got[of])
		if len(set.Spec.Removing) > 0 {
			s.t.Fatalf("%v is still being removed", set.Spec.Removing)
		}
	}
	for _, mcs := range s.multis {
		lists := wantsAnything(mcs)
		if lists != (s.setOf(mcs.Name) != nil) {
			s.t.Fatalf("MultiClusterService %s lists services: %v; but it has a set: %v", mcs.Name, lists, !lists)
		}
		if lists && want[mcs.Name] == nil {
			want[mcs.Name] = []string{}
		}
	}
	if len(s.cd.Spec.ServiceSpec.Services) > 0 && want[""] == nil {
		want[""] = []string{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Fatalf("what runs at the end differs (-want +got):\n%s", diff)
	}
}

// snapshot is what was there when operations were computed.
type snapshot struct {
	*ownersSimulation

	sets  []*v1alpha1.ServiceSet
	wants map[string]wanted
}

func newSnapshot(s *ownersSimulation) *snapshot {
	n := &snapshot{ownersSimulation: s, wants: s.wants()}
	for _, set := range s.sets() {
		n.sets = append(n.sets, set.DeepCopy())
	}
	return n
}

// check checks what an operation is about to write.
func (n *snapshot) check(o serviceset.OwnerOperation) {
	var before, after v1alpha1.ServiceSet
	if o.Operation.Before != nil {
		before = *o.Operation.Before
	}
	if o.Operation.Operation != v1alpha1.ServiceSetOperationDelete {
		after = *o.Operation.ServiceSet
	} else if len(before.Spec.Services) > 0 {
		n.t.Fatalf("the set of %s is deleted with %s", &o.Owner, said(before.Spec.Services))
	}
	for _, e := range before.Spec.Services {
		if entryOf(&after, e.Name) == nil {
			n.checkDropped(&before, &after, e.Name)
		}
	}
	for i := range after.Spec.Services {
		if now := &after.Spec.Services[i]; !n.isThere(now) {
			n.checkChange(&before, now)
		}
	}
}

// isThere tells whether some set had an entry as it is.
func (n *snapshot) isThere(entry *v1alpha1.ServiceWithValues) bool {
	return slices.ContainsFunc(n.sets, func(set *v1alpha1.ServiceSet) bool {
		there := entryOf(set, entry.Name)
		return there != nil && cmp.Equal(*there, *entry, cmpopts.IgnoreFields(v1alpha1.ServiceWithValues{}, "Generation"))
	})
}

// checkDropped checks that a service may leave a set.
func (n *snapshot) checkDropped(before, after *v1alpha1.ServiceSet, name string) {
	if _, listed := n.wants[name]; listed {
		for _, set := range n.ownersSimulation.sets() {
			if set.Name != before.Name && entryOf(set, name) != nil {
				return
			}
		}
		n.t.Fatalf("%s leaves the last set that has it", name)
	}
	if _, removing := removalOf(after, name); !removing {
		n.t.Fatalf("%s is dropped without being removed", name)
	}
	n.checkWithdrawn(before.Spec.MultiClusterService, name)
	for _, set := range n.ownersSimulation.sets() {
		for _, e := range set.Spec.Services {
			if dependsOnName(e.DependsOn, name) && e.Name != name {
				n.t.Fatalf("%s is removed below %s", name, e.Name)
			}
		}
		for _, e := range set.Spec.Removing {
			one := simulation{t: n.t}
			one.in.Owner.Set = set
			if dependsOnName(e.DependsOn, name) && one.state(e.Name) != nil && n.wants[e.Name].service == nil {
				n.t.Fatalf("%s is removed while %s is, which depends on it", name, e.Name)
			}
		}
	}
}

// checkWithdrawn checks that a service of an owner that wants nothing any more does not go before those of later ones.
func (n *snapshot) checkWithdrawn(owner, name string) {
	for _, mcs := range n.multis {
		for _, below := range n.earlier(mcs.Name) {
			if below.Name != owner || wantsAnything(below) {
				continue
			}
			for _, set := range n.sets {
				one := simulation{t: n.t}
				one.in.Owner.Set = set
				if set.Spec.MultiClusterService != mcs.Name {
					continue
				}
				for _, e := range set.Spec.Services {
					if e.Name != name {
						n.t.Fatalf("%s of %s is removed while %s has %s, which depends on it", name, owner, mcs.Name, e.Name)
					}
				}
				for _, e := range set.Spec.Removing {
					if one.state(e.Name) != nil && n.wants[e.Name].service == nil {
						n.t.Fatalf("%s of %s is removed while %s of %s is, which depends on it", name, owner, e.Name, mcs.Name)
					}
				}
			}
		}
	}
}

// checkOrder checks that all is ready that the owner of a service depends on.
func (n *snapshot) checkOrder(name string) {
	earlier := n.earlier(n.wants[name].owner)
	lists := func(mcs *v1alpha1.MultiClusterService) bool {
		return slices.ContainsFunc(mcs.Spec.ServiceSpec.Services, func(service v1alpha1.Service) bool { return service.Name == name })
	}
	for _, below := range earlier {
		theirs := slices.ContainsFunc(earlier, func(lister *v1alpha1.MultiClusterService) bool {
			return wantsAnything(lister) && lists(lister) && !slices.Contains(n.earlier(lister.Name), below)
		})
		if theirs || !wantsAnything(below) {
			continue
		}
		for _, service := range below.Spec.ServiceSpec.Services {
			if !service.Disable && !n.wants[service.Name].service.Disable && !n.isReady(service.Name) {
				n.t.Fatalf("%s of %s changes, but %s of %s is not ready", name, n.wants[name].owner, service.Name, below.Name)
			}
		}
	}
}

func dependsOnName(list []v1alpha1.ServiceDependsOn, name string) bool {
	return slices.ContainsFunc(list, func(d v1alpha1.ServiceDependsOn) bool { return d.Name == name })
}

// checkChange checks that a service may change, or be installed.
func (n *snapshot) checkChange(before *v1alpha1.ServiceSet, now *v1alpha1.ServiceWithValues) {
	w := n.wants[now.Name]
	if w.service == nil || w.owner != before.Spec.MultiClusterService && before.Name != "" {
		n.t.Fatalf("%s is changed by somebody whose it is not", now.Name)
	}
	for _, below := range n.below(now.Name) {
		if !n.isReady(below) {
			n.t.Fatalf("%s changes, but %s is not ready", now.Name, below)
		}
	}
	n.checkOrder(now.Name)
	from, state := n.from(before, now.Name)
	if from == now.Template {
		return
	}
	if n.settled {
		if len(n.seen[now.Name]) == 0 {
			n.seen[now.Name] = append(n.seen[now.Name], from)
		}
		if slices.Contains(n.seen[now.Name], now.Template) {
			n.t.Fatalf("%s comes to %s again: %v", now.Name, now.Template, n.seen[now.Name])
		}
		n.seen[now.Name] = append(n.seen[now.Name], now.Template)
	}
	if from == "" || w.service.TemplateChain == "" {
		return
	}
	if state != nil && state.State == v1alpha1.ServiceStateFailed && state.LastDeployed != nil && state.LastDeployed.Template == now.Template {
		return
	}
	versions := map[string]int{}
	for i := range simulatedTemplates {
		versions[now.Name+"-"+string(rune('1'+i))+".0.0"] = i
	}
	if step := versions[now.Template] - versions[from]; step != 1 && step != -1 {
		n.t.Fatalf("%s goes from %s to %s, which is no step", now.Name, from, now.Template)
	}
}

// from returns where a service was, and what was said about it.
func (n *snapshot) from(before *v1alpha1.ServiceSet, name string) (string, *v1alpha1.ServiceState) {
	one := simulation{t: n.t}
	one.in.Owner.Set = before
	if e := entryOf(before, name); e != nil {
		return e.Template, one.state(name)
	}
	for _, set := range n.sets {
		one.in.Owner.Set = set
		state := one.state(name)
		if e := entryOf(set, name); e != nil {
			return e.Template, state
		}
		if state != nil && state.State != v1alpha1.ServiceStateDeleting {
			return state.Template, state
		}
	}
	return "", nil
}

// below returns all that a service depends on, whoever owns it.
func (n *snapshot) below(name string) []string {
	var found []string
	for _, d := range n.wants[name].service.DependsOn {
		found = append(append(found, d.Name), n.below(d.Name)...)
	}
	return found
}

// isReady tells whether a service runs as it is wanted.
func (n *snapshot) isReady(name string) bool {
	w := n.wants[name]
	for _, set := range n.sets {
		e := entryOf(set, name)
		if e == nil {
			continue
		}
		one := simulation{t: n.t}
		one.in.Owner.Set = set
		seen := e.Generation <= set.Status.ObservedGeneration
		if seen && one.done(*e) && (w.service.Disable || e.Template == w.service.Template && e.Values == w.service.Values) {
			return true
		}
	}
	return false
}

// checkSets checks that sets with the same service ask for the same.
func (n *snapshot) checkSets() {
	found := map[string]string{}
	for _, set := range n.ownersSimulation.sets() {
		for i := range set.Spec.Services {
			asked := said(set.Spec.Services[i : i+1])
			if other, ok := found[set.Spec.Services[i].Name]; ok && other != asked {
				n.t.Fatalf("two sets fight: %s and %s", other, asked)
			}
			found[set.Spec.Services[i].Name] = asked
		}
	}
}
