package serviceset

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// retire says what becomes of services that the owner does not list any more. Those are taken out of the ServiceSet on
// which nothing depends that is still there; then they are listed as being removed until the status says that they are gone. A
// service that another owner lists is kept until that one has it. It returns which entries of the ServiceSet are kept as
// they are, unless they are deployed in another form.
func (r *Resolution) retire(c *cluster, owner *Owner) []bool {
	stored := owner.Set.Spec.Services
	kept := make([]bool, len(stored))
	leaving := &leaving{index: map[client.ObjectKey]int32{}}
	for i, at := range c.placed {
		if at < 0 {
			leaving.add(&stored[i], i)
			continue
		}
		kept[i] = !c.nodes[at].handedOver(owner)
	}
	r.Removing = stillThere(owner.Set, c.index)
	if len(leaving.services) == 0 {
		return kept
	}
	dependents := r.dependents(owner.Set, leaving)
	for i, s := range leaving.services {
		key := entryKey(s)
		d := Decision{Service: key, Reason: v1alpha1.ReasonRemoving, From: versionOf(s), WaitsFor: dependents[i]}
		if len(d.WaitsFor) > 0 {
			d.To = d.From
			kept[leaving.at[i]] = true
		} else {
			r.Removing = append(r.Removing, v1alpha1.ServiceRemoval{Name: s.Name, Namespace: key.Namespace, DependsOn: s.DependsOn})
		}
		r.Decisions = append(r.Decisions, d)
	}
	sortRemovals(r.Removing)
	slices.SortFunc(r.Decisions, func(a, b Decision) int { return compareKeys(a.Service, b.Service) })
	return kept
}

// stillThere returns the services that are being removed and are not gone yet. One that is listed again is not among them.
func stillThere(set *v1alpha1.ServiceSet, listed map[client.ObjectKey]int32) []v1alpha1.ServiceRemoval {
	if len(set.Spec.Removing) == 0 {
		return nil
	}
	there := make(map[client.ObjectKey]bool, len(set.Status.Services))
	for i := range set.Status.Services {
		s := &set.Status.Services[i]
		there[stateKey(s)] = s.State != v1alpha1.ServiceStateDeleted
	}
	var left []v1alpha1.ServiceRemoval
	for i := range set.Spec.Removing {
		key := removalKey(&set.Spec.Removing[i])
		if _, again := listed[key]; !again && there[key] {
			left = append(left, set.Spec.Removing[i])
		}
	}
	sortRemovals(left)
	return left
}

// dependents returns, for each service that is leaving, what has to go, or to change, before it. Services that were made to
// depend on each other by hand leave together.
func (r *Resolution) dependents(set *v1alpha1.ServiceSet, leaving *leaving) [][]client.ObjectKey {
	found := make([][]client.ObjectKey, len(leaving.services))
	component := components(len(leaving.services), leaving.dependencies)
	note := func(dependent client.ObjectKey, dependsOn []v1alpha1.ServiceDependsOn) {
		own, isLeaving := leaving.index[dependent]
		for _, d := range dependsOn {
			i, ok := leaving.index[ServiceKey(d.Namespace, d.Name)]
			if !ok || isLeaving && component[own] == component[i] {
				continue
			}
			if !slices.Contains(found[i], dependent) {
				found[i] = append(found[i], dependent)
			}
		}
	}
	for i := range set.Spec.Services {
		note(entryKey(&set.Spec.Services[i]), set.Spec.Services[i].DependsOn)
	}
	for i := range r.Removing {
		note(removalKey(&r.Removing[i]), r.Removing[i].DependsOn)
	}
	for i := range found {
		slices.SortFunc(found[i], compareKeys)
	}
	return found
}

// leaving is the services of a ServiceSet that nobody lists any more.
type leaving struct {
	services []*v1alpha1.ServiceWithValues
	at       []int // where they are in the ServiceSet
	index    map[client.ObjectKey]int32
}

func (l *leaving) add(s *v1alpha1.ServiceWithValues, at int) {
	l.index[entryKey(s)] = int32(len(l.services))
	l.services = append(l.services, s)
	l.at = append(l.at, at)
}

func (l *leaving) dependencies(i int32) []int32 {
	var found []int32
	for _, d := range l.services[i].DependsOn {
		if at, ok := l.index[ServiceKey(d.Namespace, d.Name)]; ok {
			found = append(found, at)
		}
	}
	return found
}

func removalKey(s *v1alpha1.ServiceRemoval) client.ObjectKey { return ServiceKey(s.Namespace, s.Name) }

func sortRemovals(list []v1alpha1.ServiceRemoval) {
	slices.SortFunc(list, func(a, b v1alpha1.ServiceRemoval) int { return compareKeys(removalKey(&a), removalKey(&b)) })
}
