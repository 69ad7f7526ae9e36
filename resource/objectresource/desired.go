package objectresource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/internal/normalize"
)

// Desired implements keyed.Backend.
func (r *objects[O]) Desired(ctx context.Context) (int, func(i int) (item, error), error) {
	given, err := r.config.Desired(ctx, r.obj)
	return len(given), func(i int) (item, error) {
		it, err := r.desired(given[i])
		if err == nil {
			mark(ctx, it)
		}
		return it, err
	}, err
}

// desired makes what is applied of what the author gave.
func (r *objects[O]) desired(o client.Object) (item, error) {
	if v := reflect.ValueOf(o); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return item{}, errors.New("is nil")
	}
	gvk, err := r.config.Client.GroupVersionKindFor(o)
	if err != nil {
		return item{}, fmt.Errorf("find the kind of a %T: %w: register its type in the client's scheme", o, err)
	}
	u, err := content(o, gvk)
	if err != nil {
		return item{}, fmt.Errorf("convert %s %s/%s: %w", gvk.GroupKind(), o.GetNamespace(), o.GetName(), err)
	}
	if u.GetName() == "" {
		return item{}, fmt.Errorf("a %s has no name: set metadata.name (a generateName would make a new object each time)", gvk.GroupKind())
	}
	if err := r.place(u); err != nil {
		return item{}, err
	}
	it := newItem(gvk, object{content: u, given: o})
	if !known(r.kinds, gvk) {
		return item{}, fmt.Errorf("%s is a %s, which Kinds does not name: add it, otherwise the object would never be deleted",
			it.Key, gvk)
	}
	if ns := it.Key.Namespace; ns != "" && !slices.Contains(r.namespaces, ns) &&
		!slices.Contains(r.namespaces, metav1.NamespaceAll) {
		return item{}, fmt.Errorf("%s is outside of the namespaces %q: have Namespaces return its namespace, "+
			"otherwise the object would never be deleted", it.Key, r.namespaces)
	}
	if r.config.Sensitive != nil && r.config.Sensitive(o) {
		it.Sensitive = true
	}
	r.markOnto(u)
	return it, nil
}

// content returns the object as unstructured content without what the server fills in. The object is not changed.
func content(o client.Object, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	var fields map[string]any
	if given, ok := o.(*unstructured.Unstructured); ok {
		// By way of JSON, because authors fill maps with Go types that are none of JSON's.
		b, err := json.Marshal(given.Object)
		if err != nil {
			return nil, err
		}
		if err := utiljson.Unmarshal(b, &fields); err != nil {
			return nil, err
		}
	} else {
		var err error
		if fields, err = runtime.DefaultUnstructuredConverter.ToUnstructured(o); err != nil {
			return nil, err
		}
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(gvk)
	if err := normalize.Check(fields); err != nil {
		return nil, err
	}
	normalize.Object(fields)
	if _, ok := o.(*unstructured.Unstructured); !ok {
		omission{null: true}.from(reflect.ValueOf(o), fields)
	}
	delete(fields, "status")
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		for name := range metadata {
			switch name {
			case "name", "namespace", "labels", "annotations", "ownerReferences", "finalizers":
			default:
				delete(metadata, name)
			}
		}
	}
	return u, nil
}

// place gives the object the namespace of its owner unless it has one. Whether a kind has namespaces is not known before
// its definition is installed; then the object stays as it is.
func (r *objects[O]) place(u *unstructured.Unstructured) error {
	namespaced, err := r.config.Client.IsObjectNamespaced(u)
	switch {
	case meta.IsNoMatchError(err):
		return nil
	case err != nil:
		return fmt.Errorf("find out whether a %s has a namespace: %w", u.GroupVersionKind().GroupKind(), err)
	case !namespaced && u.GetNamespace() != "":
		return fmt.Errorf("%s %s has the namespace %q, but its kind has none: leave it empty",
			u.GroupVersionKind().GroupKind(), u.GetName(), u.GetNamespace())
	case namespaced && u.GetNamespace() == "":
		if r.owner.Namespace == "" {
			return fmt.Errorf("%s %s has no namespace, and neither has its owner: set metadata.namespace",
				u.GroupVersionKind().GroupKind(), u.GetName())
		}
		u.SetNamespace(r.owner.Namespace)
	}
	return nil
}

// markOnto writes on the object whose it is.
func (r *objects[O]) markOnto(u *unstructured.Unstructured) {
	mark := r.marks[0]
	labels := maps.Clone(u.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	labels[OwnerLabel], labels[OperatorLabel] = r.label(mark), identity.LabelValue(mark.Operator)
	u.SetLabels(labels)

	if ref, ok := r.owner.reference(u.GetNamespace()); ok {
		refs, _, _ := unstructured.NestedSlice(u.Object, "metadata", "ownerReferences")
		// The author may have set it, too.
		refs = slices.DeleteFunc(refs, func(other any) bool {
			given, _ := other.(map[string]any)
			if given["uid"] != ref["uid"] {
				return false
			}
			if block, ok := given["blockOwnerDeletion"]; ok {
				ref["blockOwnerDeletion"] = block
			}
			return true
		})
		_ = unstructured.SetNestedSlice(u.Object, append(refs, ref), "metadata", "ownerReferences")
	}

	annotations := maps.Clone(u.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[OwnerAnnotation] = r.owner.String()
	annotations[OperatorAnnotation], annotations[FrameworkAnnotation], annotations[ResourceAnnotation] = mark.Operator, mark.Framework, mark.Resource
	annotations[AppliedAnnotation] = ""
	u.SetAnnotations(annotations)
	annotations[AppliedAnnotation] = keyOf(u.GroupVersionKind(), u).place() + "#" + hashPaths(u.Object)
	u.SetAnnotations(annotations)
}

func isSecret(gvk schema.GroupVersionKind) bool {
	return gvk.GroupKind() == corev1.SchemeGroupVersion.WithKind("Secret").GroupKind()
}
