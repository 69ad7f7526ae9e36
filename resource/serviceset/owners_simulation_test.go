package serviceset_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// ownersSimulation is a cluster whose services several owners list, who come and go, and a state manager that does what it
// owes, some of it at a time. Whatever one of them does is checked at once.
type ownersSimulation struct {
	*scene

	t        *rapid.T
	multis   []*v1alpha1.MultiClusterService
	failures map[string]int // how often a service will still fail
	settled  bool           // nobody changes what is desired any more
	seen     map[string][]string
	// ranges are the first and the last service that a MultiClusterService may list if they depend on each other, nil if they do not.
	ranges map[string][2]int
}

// The services are s0 to s4, each may depend on those before it. Each has a chain that leads up and down over all templates.
const (
	simulatedServices  = 5
	simulatedTemplates = 4
)

func serviceName(i int) string { return fmt.Sprintf("s%d", i) }

func newOwnersSimulation(outer testing.TB, t *rapid.T, ranges map[string][2]int) *ownersSimulation {
	s := &ownersSimulation{scene: newScene(outer), t: t, ranges: ranges, failures: map[string]int{}, seen: map[string][]string{}}
	for i := range simulatedServices {
		chain := &v1alpha1.ServiceTemplateChain{ObjectMeta: metav1.ObjectMeta{Namespace: clusterNamespace, Name: serviceName(i)}}
		chain.Spec = chainSpec("V-1.0.0>V-2.0.0>V-3.0.0>V-4.0.0>V-3.0.0>V-2.0.0>V-1.0.0")
		for j := range chain.Spec.SupportedTemplates {
			supported := &chain.Spec.SupportedTemplates[j]
			supported.Name = serviceName(i) + supported.Name[1:]
			for k := range supported.AvailableUpgrades {
				supported.AvailableUpgrades[k].Name = serviceName(i) + supported.AvailableUpgrades[k].Name[1:]
			}
			known := template(supported.Name)
			known.Namespace = clusterNamespace
			s.add(known)
		}
		s.add(chain)
		s.failures[serviceName(i)] = rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "failures")
	}
	s.cluster("").Spec.ServiceSpec = s.drawSpec("prod")
	for _, name := range []string{"x", "y", "z"} {
		s.multis = append(s.multis, s.newMulti(name))
	}
	return s
}

func (s *ownersSimulation) newMulti(name string) *v1alpha1.MultiClusterService {
	mcs := s.multi(name, 100, "")
	mcs.CreationTimestamp = metav1.NewTime(created.Add(time.Duration(rapid.IntRange(-2, 2).Draw(s.t, "age")) * time.Hour))
	mcs.UID = types.UID(fmt.Sprintf("%s-%d", name, len(s.objects)))
	mcs.Spec.ServiceSpec = s.drawSpec(name)
	mcs.Spec.DependsOn = s.drawDependsOn(name)
	return mcs
}

// drawDependsOn makes a MultiClusterService depend on some of those before it.
func (s *ownersSimulation) drawDependsOn(name string) []string {
	var names []string
	for _, earlier := range []string{"x", "y", "z"} {
		if s.ranges != nil && earlier < name && rapid.IntRange(0, 3).Draw(s.t, "after "+earlier) > 0 {
			names = append(names, earlier)
		}
	}
	return names
}

// earlier returns all MultiClusterServices that one depends on.
func (s *ownersSimulation) earlier(name string) []*v1alpha1.MultiClusterService {
	var found []*v1alpha1.MultiClusterService
	for _, mcs := range s.multis {
		if mcs.Name != name {
			continue
		}
		for _, below := range s.multis {
			if slices.Contains(mcs.Spec.DependsOn, below.Name) {
				found = append(append(found, below), s.earlier(below.Name)...)
			}
		}
	}
	return found
}

// wantsAnything tells whether a MultiClusterService has services on the cluster.
func wantsAnything(mcs *v1alpha1.MultiClusterService) bool {
	return mcs.DeletionTimestamp == nil && mcs.Spec.ClusterSelector.MatchLabels["tier"] == "one" && len(mcs.Spec.ServiceSpec.Services) > 0
}

// isStuck tells whether something is wrong with a MultiClusterService.
func (s *ownersSimulation) isStuck(mcs *v1alpha1.MultiClusterService) bool {
	return isBlind(mcs) || slices.ContainsFunc(s.earlier(mcs.Name), func(below *v1alpha1.MultiClusterService) bool {
		return isBlind(below) || below.DeletionTimestamp != nil
	})
}

