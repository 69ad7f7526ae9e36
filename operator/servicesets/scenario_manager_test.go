package servicesets_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// managerFinalizer keeps a ServiceSet until the state manager has taken its services away.
const managerFinalizer = "scenarios.operatorkit.io/state-manager"

// stateManager does what a state manager owes, and nothing ever fails: it reports that services run, or are gone, without
// touching any cluster. It keeps nothing in memory, so it goes on wherever somebody else has stopped.
type stateManager struct {
	client    client.Client
	namespace string
}

// step brings every ServiceSet a step further: all services that need not wait are Deployed, or gone. It tells
// whether there was anything to do.
func (m stateManager) step(ctx context.Context) (busy bool, err error) {
	list := &v1alpha1.ServiceSetList{}
	if err := m.client.List(ctx, list, client.InNamespace(m.namespace)); err != nil {
		return false, err
	}
	clusters := map[string][]*v1alpha1.ServiceSet{}
	for i := range list.Items {
		set := &list.Items[i]
		clusters[set.Spec.Cluster] = append(clusters[set.Spec.Cluster], set)
	}
	var errs []error
	for _, sets := range clusters {
		for _, set := range sets {
			changed, err := m.carryOut(ctx, set, sets)
			busy = busy || changed
			// Who was too late looks again at the next step.
			errs = append(errs, ignoreConflict(client.IgnoreNotFound(err)))
		}
	}
	return busy, errors.Join(errs...)
}

// carryOut does what can be done for a set, which is one of those of its cluster.
func (m stateManager) carryOut(ctx context.Context, set *v1alpha1.ServiceSet, all []*v1alpha1.ServiceSet) (changed bool, err error) {
	before := set.DeepCopy()
	wanted := set.Spec.Services
	if set.DeletionTimestamp != nil {
		wanted = nil
	}
	var states []v1alpha1.ServiceState
	for i := range wanted {
		if ready(&wanted[i], all) {
			states = append(states, deployed(&wanted[i]))
		} else if s := stateOf(before, wanted[i].Namespace, wanted[i].Name); s != nil {
			states = append(states, *s)
		}
	}
	for _, s := range before.Status.Services {
		listed := slices.ContainsFunc(wanted, func(e v1alpha1.ServiceWithValues) bool { return e.Namespace == s.Namespace && e.Name == s.Name })
		if !listed && neededBy(s, all) {
			s.State = v1alpha1.ServiceStateDeleting
			states = append(states, s)
		}
	}
	set.Status.Services = states
	set.Status.ObservedGeneration = set.Generation
	if !equality.Semantic.DeepEqual(before.Status, set.Status) {
		if err := m.client.Status().Update(ctx, set); err != nil {
			return true, fmt.Errorf("write the status of ServiceSet %s: %w", set.Name, err)
		}
		changed = true
	}
	return changed, m.keep(ctx, set)
}

// keep keeps a set until nothing of it is left.
func (m stateManager) keep(ctx context.Context, set *v1alpha1.ServiceSet) error {
	before := set.DeepCopy()
	wants := set.DeletionTimestamp == nil && len(set.Status.Services) > 0
	switch {
	case wants && controllerutil.AddFinalizer(set, managerFinalizer):
	case len(set.Status.Services) == 0 && controllerutil.RemoveFinalizer(set, managerFinalizer):
	default:
		return nil
	}
	if err := m.client.Patch(ctx, set, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("change the finalizers of ServiceSet %s: %w", set.Name, err)
	}
	return nil
}

// ready tells whether all that a service depends on runs, in whichever set of the cluster it is.
func ready(entry *v1alpha1.ServiceWithValues, all []*v1alpha1.ServiceSet) bool {
	for _, d := range entry.DependsOn {
		runs := slices.ContainsFunc(all, func(set *v1alpha1.ServiceSet) bool {
			s := stateOf(set, d.Namespace, d.Name)
			return s != nil && s.State == v1alpha1.ServiceStateDeployed
		})
		if !runs {
			return false
		}
	}
	return true
}

// neededBy tells whether something that still runs, and is being removed too, depends on a service that is being removed.
func neededBy(s v1alpha1.ServiceState, all []*v1alpha1.ServiceSet) bool {
	needs := func(namespace, name string, dependsOn []v1alpha1.ServiceDependsOn, set *v1alpha1.ServiceSet) bool {
		depends := slices.Contains(dependsOn, v1alpha1.ServiceDependsOn{Name: s.Name, Namespace: s.Namespace})
		return depends && stateOf(set, namespace, name) != nil
	}
	for _, set := range all {
		for _, r := range set.Spec.Removing {
			if needs(r.Namespace, r.Name, r.DependsOn, set) {
				return true
			}
		}
		for i := range set.Spec.Services {
			e := &set.Spec.Services[i]
			if set.DeletionTimestamp != nil && needs(e.Namespace, e.Name, e.DependsOn, set) {
				return true
			}
		}
	}
	return false
}

// deployed is the state of an entry that runs as it is.
func deployed(entry *v1alpha1.ServiceWithValues) v1alpha1.ServiceState {
	version := v1alpha1.ServiceVersion{Template: entry.Template, Version: entry.Version}
	return v1alpha1.ServiceState{
		Name: entry.Name, Namespace: entry.Namespace, Type: v1alpha1.ServiceTypeHelm, Template: entry.Template, Version: entry.Version,
		State: v1alpha1.ServiceStateDeployed, LastDeployed: &v1alpha1.LastDeployed{ServiceVersion: version},
	}
}

// stateOf returns what a set reports about a service, or nil.
func stateOf(set *v1alpha1.ServiceSet, namespace, name string) *v1alpha1.ServiceState {
	i := slices.IndexFunc(set.Status.Services, func(s v1alpha1.ServiceState) bool {
		return s.Key() == serviceset.ServiceKey(namespace, name)
	})
	if i < 0 {
		return nil
	}
	return &set.Status.Services[i]
}
