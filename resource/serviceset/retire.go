package serviceset

import (
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// unlisted says what becomes of an entry of the ServiceSet that the owner does not list. One that another owner lists is kept
// until that one has it. One that nobody lists is taken out when nothing depends on it that is still there; then it is
// listed as being removed until the status says that it is gone.
func (r *resolver) unlisted(s *v1alpha1.ServiceWithValues) {
	key := s.Key()
	if at, ok := r.index[key]; ok {
		if r.nodes[at].handover(r.owner) != givenUp {
			r.Services = append(r.Services, *s)
		}
		return
	}
	d := Decision{Service: key, Reason: v1alpha1.ReasonRemoving, From: versionOf(s), WaitsFor: r.leaving.dependents(key)}
	if len(d.WaitsFor) > 0 {
		d.To = d.From
		if dependents := r.dependents(r.owner); len(dependents) > 0 && len(r.owner.Services) == 0 {
			d.Because = fmt.Sprintf("MultiClusterService %s goes after %s", r.owner.Key.Name, strings.Join(nameOwners(dependents), ", "))
		}
		r.keep(s, d)
		return
	}
	r.Removing = append(r.Removing, v1alpha1.ServiceRemoval{
		Name: s.Name, Namespace: key.Namespace, DependsOn: s.DependsOn, ServiceAccountName: s.ServiceAccountName,
	})
	r.keep(nil, d)
}

// stillThere returns the services that are being removed and are not gone yet. One that is listed again is not among them.
func stillThere(set *v1alpha1.ServiceSet, listed map[client.ObjectKey]int32) []v1alpha1.ServiceRemoval {
	if set == nil || len(set.Spec.Removing) == 0 {
		return nil
	}
	there := make(map[client.ObjectKey]bool, len(set.Status.Services))
	for i := range set.Status.Services {
		s := &set.Status.Services[i]
		there[s.Key()] = s.State != v1alpha1.ServiceStateDeleted
	}
	var left []v1alpha1.ServiceRemoval
	for i := range set.Spec.Removing {
		key := set.Spec.Removing[i].Key()
		if _, again := listed[key]; !again && there[key] {
			left = append(left, set.Spec.Removing[i])
		}
	}
	return left
}

// leaving is what the ServiceSets of a cluster have that nobody lists any more.
type leaving struct {
	index     map[client.ObjectKey]int32
	dependsOn [][]int32 // as far as it is leaving too
	component []int32   // the same for those that depend on each other
	waitsFor  [][]client.ObjectKey
}

// newLeaving looks through all ServiceSets of a cluster: what depends on a service may be in another one.
func newLeaving(c *cluster) *leaving {
	l := &leaving{index: map[client.ObjectKey]int32{}}
	var entries []*v1alpha1.ServiceWithValues
	for _, s := range c.entries() {
		key := s.Key()
		if _, listed := c.index[key]; listed {
			continue
		}
		entries = append(entries, s)
		if _, known := l.index[key]; !known {
			l.index[key] = int32(len(l.index))
		}
	}
	l.dependsOn = make([][]int32, len(l.index))
	for _, s := range entries {
		i := l.index[s.Key()]
		l.dependsOn[i] = append(l.dependsOn[i], l.among(s.DependsOn)...)
	}
	for o, earlier := range c.precedence.earlier {
		for _, i := range l.in(o.Set) {
			for _, other := range withdrawn(earlier) {
				l.dependsOn[i] = append(l.dependsOn[i], l.in(other.Set)...)
			}
		}
	}
	l.component, _ = components(len(l.index), func(i int32) []int32 { return l.dependsOn[i] })
	l.find(c)
	return l
}

// entries returns what all ServiceSets of a cluster have.
func (c *cluster) entries() []*v1alpha1.ServiceWithValues {
	var entries []*v1alpha1.ServiceWithValues
	for _, o := range c.owners {
		if o.Set == nil {
			continue
		}
		for i := range o.Set.Spec.Services {
			entries = append(entries, &o.Set.Spec.Services[i])
		}
	}
	return entries
}

// among returns those dependencies that are leaving.
func (l *leaving) among(dependsOn []v1alpha1.ServiceDependsOn) []int32 {
	var found []int32
	for i := range dependsOn {
		if at, ok := l.index[dependsOn[i].Key()]; ok {
			found = append(found, at)
		}
	}
	return found
}

// in returns what of a ServiceSet is leaving, nothing if there is none.
func (l *leaving) in(set *v1alpha1.ServiceSet) []int32 {
	if set == nil {
		return nil
	}
	var found []int32
	for i := range set.Spec.Services {
		if at, ok := l.index[set.Spec.Services[i].Key()]; ok {
			found = append(found, at)
		}
	}
	return found
}

// find finds, for each service that is leaving, what has to go, or to change, before it.
func (l *leaving) find(c *cluster) {
	l.waitsFor = make([][]client.ObjectKey, len(l.index))
	for _, s := range c.entries() {
		l.note(s.Key(), l.among(s.DependsOn))
	}
	for _, o := range c.owners {
		removing := stillThere(o.Set, c.index)
		for i := range removing {
			l.note(removing[i].Key(), l.among(removing[i].DependsOn))
		}
	}
	for o, earlier := range c.precedence.earlier {
		for _, dependent := range c.present(o) {
			for _, other := range withdrawn(earlier) {
				l.note(dependent, l.in(other.Set))
			}
		}
	}
	for i, found := range l.waitsFor {
		slices.SortFunc(found, v1alpha1.CompareKeys)
		l.waitsFor[i] = slices.Compact(found)
	}
}

// note notes that what a service depends on has to wait for it. Services that were made to depend on each other by hand leave
// together.
func (l *leaving) note(dependent client.ObjectKey, dependsOn []int32) {
	own, isLeaving := l.index[dependent]
	for _, i := range dependsOn {
		if !isLeaving || l.component[own] != l.component[i] {
			l.waitsFor[i] = append(l.waitsFor[i], dependent)
		}
	}
}

// dependents returns what has to go, or to change, before a service that is leaving, by key.
func (l *leaving) dependents(key client.ObjectKey) []client.ObjectKey {
	return l.waitsFor[l.index[key]]
}

func sortRemovals(list []v1alpha1.ServiceRemoval) {
	slices.SortFunc(list, func(a, b v1alpha1.ServiceRemoval) int { return v1alpha1.CompareKeys(a.Key(), b.Key()) })
}
