package serviceset

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// Builder makes a ServiceSet as it should be from the one that there is.
type Builder struct {
	// ServiceSet is what there is. Of a new one, only the name and the namespace are set. It is not changed.
	ServiceSet *v1alpha1.ServiceSet
	// ClusterDeployment is the cluster, nil for the management cluster.
	ClusterDeployment *v1alpha1.ClusterDeployment
	// MultiClusterService is the owner, nil if that is the ClusterDeployment.
	MultiClusterService *v1alpha1.MultiClusterService
	// Selector is the selector of the StateManagementProvider.
	Selector *metav1.LabelSelector
	// ServicesToDeploy are the services of the set.
	ServicesToDeploy []v1alpha1.ServiceWithValues
	// ServicesToRemove are the services that are being removed.
	ServicesToRemove []v1alpha1.ServiceRemoval
}

// NewBuilder returns a builder for the ServiceSet of a cluster.
func NewBuilder(clusterDeployment *v1alpha1.ClusterDeployment, serviceSet *v1alpha1.ServiceSet, selector *metav1.LabelSelector) *Builder {
	return &Builder{ClusterDeployment: clusterDeployment, ServiceSet: serviceSet, Selector: selector}
}

// WithMultiClusterService sets the owner. It returns the builder.
func (b *Builder) WithMultiClusterService(multiClusterService *v1alpha1.MultiClusterService) *Builder {
	b.MultiClusterService = multiClusterService
	return b
}

// WithServicesToDeploy sets the services. It returns the builder.
func (b *Builder) WithServicesToDeploy(servicesToDeploy []v1alpha1.ServiceWithValues) *Builder {
	b.ServicesToDeploy = servicesToDeploy
	return b
}

// WithServicesToRemove sets the services that are being removed. It returns the builder.
func (b *Builder) WithServicesToRemove(servicesToRemove []v1alpha1.ServiceRemoval) *Builder {
	b.ServicesToRemove = servicesToRemove
	return b
}

// Build returns a copy of the ServiceSet with its owner, its labels and its spec as they should be. Labels, annotations and
// owner references of others stay. The labels that the provider selects by replace those of the last time.
//
// It fails without a ServiceSet or an owner, without a selector that asks for a label, because no provider would find the set, if the
// selector can't be fulfilled, and if the ServiceSet is that of another cluster or owner, or is carried out by another provider.
func (b *Builder) Build() (*v1alpha1.ServiceSet, error) {
	if b.ServiceSet == nil {
		return nil, errors.New("build a ServiceSet: there is none: give one with a name and a namespace")
	}
	if b.ClusterDeployment == nil && b.MultiClusterService == nil {
		return nil, fmt.Errorf("build ServiceSet %s/%s: %w", b.ServiceSet.Namespace, b.ServiceSet.Name, ErrNoOwner)
	}
	set := b.ServiceSet.DeepCopy()
	for _, step := range []func(*v1alpha1.ServiceSet) error{b.setTarget, b.setOwner, b.setLabels, b.setProvider} {
		if err := step(set); err != nil {
			return nil, fmt.Errorf("build ServiceSet %s/%s: %w", set.Namespace, set.Name, err)
		}
	}
	set.Spec.Services = b.ServicesToDeploy
	set.Spec.Removing = b.ServicesToRemove
	return set.DeepCopy(), nil // so that nothing is shared with what was given
}

// setTarget sets the cluster and the MultiClusterService, or refuses a set that belongs to others.
func (b *Builder) setTarget(set *v1alpha1.ServiceSet) error {
	cluster, mcs := "", ""
	if b.ClusterDeployment != nil {
		cluster = b.ClusterDeployment.Name
	}
	if b.MultiClusterService != nil {
		mcs = b.MultiClusterService.Name
	}
	spec := &set.Spec
	used := spec.Cluster != "" || spec.MultiClusterService != ""
	if used && (spec.Cluster != cluster || spec.MultiClusterService != mcs) {
		return fmt.Errorf("it belongs to cluster %q and multiClusterService %q, not to %q and %q: rename one of them",
			spec.Cluster, spec.MultiClusterService, cluster, mcs)
	}
	spec.Cluster, spec.MultiClusterService = cluster, mcs
	return nil
}

