package operator

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// NewOwnedSource returns a source of the objects of a kind that objectresource, configmapresource
// and secretresource have made in this operator, including under its former names, in the
// namespaces of the operator. It is for their Stores and Store, and for a watch with
// objectresource.OwnerMap. Other objects are neither received nor stored. Another call for the same
// kind in the same form returns the same source.
func (d *Dependencies) NewOwnedSource(object client.Object) (*informer.Kubernetes, error) {
	gvk, err := d.Client.GroupVersionKindFor(object)
	if err != nil {
		return nil, fmt.Errorf("make a source of owned %T: %w: is it in the scheme?", object, err)
	}
	operators := []string{identity.LabelValue(d.Name)}
	for _, former := range d.FormerNames {
		operators = append(operators, identity.LabelValue(former))
	}
	owned, err := labels.NewRequirement(objectresource.OperatorLabel, selection.In, operators)
	if err != nil {
		return nil, fmt.Errorf("make a source of owned %T: %w", object, err)
	}
	return d.sources.of(question{gvk: gvk, form: formOf(object), owned: true}, func() (*informer.Kubernetes, error) {
		return informer.NewKubernetes(informer.KubernetesConfig{
			Client: d.Client, Object: object, Name: "owned " + gvk.GroupKind().String(), Namespaces: d.Namespaces,
			LabelSelector: labels.NewSelector().Add(*owned), Indexers: objectresource.OwnerIndexers(), Logger: d.Logger,
		})
	})
}

// Owned are sources of the objects that an operator makes for its primaries, for their two uses:
//
//	owned, err := d.Own(&v1alpha1.Website{}, &corev1.ConfigMap{}, &corev1.Service{})
//	…
//	objectresource.Config[*v1alpha1.Website]{Stores: owned.Stores, …}
//	framework.Config{Watches: owned.Watches, …}
type Owned struct {
	// Stores are for the resources that make the objects, which read the current state from them.
	Stores []objectresource.Store
	// Watches are for the framework of the primaries: a change of an object reconciles its primary.
	Watches []framework.Watch
}

// Own returns the stores and the watches of the objects of these kinds that resources of the
// operator make for primaries of the kind of owner. They use the sources of NewOwnedSource.
func (d *Dependencies) Own(owner client.Object, kinds ...client.Object) (*Owned, error) {
	gvk, err := d.Client.GroupVersionKindFor(owner)
	if err != nil {
		return nil, fmt.Errorf("find the kind of the owner, a %T: %w: is it in the scheme?", owner, err)
	}
	owned := &Owned{}
	for _, kind := range kinds {
		source, err := d.NewOwnedSource(kind)
		if err != nil {
			return nil, err
		}
		owned.Stores = append(owned.Stores, source)
		owned.Watches = append(owned.Watches, framework.Watch{Source: source, Map: objectresource.OwnerMap(gvk.GroupKind()), SameNamespace: true})
	}
	return owned, nil
}

// InAllNamespaces is for objects outside the namespace of their primary
// (objectresource.Config.Namespaces): if replicas share the primaries, each holds the objects of
// all of them. It returns o.
func (o *Owned) InAllNamespaces() *Owned {
	for i := range o.Watches {
		o.Watches[i].SameNamespace = false
	}
	return o
}

// CheckWatched returns an error, for which framework.IsInvalidConfig holds, if a source of
// NewOwnedSource or Own is not run by any framework and is not in the Sources of the configuration:
// changes of these objects would go unnoticed. The commands that make the frameworks call it.
func (d *Dependencies) CheckWatched(config Config) error {
	run := slices.Clone(config.Sources)
	for _, f := range config.Frameworks {
		run = append(run, f.Sources()...)
	}
	var wrong faults.List
	for _, made := range d.sources.all() {
		wrong.If(made.owned && !slices.Contains(run, informer.Source(made.source)),
			"no framework watches the source %q, so that changes of these objects would go unnoticed: give framework.Config.Watches what Dependencies.Own returns", made.source.Name())
	}
	slices.SortFunc(wrong, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return wrong.Of("operator.Config")
}
