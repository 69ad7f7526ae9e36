package native

import (
	"cmp"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// accountOf returns the service account as which requests for a service are made: that of its entry, also while that is being taken away,
// that of the set which uninstalls it in place of this one, or that of the set or of the state manager. Nil is the user of the kubeconfig.
// Its namespace is that of the set, which its author can't choose.
func (m *Manager) accountOf(set *statemanager.Set, key client.ObjectKey) *client.ObjectKey {
	spec, name := &set.ServiceSet.Spec, ""
	if i := slices.IndexFunc(spec.Services, func(s v1alpha1.ServiceWithValues) bool { return s.Key() == key }); i >= 0 {
		name = spec.Services[i].ServiceAccountName
	} else if i := slices.IndexFunc(spec.Removing, func(r v1alpha1.ServiceRemoval) bool { return r.Key() == key }); i >= 0 {
		name = spec.Removing[i].ServiceAccountName
	} else {
		name = uninstallerOf(set.Others, key)
	}
	if name = cmp.Or(name, set.Config.ServiceAccountName, m.config.DefaultServiceAccount); name == "" {
		return nil
	}
	return &client.ObjectKey{Namespace: set.ServiceSet.Namespace, Name: name}
}

// uninstallerOf returns the service account that a set which lists a service as one to uninstall asks for. What another set had of it
// goes with these rights: that one does not list it any more.
func uninstallerOf(others []*v1alpha1.ServiceSet, key client.ObjectKey) string {
	for _, other := range others {
		for i := range other.Spec.Services {
			if s := &other.Spec.Services[i]; s.Key() == key && s.Done() == v1alpha1.ServiceStateDeleted {
				config, _ := statemanager.ConfigOf(other) // What is wrong with it is told there.
				return cmp.Or(s.ServiceAccountName, config.ServiceAccountName)
			}
		}
	}
	return ""
}

// acting returns a cluster as a service sees it: what it has no rights for is not shown to it. What watches have is the user's of the
// kubeconfig, so that a service with an account reads from the cluster.
func acting(cluster *target.Cluster, service *carrier.Service, freshness *freshness) (carrier.Cluster, client.Reader, error) {
	if service.Account == nil {
		return cluster, &live{cluster, freshness}, nil
	}
	as, err := cluster.As(fmt.Sprintf("system:serviceaccount:%s:%s", service.Account.Namespace, service.Account.Name))
	if err != nil {
		return nil, nil, fmt.Errorf("use the cluster as service account %s: %w", service.Account, err)
	}
	return as, as.Client(), nil
}

// lacking adds to an error that a service account has no right for something.
func lacking(service *carrier.Service, err error) error {
	if service.Account == nil || !apierrors.IsForbidden(err) {
		return err
	}
	return fmt.Errorf("the service account %s lacks a right on the cluster, or the kubeconfig that to impersonate it: %w", service.Account, err)
}
