package operator

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// NewOwnedSource returns a source of those objects of a kind that objectresource, configmapresource and secretresource
// have made in this operator, also under its former names, in the namespaces of the operator. It is what their Stores and Store
// want, and to be watched with objectresource.OwnerMap. Objects of others are neither received nor held. Asked for the same kind in
// the same form again, it returns the same source.
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
