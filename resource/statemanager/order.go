package statemanager

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// Order tells what comes before what on the cluster of a set, in whichever set it is: what a service waits for before it may be
// touched, and what has to be gone before it may be taken away.
type Order struct {
	own    *side
	others []*side
	// going are the services of the cluster that are being taken away and are still there, with what they depend on.
	going map[client.ObjectKey][]client.ObjectKey
}

// NewOrder looks at a set and the other ones of its cluster.
func NewOrder(set *Set) *Order {
	o := &Order{own: newSide(set.ServiceSet), going: map[client.ObjectKey][]client.ObjectKey{}}
	for _, other := range set.Others {
		o.others = append(o.others, newSide(other))
	}
	for _, s := range append([]*side{o.own}, o.others...) {
		s.leaving(func(key client.ObjectKey, dependsOn []client.ObjectKey) {
			if s.states[key] != nil && o.own.entries[key] == nil && o.Heir(key) == nil {
				o.going[key] = append(o.going[key], dependsOn...)
			}
		})
	}
	return o
}

// Entry returns what the set lists of a service; nil for a service that it does not list, and while it is being deleted.
func (o *Order) Entry(service client.ObjectKey) *v1alpha1.ServiceWithValues {
	return o.own.entries[service]
}

// State returns what the status of the set says of a service; nil when it says nothing, or that the service is gone.
func (o *Order) State(service client.ObjectKey) *v1alpha1.ServiceState { return o.own.states[service] }

// Heir returns another set of the cluster that lists a service as one that is to be there; nil when there is none. A service that has
// one is not taken away: it is handed over. A set that lists it as one to uninstall would never have it.
func (o *Order) Heir(service client.ObjectKey) *v1alpha1.ServiceSet {
	for _, other := range o.others {
		if other.wants(service) {
			return other.set
		}
	}
	return nil
}

// Wants tells whether another set of the cluster lists a service as one that is to be there.
func (o *Order) Wants(other *v1alpha1.ServiceSet, service client.ObjectKey) bool {
	return slices.ContainsFunc(o.others, func(s *side) bool { return s.set == other && s.wants(service) })
}

// Lists tells whether another set of the cluster lists a service.
func (o *Order) Lists(other *v1alpha1.ServiceSet, service client.ObjectKey) bool {
	return slices.ContainsFunc(o.others, func(s *side) bool { return s.set == other && s.entries[service] != nil })
}

// Has tells whether another set of the cluster has a service: it lists it, or takes it away.
func (o *Order) Has(other *v1alpha1.ServiceSet, service client.ObjectKey) bool {
	return slices.ContainsFunc(o.others, func(s *side) bool {
		return s.set == other && (s.entries[service] != nil || s.states[service] != nil)
	})
}

// Deployed tells whether the status of another set of the cluster says that a service is Deployed as that set lists it.
func (o *Order) Deployed(other *v1alpha1.ServiceSet, service client.ObjectKey) bool {
	return slices.ContainsFunc(o.others, func(s *side) bool { return s.set == other && s.deployed(service) })
}

// Gone notes that a service is gone, so that what it depends on may go.
func (o *Order) Gone(service client.ObjectKey) { delete(o.going, service) }

// Before returns the services that have to be gone before a service may be taken away, by key: those that depend on it and are being
// taken away too. Services that depend on each other in a circle don't wait for each other.
func (o *Order) Before(service client.ObjectKey) []client.ObjectKey {
	below := o.reach(service)
	var before []client.ObjectKey
	for key, dependsOn := range o.going {
		if key != service && !below[key] && slices.Contains(dependsOn, service) {
			before = append(before, key)
		}
	}
	slices.SortFunc(before, v1alpha1.CompareKeys)
	return before
}

// reach returns all that a service that is being taken away depends on and that is being taken away too.
func (o *Order) reach(service client.ObjectKey) map[client.ObjectKey]bool {
	seen := map[client.ObjectKey]bool{}
	for queue := slices.Clone(o.going[service]); len(queue) > 0; queue = queue[1:] {
		key := queue[0]
		if _, goes := o.going[key]; goes && !seen[key] {
			seen[key] = true
			queue = append(queue, o.going[key]...)
		}
	}
	return seen
}

// Waits returns the services that a service depends on and that are not Deployed in the template and version that their set
// lists, in the order of the entry. What is gone counts as Deployed where its set lists it as one to uninstall. own are the states of the services of the set itself, as they are now.
func (o *Order) Waits(entry *v1alpha1.ServiceWithValues, own map[client.ObjectKey]v1alpha1.ServiceState) []client.ObjectKey {
	var missing []client.ObjectKey
	for _, key := range keysOf(entry.DependsOn) {
		if !o.asListed(key, own) {
			missing = append(missing, key)
		}
	}
	return missing
}

func (o *Order) asListed(key client.ObjectKey, own map[client.ObjectKey]v1alpha1.ServiceState) bool {
	if state, ok := own[key]; ok && isAsListed(o.own.entries[key], &state) {
		return true
	}
	return slices.ContainsFunc(o.others, func(other *side) bool { return other.asListed(key) })
}

// Sorted returns the services of the set, each after those of the set that it depends on, and otherwise by key. Circles are cut
// where they are entered.
func (o *Order) Sorted() []*v1alpha1.ServiceWithValues {
	dependsOn := map[client.ObjectKey][]client.ObjectKey{}
	for key, entry := range o.own.entries {
		dependsOn[key] = keysOf(entry.DependsOn)
	}
	sorted := make([]*v1alpha1.ServiceWithValues, 0, len(dependsOn))
	for _, key := range sortKeys(dependsOn) {
		sorted = append(sorted, o.own.entries[key])
	}
	return sorted
}

// Removals returns keys in the order in which they may be taken away: each before those that it depends on, and otherwise by key.
func (o *Order) Removals(keys []client.ObjectKey) []client.ObjectKey {
	dependsOn := map[client.ObjectKey][]client.ObjectKey{}
	for _, key := range keys {
		dependsOn[key] = o.going[key]
	}
	sorted := sortKeys(dependsOn)
	slices.Reverse(sorted)
	return sorted
}

// sortKeys returns the keys of a graph, each after those that it depends on.
func sortKeys(dependsOn map[client.ObjectKey][]client.ObjectKey) []client.ObjectKey {
	keys := make([]client.ObjectKey, 0, len(dependsOn))
	for key := range dependsOn {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, v1alpha1.CompareKeys)
	seen := map[client.ObjectKey]bool{}
	sorted := make([]client.ObjectKey, 0, len(keys))
	var visit func(client.ObjectKey)
	visit = func(key client.ObjectKey) {
		if seen[key] {
			return
		}
		seen[key] = true
		below := slices.Clone(dependsOn[key])
		slices.SortFunc(below, v1alpha1.CompareKeys)
		for _, d := range below {
			if _, known := dependsOn[d]; known {
				visit(d)
			}
		}
		sorted = append(sorted, key)
	}
	for _, key := range keys {
		visit(key)
	}
	return sorted
}

func keysOf(dependsOn []v1alpha1.ServiceDependsOn) []client.ObjectKey {
	keys := make([]client.ObjectKey, len(dependsOn))
	for i, d := range dependsOn {
		keys[i] = d.Key()
	}
	return keys
}
