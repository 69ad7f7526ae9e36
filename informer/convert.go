package informer

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Convert returns an object of the source's kind, as a server gave it, in the form in which the source gives objects,
// and transformed like them. It is for objects that the source does not hold, such as the answer to a dry run. The object
// given belongs to the source afterwards.
func (k *Kubernetes) Convert(received *unstructured.Unstructured) (client.Object, error) {
	obj, err := k.newObject()
	if err != nil {
		return nil, err
	}
	if k.form == untyped {
		return k.prepare.answer(received), nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(received.Object, obj); err != nil {
		return nil, fmt.Errorf("convert %s %s: %w", k.gvk.Kind, client.ObjectKeyFromObject(received), err)
	}
	return k.prepare.answer(obj), nil
}

// Selects tells whether the namespaces and the label selector of the source let an object of its kind in. Field
// selectors are not looked at: only the server can tell.
func (k *Kubernetes) Selects(obj client.Object) bool {
	if len(k.config.Namespaces) > 0 && !slices.Contains(k.config.Namespaces, obj.GetNamespace()) {
		return false
	}
	return k.config.LabelSelector == nil || k.config.LabelSelector.Matches(labels.Set(obj.GetLabels()))
}
