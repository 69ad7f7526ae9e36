package serviceset

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// candidate is one who has, or should have, a ServiceSet on a site.
type candidate struct {
	Owner

	mcs   *v1alpha1.MultiClusterService // whose services they are; nil for the cluster's own, and for those of one that has gone
	key   client.ObjectKey              // of the set
	there *v1alpha1.ServiceSet          // what has the key, also if it is the set of somebody else; nil if nothing has
	wants bool                          // it has services on the site, even if it lists none
	fault error                         // why the set has to stay as it is
}

// candidates returns all of them by precedence. Those who only have a set left list no services.
func (at site) candidates(ctx context.Context, c client.Reader) ([]candidate, error) {
	sets, found, err := at.sets(ctx, c)
	if err != nil {
		return nil, err
	}
	services, err := at.services(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, mcs := range services {
		set := sets[mcs.Name]
		selected, err := at.selectedBy(mcs)
		if selected || err != nil && set != nil {
			found = append(found, candidate{Owner: MultiClusterServiceOwner(mcs, set), mcs: mcs, wants: true, fault: err})
			delete(sets, mcs.Name)
		}
	}
	if at.cd != nil && !at.isLeaving() {
		found = append(found, candidate{Owner: ClusterDeploymentOwner(at.cd, sets[""]), wants: true})
		delete(sets, "")
	}
	for _, set := range sets {
		found = append(found, candidate{Owner: leftOwner(set)})
	}
	depends := newDependencies(len(services))
	for _, mcs := range services {
		depends.services[mcs.Name] = mcs
	}
	for i := range found {
		at.order(&found[i], depends)
		if err := found[i].locate(ctx, c, at); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(found, func(a, b candidate) int { return compareOwners(&a.Owner, &b.Owner) })
	return found, nil
}

// order notes what comes before a candidate, and what is wrong with that.
func (at site) order(o *candidate, depends *dependencies) {
	if o.Kind != v1alpha1.MultiClusterServiceKind {
		return
	}
	var fault error
	o.DependsOn, fault = depends.of(o.Key.Name)
	for _, name := range o.DependsOn {
		if mcs := depends.services[name]; mcs != nil && fault == nil {
			if _, err := at.selectedBy(mcs); err != nil {
				fault = fmt.Errorf("%s depends on %w", &o.Owner, err)
			}
		}
	}
	if o.wants && o.fault == nil {
		o.fault = fault
	}
}

// services returns the MultiClusterServices. The one that somebody has asked for is as it was given.
func (at site) services(ctx context.Context, c client.Reader) ([]*v1alpha1.MultiClusterService, error) {
	list := &v1alpha1.MultiClusterServiceList{}
	if err := c.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the MultiClusterServices: %w", err)
	}
	services := make([]*v1alpha1.MultiClusterService, 0, len(list.Items)+1)
	given := ""
	if at.asked != nil && at.asked.MCS != nil {
		services, given = append(services, at.asked.MCS), at.asked.MCS.Name
	}
	for i := range list.Items {
		if list.Items[i].Name != given {
			services = append(services, &list.Items[i])
		}
	}
	return services, nil
}

// sets returns the ServiceSets of the site by the names of their MultiClusterServices, and those of which there is another one.
func (at site) sets(ctx context.Context, c client.Reader) (map[string]*v1alpha1.ServiceSet, []candidate, error) {
	list := &v1alpha1.ServiceSetList{}
	if err := c.List(ctx, list, client.InNamespace(at.namespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list the ServiceSets of namespace %s: %w", at.namespace(), err)
	}
	sets := map[string]*v1alpha1.ServiceSet{}
	var doubles []candidate
	for i := range list.Items {
		set := &list.Items[i]
		if !at.has(set) {
			continue
		}
		name := set.Spec.MultiClusterService
		other := sets[name]
		if other != nil && at.key(name) == client.ObjectKeyFromObject(other) {
			set, other = other, set
		}
		sets[name] = set
		if other != nil {
			doubles = append(doubles, doubleOf(other, set))
		}
	}
	return sets, doubles, nil
}

// has tells whether a set of the namespace is one of the site. One that has lost its labels is known by its name, because its owner may be
// leaving, or gone, and nothing else would ever take it away. What has neither is somebody else's.
func (at site) has(set *v1alpha1.ServiceSet) bool {
	label, value, cluster := v1alpha1.ManagementLabel, "true", ""
	if at.cd != nil {
		label, value, cluster = v1alpha1.ClusterLabel, at.cd.Name, at.cd.Name
	}
	if set.Spec.Cluster != cluster {
		return false
	}
	return set.Labels[label] == value || at.key(set.Spec.MultiClusterService) == client.ObjectKeyFromObject(set)
}

// doubleOf is a candidate for a set of which there is another one. It says what runs, and nobody writes it.
func doubleOf(set, counts *v1alpha1.ServiceSet) candidate {
	key := client.ObjectKeyFromObject(set)
	owner := leftOwner(set)
	fault := fmt.Errorf("ServiceSet %s is a second one of %s on the same cluster, beside ServiceSet %s: delete it", key, &owner, counts.Name)
	return candidate{Owner: Owner{Kind: v1alpha1.ServiceSetKind, Key: key, Set: set}, fault: fault}
}

// leftOwner is the owner of a set who does not want anything any more.
func leftOwner(set *v1alpha1.ServiceSet) Owner {
	owner := Owner{Kind: v1alpha1.MultiClusterServiceKind, Key: client.ObjectKey{Name: set.Spec.MultiClusterService}, Set: set}
	if set.Spec.MultiClusterService == "" {
		owner.Kind, owner.Key = v1alpha1.ClusterDeploymentKind, client.ObjectKey{Namespace: set.Namespace, Name: set.Spec.Cluster}
	}
	return owner
}

// key returns where the set of a MultiClusterService, or the cluster's own, should be.
func (at site) key(mcs string) client.ObjectKey {
	if mcs == "" {
		return ObjectKey(at.systemNamespace, at.cd, nil)
	}
	return ObjectKey(at.systemNamespace, at.cd, &v1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Name: mcs}})
}

