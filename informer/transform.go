package informer

import (
	"context"
	"fmt"

	"github.com/giantswarm/micrologger"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/internal/panics"
)

// DropManagedFields is a transform that removes metadata.managedFields, which no resource reads and
// which is often half of an object.
func DropManagedFields(obj any) (any, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, fmt.Errorf("drop managed fields: %w", err)
	}
	if accessor.GetManagedFields() != nil {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}

// TransformNothing is a transform that keeps objects as they are received.
func TransformNothing(obj any) (any, error) { return obj, nil }

// preparation prepares received objects for the store.
type preparation struct {
	gvk        schema.GroupVersionKind
	apiVersion string
	user       cache.TransformFunc
	strings    *interner
	logger     micrologger.Logger
}

func newPreparation(gvk schema.GroupVersionKind, transform cache.TransformFunc, logger micrologger.Logger) *preparation {
	return &preparation{
		gvk:        gvk,
		apiVersion: gvk.GroupVersion().String(),
		user:       transform,
		strings:    newInterner(),
		logger:     logger,
	}
}

// item returns the compacted item to store for a received object. It returns false for anything
// that is not an object. The object shares maps and pointers with other stored ones and must not be
// changed from then on.
func (p *preparation) item(received any) (Item, bool) {
	transformed, _ := p.transform(received)
	obj, ok := transformed.(client.Object)
	if !ok {
		return Item{}, false
	}
	p.strings.compact(obj)
	return Item{
		Key:     Key{Namespace: obj.GetNamespace(), Name: obj.GetName()},
		Object:  obj,
		Version: obj.GetResourceVersion(),
	}, true
}

// answer prepares a requested object like a stored one, but the object is the caller's own.
func (p *preparation) answer(received client.Object) client.Object {
	transformed, _ := p.transform(received)
	if obj, ok := transformed.(client.Object); ok {
		return obj
	}
	return received
}

// transform sets the kind and applies the user's transform. It never fails: an object that can't be
// transformed is kept.
func (p *preparation) transform(received any) (any, error) {
	obj, ok := received.(client.Object)
	if !ok {
		return received, nil
	}
	p.setKind(obj)
	transformed, err := p.callUser(obj)
	if err != nil {
		p.logger.Errorf(context.Background(), err, "transform failed, %s is kept as received", client.ObjectKeyFromObject(obj))
		return obj, nil
	}
	return transformed, nil
}

func (p *preparation) callUser(obj client.Object) (_ client.Object, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the transform: %s", panics.Describe(r))
		}
	}()
	key, version := client.ObjectKeyFromObject(obj), obj.GetResourceVersion()
	result, err := p.user(obj)
	if err != nil {
		return nil, err
	}
	transformed, ok := result.(client.Object)
	if !ok {
		return nil, fmt.Errorf("transform returned a %T, which is not an object", result)
	}
	if client.ObjectKeyFromObject(transformed) != key || transformed.GetResourceVersion() != version {
		return nil, fmt.Errorf("transform changed namespace, name or resource version")
	}
	return transformed, nil
}

// setKind sets the apiVersion and kind of an object, which lists of typed objects omit.
func (p *preparation) setKind(obj runtime.Object) {
	kind := obj.GetObjectKind()
	if t, ok := kind.(*metav1.TypeMeta); ok {
		t.APIVersion, t.Kind = p.apiVersion, p.gvk.Kind
		return
	}
	if kind.GroupVersionKind() != p.gvk {
		kind.SetGroupVersionKind(p.gvk)
	}
}
