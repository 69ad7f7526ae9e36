package native

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/resource/statemanager"
)

// objects reads the ConfigMaps and Secrets that one set is made from, and what its values templates are filled with. It keeps those that
// the set named last, as long as a source says that they are the same.
type objects struct {
	config *Config

	mu   sync.Mutex
	kept map[statemanager.Reference]client.Object
	used map[statemanager.Reference]client.Object
}

// begin begins with a computation: what it does not use is forgotten with the next one.
func (o *objects) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept, o.used = o.used, map[statemanager.Reference]client.Object{}
}

// missingError says that something does not exist that a service is made of.
type missingError struct {
	what string
	mend string
}

func (e *missingError) Error() string { return fmt.Sprintf("%s does not exist: %s", e.what, e.mend) }

// read returns an object, which must not be changed. The error may be a missingError.
func (o *objects) read(ctx context.Context, ref statemanager.Reference) (client.Object, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if obj := o.used[ref]; obj != nil {
		return obj, nil
	}
	if obj := o.kept[ref]; obj != nil && o.unchanged(ref, obj) {
		o.used[ref] = obj
		return obj, nil
	}
	var obj client.Object
	switch ref.GroupVersionKind() {
	case corev1.SchemeGroupVersion.WithKind(statemanager.KindConfigMap):
		obj = &corev1.ConfigMap{}
	case corev1.SchemeGroupVersion.WithKind(statemanager.KindSecret):
		obj = &corev1.Secret{}
	default:
		other := &unstructured.Unstructured{}
		other.SetGroupVersionKind(ref.GroupVersionKind())
		obj = other
	}
	err := o.config.Management.Get(ctx, ref.ObjectKey, obj)
	switch {
	case apierrors.IsNotFound(err):
		return nil, &missingError{what: fmt.Sprintf("%s %s", ref.Kind, ref.ObjectKey), mend: "create it"}
	case err != nil:
		return nil, fmt.Errorf("read %s %s: %w", ref.Kind, ref.ObjectKey, err)
	}
	o.used[ref] = obj
	return obj, nil
}

// versions returns the lives and the versions of those objects that were read in this computation.
func (o *objects) versions(of []statemanager.Reference) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var found []string
	for _, ref := range of {
		if obj := o.used[ref]; obj != nil {
			found = append(found, fmt.Sprintf("%s %s %s %s", ref.Kind, ref.Name, obj.GetUID(), obj.GetResourceVersion()))
		}
	}
	return found
}

// content returns what an object has, for whoever changes it. The error may be a missingError.
func (o *objects) content(ctx context.Context, ref statemanager.Reference) (map[string]any, error) {
	obj, err := o.read(ctx, ref)
	if err != nil {
		return nil, err
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj.DeepCopyObject())
}

// unchanged tells whether a source has the object as it was read.
func (o *objects) unchanged(ref statemanager.Reference, obj client.Object) bool {
	var source informer.Source
	switch ref.GroupVersionKind() {
	case corev1.SchemeGroupVersion.WithKind(statemanager.KindConfigMap):
		source = o.config.ConfigMaps
	case corev1.SchemeGroupVersion.WithKind(statemanager.KindSecret):
		source = o.config.Secrets
	}
	if source == nil || !source.Status().Synced || source.Status().LastError != nil {
		return false
	}
	known, exists, err := source.Get(informer.Key{Namespace: ref.Namespace, Name: ref.Name})
	if err != nil || !exists {
		return false
	}
	meta, ok := known.(client.Object)
	return ok && meta.GetUID() == obj.GetUID() && meta.GetResourceVersion() == obj.GetResourceVersion()
}