// drawSpec makes a list of services that depend on each other.
func (s *ownersSimulation) drawSpec(owner string) v1alpha1.ServiceSpec {
	spec := v1alpha1.ServiceSpec{Priority: rapid.SampledFrom([]int32{50, 100, 200}).Draw(s.t, "priority")}
	for i := range simulatedServices {
		if r, limited := s.ranges[owner]; limited && (i < r[0] || i > r[1]) {
			continue
		}
		if rapid.IntRange(0, 2).Draw(s.t, "absent") == 0 {
			continue
		}
		service := v1alpha1.Service{Name: serviceName(i), Values: owner + rapid.SampledFrom([]string{"1", "2"}).Draw(s.t, "values")}
		service.Template = fmt.Sprintf("%s-%d.0.0", service.Name, rapid.IntRange(1, simulatedTemplates).Draw(s.t, "template"))
		if rapid.IntRange(0, 3).Draw(s.t, "unchained") > 0 {
			service.TemplateChain = service.Name
		}
		service.Disable = !s.settled && rapid.IntRange(0, 9).Draw(s.t, "disabled") == 0
		for _, below := range spec.Services {
			if rapid.IntRange(0, 2).Draw(s.t, "depends") == 0 {
				service.DependsOn = append(service.DependsOn, v1alpha1.ServiceDependsOn{Name: below.Name})
			}
		}
		spec.Services = append(spec.Services, service)
	}
	spec.Services = rapid.Permutation(spec.Services).Draw(s.t, "order")
	return spec
}

// disturb changes what one owner wants, or whether there is one.
func (s *ownersSimulation) disturb() {
	i := rapid.IntRange(-1, len(s.multis)-1).Draw(s.t, "who")
	if i < 0 {
		s.cd.Spec.ServiceSpec = s.drawSpec("prod")
		return
	}
	mcs := s.multis[i]
	switch rapid.SampledFrom([]string{"list", "priority", "select", "blind", "empty", "delete", "order"}).Draw(s.t, "what") {
	case "list":
		mcs.Spec.ServiceSpec = s.drawSpec(mcs.Name)
	case "priority":
		mcs.Spec.ServiceSpec.Priority = rapid.SampledFrom([]int32{50, 100, 200}).Draw(s.t, "priority")
	case "select":
		labels := mcs.Spec.ClusterSelector.MatchLabels
		labels["tier"] = map[string]string{"one": "two", "two": "one"}[labels["tier"]]
	case "blind":
		mcs.Spec.ClusterSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Likes"}}
	case "order":
		mcs.Spec.DependsOn = s.drawDependsOn(mcs.Name)
	case "empty":
		mcs.Spec.ServiceSpec.Services = nil
	case "delete":
		if mcs.DeletionTimestamp == nil {
			deleting(mcs)
		} else if s.setOf(mcs.Name) == nil {
			s.remove(mcs)
			s.multis[i] = s.newMulti(mcs.Name)
		}
	}
}

// sets returns the ServiceSets as they are stored.
func (s *ownersSimulation) sets() []*v1alpha1.ServiceSet {
	var sets []*v1alpha1.ServiceSet
	for _, o := range s.objects {
		if set, ok := o.(*v1alpha1.ServiceSet); ok {
			sets = append(sets, set)
		}
	}
	return sets
}

// setOf returns the set of a MultiClusterService, without a name that of the cluster.
func (s *ownersSimulation) setOf(name string) *v1alpha1.ServiceSet {
	for _, set := range s.sets() {
		if set.Spec.MultiClusterService == name {
			return set
		}
	}
	return nil
}

// isBlind tells whether nobody can read the selector of a MultiClusterService.
func isBlind(mcs *v1alpha1.MultiClusterService) bool {
	return len(mcs.Spec.ClusterSelector.MatchExpressions) > 0
}

// wanted is what an owner wants of a service, and whose set that should be in.
type wanted struct {
	owner   string // name of the MultiClusterService, empty for the cluster
	service *v1alpha1.Service
}

// wants returns what is wanted of each service by the owner that gets it.
func (s *ownersSimulation) wants() map[string]wanted {
	type lister struct {
		name     string
		spec     *v1alpha1.ServiceSpec
		priority int32
		created  time.Time
	}
	listers := []lister{{"", &s.cd.Spec.ServiceSpec, s.cd.Spec.ServiceSpec.Priority, s.cd.CreationTimestamp.Time}}
	for _, mcs := range s.multis {
		// Who has a set and selects nobody knows what keeps it as it is.
		if mcs.DeletionTimestamp == nil && (isBlind(mcs) && s.setOf(mcs.Name) != nil || !isBlind(mcs) && mcs.Spec.ClusterSelector.MatchLabels["tier"] == "one") {
			listers = append(listers, lister{mcs.Name, &mcs.Spec.ServiceSpec, mcs.Spec.ServiceSpec.Priority, mcs.CreationTimestamp.Time})
		}
	}
	slices.SortFunc(listers, func(a, b lister) int {
		name := func(l lister) string { return cmp.Or(l.name, s.cd.Name) }
		return cmp.Or(cmp.Compare(b.priority, a.priority), a.created.Compare(b.created), cmp.Compare(name(a), name(b)))
	})
	wants := map[string]wanted{}
	for _, l := range listers {
		for i := range l.spec.Services {
			if service := &l.spec.Services[i]; wants[service.Name].service == nil {
				wants[service.Name] = wanted{l.name, service}
			}
		}
	}
	return wants
}