// isLeaving tells whether the cluster is being deleted.
func (at site) isLeaving() bool { return at.cd != nil && at.cd.DeletionTimestamp != nil }

// selectedBy tells whether a MultiClusterService has services on the site. One that is being deleted has none, and nobody has
// any on a cluster that is. The error says that nobody can tell.
func (at site) selectedBy(mcs *v1alpha1.MultiClusterService) (bool, error) {
	if mcs.DeletionTimestamp != nil || at.isLeaving() {
		return false, nil
	}
	if at.cd == nil {
		return mcs.Spec.ServiceSpec.Provider.SelfManagement, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(mcs.Spec.ClusterSelector)
	if err != nil {
		return false, fmt.Errorf("MultiClusterService %s: clusterSelector: %w: its services stay as they are until it is mended", mcs.Name, err)
	}
	return selector.Matches(labels.Set(at.cd.Labels)), nil
}

// locate finds where the set of a candidate is, or should be, and what is there. Somebody may have asked for another name than that of key.
func (o *candidate) locate(ctx context.Context, c client.Reader, at site) error {
	if o.Set != nil {
		o.key, o.there = client.ObjectKeyFromObject(o.Set), o.Set
		return nil
	}
	if len(o.Services) == 0 {
		return nil
	}
	o.key = ObjectKey(at.systemNamespace, at.cd, o.mcs)
	if at.asked != nil && o.mcs == at.asked.MCS {
		o.key = at.asked.ObjectKey
	}
	var err error
	o.there, err = readSet(ctx, c, o.key)
	if err == nil && o.there != nil && leftOwner(o.there).is(&o.Owner) {
		o.Set = o.there
	}
	return err
}

// is tells whether two owners are the same.
func (o Owner) is(other *Owner) bool { return o.Kind == other.Kind && o.Key == other.Key }

// checkController returns why an owner must not take its set away: somebody else controls it.
func (o *candidate) checkController() error {
	controller := metav1.GetControllerOf(o.Set)
	if controller == nil {
		return nil
	}
	owner := leftOwner(o.Set)
	gv, err := schema.ParseGroupVersion(controller.APIVersion)
	if err == nil && gv.Group == v1alpha1.GroupVersion.Group && controller.Kind == owner.Kind && controller.Name == owner.Key.Name {
		return nil
	}
	return fmt.Errorf("ServiceSet %s is controlled by %s %s, not by %s: delete it, or wait until it is gone",
		o.key, controller.Kind, controller.Name, &owner)
}
