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
	asked           *OperationRequisites        // whose services somebody has asked for, nil for nobody
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

// readInput reads all that there is to know about the services of one owner, who lists these now; none if it has none on the site:
// see candidates. set is its ServiceSet if it was read before, else nil.
func readInput(
	ctx context.Context, c client.Reader, systemNamespace string, mcs *v1alpha1.MultiClusterService, cd *v1alpha1.ClusterDeployment,
	services []v1alpha1.Service, set *v1alpha1.ServiceSet,
) (Input, error) {
	at := site{systemNamespace, cd, &OperationRequisites{ObjectKey: ObjectKey(systemNamespace, cd, mcs), MCS: mcs, CD: cd, SystemNamespace: systemNamespace}}
	owner, err := at.owner(mcs, set)
	if err != nil {
		return Input{}, err
	}
	in := Input{}
	if in.Templates, in.Chains, err = readTemplates(ctx, c, at.namespace()); err != nil {
		return Input{}, err
	}
	candidates, err := at.candidates(ctx, c)
	if err != nil {
		return Input{}, err
	}
	owner.Services = nil
	for i := range candidates {
		o := &candidates[i]
		switch {
		case !o.is(&owner):
			in.Others = append(in.Others, o.Owner)
			continue
		case o.fault != nil:
			return Input{}, o.fault
		case o.wants:
			owner.Services = services
		}
		owner.DependsOn = o.DependsOn
		if set == nil {
			owner.Set = o.Set
		}
	}
	in.Owner = owner
	return in, nil
}