// operate does what an operator does: it computes the operations and carries out some of them, or all, in any order. It returns
// whether there was anything to do.
func (s *ownersSimulation) operate() bool {
	before := make([]client.Object, len(s.objects))
	for i, o := range s.objects {
		before[i] = o.DeepCopyObject().(client.Object)
	}
	operations, err := serviceset.ComputeClusterOperations(s.scene.t.Context(), s, systemNamespace, s.cd)
	if err != nil {
		s.t.Fatal(err)
	}
	if !equality.Semantic.DeepEqual(before, s.objects) {
		s.t.Fatal("what was read was changed")
	}
	snapshot := newSnapshot(s)
	busy := false
	order := make([]int, len(operations))
	for i := range order {
		order[i] = i
	}
	for _, i := range rapid.Permutation(order).Draw(s.t, "order of operations") {
		o := operations[i]
		if o.Err != nil {
			if !slices.ContainsFunc(s.multis, func(mcs *v1alpha1.MultiClusterService) bool { return mcs.Name == o.Owner.Key.Name && s.isStuck(mcs) }) {
				s.t.Fatal(o.Err)
			}
			continue
		}
		if o.Operation.Operation == none {
			continue
		}
		busy = true
		if rapid.IntRange(0, 5).Draw(s.t, "crash") == 0 {
			break
		}
		snapshot.check(o)
		s.write(o)
		snapshot.checkSets()
	}
	return busy
}

// write does what the API server does.
func (s *ownersSimulation) write(o serviceset.OwnerOperation) {
	if o.Operation.Before != nil {
		s.objects = slices.DeleteFunc(s.objects, func(other client.Object) bool {
			_, isSet := other.(*v1alpha1.ServiceSet)
			return isSet && client.ObjectKeyFromObject(other) == o.Key
		})
	}
	if o.Operation.Operation == v1alpha1.ServiceSetOperationDelete {
		return
	}
	set := o.Operation.ServiceSet.DeepCopy()
	if o.Operation.Before == nil || !serviceset.SameSpec(&o.Operation.Before.Spec, &set.Spec) {
		set.Generation++
	}
	s.add(set)
}

// observe has the state manager take note of a set as it is: what has changed has to be deployed again. It returns whether it did.
func (s *ownersSimulation) observe(set *v1alpha1.ServiceSet) bool {
	if set.Status.ObservedGeneration == set.Generation {
		return true
	}
	if rapid.IntRange(0, 2).Draw(s.t, "be late") == 0 {
		return false
	}
	one := simulation{t: s.t}
	one.in.Owner.Set = set
	for _, e := range set.Spec.Services {
		if state := one.state(e.Name); state != nil && e.Generation > set.Status.ObservedGeneration {
			state.State, state.Template, state.Version = v1alpha1.ServiceStateProvisioning, e.Template, e.Version
		}
	}
	set.Status.ObservedGeneration = set.Generation
	return true
}

// manage does what a state manager owes with some of the services. It returns whether there was anything to do.
func (s *ownersSimulation) manage() bool {
	busy := false
	for _, set := range s.sets() {
		if !s.observe(set) {
			busy = true
			continue
		}
		states := set.Status.Services
		set.Status.Services = nil
		for _, state := range states {
			_, removing := removalOf(set, state.Name)
			kept := state
			if entryOf(set, state.Name) != nil || removing && s.keepRemoving(set, &kept) {
				set.Status.Services = append(set.Status.Services, kept)
			}
			busy = busy || removing
		}
		for i := range set.Spec.Services {
			entry := &set.Spec.Services[i]
			one := simulation{t: s.t, failures: s.failures}
			one.in.Owner.Set = set
			if one.done(*entry) {
				continue
			}
			busy = true
			if rapid.Bool().Draw(s.t, "work") {
				one.progress(*entry)
			}
		}
	}
	return busy
}

func removalOf(set *v1alpha1.ServiceSet, name string) (*v1alpha1.ServiceRemoval, bool) {
	for i := range set.Spec.Removing {
		if set.Spec.Removing[i].Name == name {
			return &set.Spec.Removing[i], true
		}
	}
	return nil, false
}

// keepRemoving goes on with taking a service away. It returns whether that is still there.
func (s *ownersSimulation) keepRemoving(set *v1alpha1.ServiceSet, state *v1alpha1.ServiceState) bool {
	for _, other := range s.sets() {
		if other != set && entryOf(other, state.Name) != nil {
			return false // it belongs to that one now
		}
	}
	if rapid.Bool().Draw(s.t, "wait with the removal") {
		return true
	}
	if state.State != v1alpha1.ServiceStateDeleting {
		state.State = v1alpha1.ServiceStateDeleting
		return true
	}
	return false
}
