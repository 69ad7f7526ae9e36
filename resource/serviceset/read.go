package serviceset

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// readTemplates reads the templates and chains of a namespace. They are shared with the reader and must not be changed.
func readTemplates(
	ctx context.Context, c client.Reader, namespace string,
) (templates, map[string]*v1alpha1.ServiceTemplateChain, error) {
	list := &v1alpha1.ServiceTemplateList{}
	if err := c.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list the ServiceTemplates of namespace %s: %w", namespace, err)
	}
	known := make(templates, len(list.Items))
	for i := range list.Items {
		known[list.Items[i].Name] = &list.Items[i]
	}
	chainList := &v1alpha1.ServiceTemplateChainList{}
	if err := c.List(ctx, chainList, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("list the ServiceTemplateChains of namespace %s: %w", namespace, err)
	}
	chains := make(map[string]*v1alpha1.ServiceTemplateChain, len(chainList.Items))
	for i := range chainList.Items {
		chains[chainList.Items[i].Name] = &chainList.Items[i]
	}
	return known, chains, nil
}

// subject is whose services are resolved, and where.
type subject struct {
	systemNamespace string
	mcs             *v1alpha1.MultiClusterService
	cd              *v1alpha1.ClusterDeployment
}

// namespace is where the ServiceSets of the cluster are, with their templates.
func (s subject) namespace() string {
	if s.cd != nil {
		return s.cd.Namespace
	}
	return s.systemNamespace
}

// owner returns the one whose services are resolved.
func (s subject) owner(set *v1alpha1.ServiceSet) (Owner, error) {
	switch {
	case s.mcs != nil:
		return MultiClusterServiceOwner(s.mcs, set), nil
	case s.cd != nil:
		return ClusterDeploymentOwner(s.cd, set), nil
	}
	return Owner{}, ErrNoOwner
}

// input reads all that there is to know about a cluster. set is the owner's ServiceSet if it was read before, else nil.
func (s subject) input(ctx context.Context, c client.Reader, services []v1alpha1.Service, set *v1alpha1.ServiceSet) (Input, error) {
	owner, err := s.owner(set)
	if err != nil {
		return Input{}, err
	}
	owner.Services = services
	known, chains, err := readTemplates(ctx, c, s.namespace())
	if err != nil {
		return Input{}, err
	}
	sets, err := s.sets(ctx, c)
	if err != nil {
		return Input{}, err
	}
	own := ""
	if s.mcs != nil {
		own = s.mcs.Name
	}
	if set == nil {
		owner.Set = sets[own]
	}
	delete(sets, own)
	others, err := s.others(ctx, c, sets)
	if err != nil {
		return Input{}, err
	}
	return Input{Owner: owner, Others: others, Templates: known, Chains: chains}, nil
}

// sets returns the ServiceSets of the cluster by the names of their MultiClusterServices.
func (s subject) sets(ctx context.Context, c client.Reader) (map[string]*v1alpha1.ServiceSet, error) {
	label, cluster := client.MatchingLabels{v1alpha1.ManagementLabel: "true"}, ""
	if s.cd != nil {
		label, cluster = client.MatchingLabels{v1alpha1.ClusterLabel: s.cd.Name}, s.cd.Name
	}
	list := &v1alpha1.ServiceSetList{}
	if err := c.List(ctx, list, client.InNamespace(s.namespace()), label, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the ServiceSets of namespace %s: %w", s.namespace(), err)
	}
	sets := make(map[string]*v1alpha1.ServiceSet, len(list.Items))
	for i := range list.Items {
		if set := &list.Items[i]; set.Spec.Cluster == cluster {
			sets[set.Spec.MultiClusterService] = set
		}
	}
	return sets, nil
}

// others returns the other owners with services on the cluster, and ServiceSets whose owners have gone.
func (s subject) others(ctx context.Context, c client.Reader, sets map[string]*v1alpha1.ServiceSet) ([]Owner, error) {
	list := &v1alpha1.MultiClusterServiceList{}
	if err := c.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the MultiClusterServices: %w", err)
	}
	var others []Owner
	for i := range list.Items {
		mcs := &list.Items[i]
		if s.mcs != nil && s.mcs.Name == mcs.Name || !s.selected(mcs) {
			continue
		}
		others = append(others, MultiClusterServiceOwner(mcs, sets[mcs.Name]))
		delete(sets, mcs.Name)
	}
	if s.mcs != nil && s.cd != nil && s.cd.DeletionTimestamp == nil {
		others = append(others, ClusterDeploymentOwner(s.cd, sets[""]))
		delete(sets, "")
	}
	for name, set := range sets {
		others = append(others, Owner{Kind: v1alpha1.MultiClusterServiceKind, Key: client.ObjectKey{Name: name}, Set: set})
	}
	slices.SortFunc(others, func(a, b Owner) int { return compareOwners(&a, &b) })
	return others, nil
}

// selected tells whether a MultiClusterService has services on the cluster. One that is being deleted has none, and neither
// has one whose selector nobody can read.
func (s subject) selected(mcs *v1alpha1.MultiClusterService) bool {
	if mcs.DeletionTimestamp != nil {
		return false
	}
	if s.cd == nil {
		return mcs.Spec.ServiceSpec.Provider.SelfManagement
	}
	selector, err := metav1.LabelSelectorAsSelector(mcs.Spec.ClusterSelector)
	return err == nil && selector.Matches(labels.Set(s.cd.Labels))
}