// setOwner makes the MultiClusterService, or else the ClusterDeployment, the controlling owner.
func (b *Builder) setOwner(set *v1alpha1.ServiceSet) error {
	var owner metav1.Object = b.ClusterDeployment
	kind := v1alpha1.ClusterDeploymentKind
	if b.MultiClusterService != nil {
		owner, kind = b.MultiClusterService, v1alpha1.MultiClusterServiceKind
	}
	wanted := *metav1.NewControllerRef(owner, v1alpha1.GroupVersion.WithKind(kind))
	at := -1
	for i, o := range set.OwnerReferences {
		switch {
		case o.UID == wanted.UID:
			at = i
		case o.Controller != nil && *o.Controller:
			return fmt.Errorf("it is controlled by %s %s, not by %s %s: delete it, or wait until it is gone", o.Kind, o.Name, kind, wanted.Name)
		}
	}
	if at < 0 {
		set.OwnerReferences = append(set.OwnerReferences, wanted)
	} else {
		set.OwnerReferences[at] = wanted
	}
	return nil
}

// setLabels sets the labels by which the provider, and we, find the set.
func (b *Builder) setLabels(set *v1alpha1.ServiceSet) error {
	selected, err := selectedLabels(b.Selector)
	if err != nil {
		return err
	}
	if len(selected) == 0 {
		return errors.New("the provider's selector asks for no label, so that no provider would find the set: give the one of its StateManagementProvider")
	}
	before := set.Annotations[v1alpha1.SelectorLabelsAnnotation]
	for _, key := range strings.FieldsFunc(before, func(r rune) bool { return r == ',' }) {
		delete(set.Labels, key)
	}
	if set.Labels == nil {
		set.Labels = map[string]string{}
	}
	maps.Copy(set.Labels, selected)
	if b.ClusterDeployment != nil {
		set.Labels[v1alpha1.ClusterLabel] = b.ClusterDeployment.Name
	} else {
		set.Labels[v1alpha1.ManagementLabel] = "true"
	}
	keys := strings.Join(slices.Sorted(maps.Keys(selected)), ",")
	if keys == before {
		return b.checkSelected(set)
	}
	if set.Annotations == nil {
		set.Annotations = map[string]string{}
	}
	set.Annotations[v1alpha1.SelectorLabelsAnnotation] = keys
	return b.checkSelected(set)
}

// checkSelected makes sure that the provider will find the set.
func (b *Builder) checkSelected(set *v1alpha1.ServiceSet) error {
	selector, err := metav1.LabelSelectorAsSelector(b.Selector)
	if err != nil {
		return fmt.Errorf("the provider's selector: %w", err)
	}
	if !selector.Matches(labels.Set(set.Labels)) {
		return fmt.Errorf("the provider's selector %s contradicts itself, or the labels of the set: %s", selector, labels.Set(set.Labels))
	}
	return nil
}

// selectedLabels returns labels that a selector asks for.
func selectedLabels(selector *metav1.LabelSelector) (map[string]string, error) {
	selected := map[string]string{}
	if selector == nil {
		return nil, nil
	}
	for _, e := range selector.MatchExpressions {
		switch e.Operator {
		case metav1.LabelSelectorOpIn:
			if len(e.Values) == 0 {
				return nil, fmt.Errorf("the provider's selector has no values for label %s: give one", e.Key)
			}
			selected[e.Key] = slices.MinFunc(e.Values, cmp.Compare)
		case metav1.LabelSelectorOpExists:
			selected[e.Key] = "true"
		}
	}
	maps.Copy(selected, selector.MatchLabels)
	return selected, nil
}

// setProvider sets the state manager and its configuration, and when it may change services.
func (b *Builder) setProvider(set *v1alpha1.ServiceSet) error {
	var spec *v1alpha1.ServiceSpec
	if b.MultiClusterService != nil {
		spec = &b.MultiClusterService.Spec.ServiceSpec
	} else {
		spec = &b.ClusterDeployment.Spec.ServiceSpec
	}
	provider, err := StateManagementProviderConfigFromServiceSpec(*spec)
	if err != nil {
		return err
	}
	if had := set.Spec.Provider.Name; had != "" && had != provider.Name {
		return fmt.Errorf("it is carried out by provider %q, and can't go to %q: set the provider's name back, or delete the ServiceSet, "+
			"whose services are taken away then and come back by the other provider", had, provider.Name)
	}
	provider.SelfManagement = b.ClusterDeployment == nil
	set.Spec.Provider, set.Spec.ChangeWindows = provider, spec.ChangeWindows
	return nil
}
