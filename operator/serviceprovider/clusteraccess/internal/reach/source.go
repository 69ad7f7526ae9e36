package reach

import (
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	services "github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// GrantedLabels are on everything that the granter makes, on the platform and in clusters.
func GrantedLabels() labels.Set {
	return labels.Set{"app.kubernetes.io/managed-by": "operatorkit-granter"}
}

// Issued selects the Secrets with credentials that the granter has issued.
func Issued() labels.Selector { return labels.SelectorFromSet(GrantedLabels()) }

// Reference names the entry of a Secret in the namespace of an object. The zero value is none.
type Reference struct{ Secret, Key string }

// Deployments is a source that gives every object of another source as the ClusterDeployment of the same name that has its
// kubeconfig where refer says. An object without a reference is not there.
func Deployments[O client.Object](source informer.Source, refer func(O) Reference) informer.Source {
	return &mapped{Source: source, name: source.Name() + " kubeconfigs", convert: func(obj any) (any, bool) {
		o, ok := obj.(O)
		if !ok {
			return nil, false
		}
		reference := refer(o)
		if reference == (Reference{}) {
			return nil, false
		}
		cd := &services.ClusterDeployment{}
		cd.Namespace, cd.Name, cd.UID, cd.ResourceVersion = o.GetNamespace(), o.GetName(), o.GetUID(), o.GetResourceVersion()
		cd.Spec.Kubeconfig = services.KubeconfigReference{SecretName: reference.Secret, Key: reference.Key}
		return cd, true
	}}
}

// mapped is a source with its objects in another form. Those that convert refuses are not there.
type mapped struct {
	informer.Source
	name    string
	convert func(obj any) (any, bool)
}

// Name implements informer.Source.
func (m *mapped) Name() string { return m.name }

// Get implements informer.Source.
func (m *mapped) Get(key informer.Key) (any, bool, error) {
	obj, exists, err := m.Source.Get(key)
	if err != nil || !exists {
		return nil, exists, err
	}
	converted, ok := m.convert(obj)
	return converted, ok, nil
}

// List implements informer.Source.
func (m *mapped) List() []any {
	var all []any
	for _, obj := range m.Source.List() {
		if converted, ok := m.convert(obj); ok {
			all = append(all, converted)
		}
	}
	return all
}

// Subscribe implements informer.Source. An object that begins or stops to be there is announced so.
func (m *mapped) Subscribe(h informer.Handler) (unsubscribe func()) {
	return m.Source.Subscribe(func(e informer.Event) {
		now, is := m.convert(e.Object)
		before, was := m.convert(e.Old)
		switch {
		case e.Type != informer.Updated || is && was:
			if !is {
				return
			}
			e.Object, e.Old = now, nil
			if e.Type == informer.Updated {
				e.Old = before
			}
		case is:
			e.Type, e.Object, e.Old = informer.Added, now, nil
		case was:
			e.Type, e.Object, e.Old = informer.Deleted, before, nil
		default:
			return
		}
		h(e)
	})
}
