package serviceset

import (
	"context"
	"fmt"

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

// site is where services go.
type site struct {
	systemNamespace string
	cd              *v1alpha1.ClusterDeployment // nil for the management cluster
}

// namespace is where the ServiceSets of the site are, with their templates.
func (at site) namespace() string {
	if at.cd != nil {
		return at.cd.Namespace
	}
	return at.systemNamespace
}

// owner returns the one whose services are on the site: mcs, or else the cluster.
func (at site) owner(mcs *v1alpha1.MultiClusterService, set *v1alpha1.ServiceSet) (Owner, error) {
	switch {
	case mcs != nil:
		return MultiClusterServiceOwner(mcs, set), nil
	case at.cd != nil:
		return ClusterDeploymentOwner(at.cd, set), nil
	}
	return Owner{}, ErrNoOwner
}

// readInput reads all that there is to know about the services of one owner. set is its ServiceSet if it was read before, else
// nil.
func readInput(
	ctx context.Context, c client.Reader, at site, mcs *v1alpha1.MultiClusterService,
	services []v1alpha1.Service, set *v1alpha1.ServiceSet,
) (Input, error) {
	owner, err := at.owner(mcs, set)
	if err != nil {
		return Input{}, err
	}
	owner.Services = services
	in := Input{}
	if in.Templates, in.Chains, err = readTemplates(ctx, c, at.namespace()); err != nil {
		return Input{}, err
	}
	candidates, err := at.candidates(ctx, c)
	if err != nil {
		return Input{}, err
	}
	for i := range candidates {
		o := candidates[i].Owner
		if o.Kind != owner.Kind || o.Key != owner.Key {
			in.Others = append(in.Others, o)
		} else if set == nil {
			owner.Set = o.Set
		}
	}
	in.Owner = owner
	return in, nil
}
