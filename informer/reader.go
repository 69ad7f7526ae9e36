package informer

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Reader reads from sources in place of the API server, as a client.Reader does.
type Reader struct {
	scheme  *runtime.Scheme
	sources map[schema.GroupVersionKind]*Kubernetes
}

// NewReader returns a reader of what the sources hold. They should be whole: a reader can't tell what a selector left out.
// Reading a kind without a source is an error.
func NewReader(scheme *runtime.Scheme, sources ...*Kubernetes) *Reader {
	r := &Reader{scheme: scheme, sources: make(map[schema.GroupVersionKind]*Kubernetes, len(sources))}
	for _, s := range sources {
		r.sources[s.GroupVersionKind()] = s
	}
	return r
}

// Get implements client.Reader. The object is a copy.
func (r *Reader) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	source, err := r.source(obj)
	if err != nil {
		return err
	}
	found, exists, err := source.Get(Key{Namespace: key.Namespace, Name: key.Name})
	if err != nil {
		return err
	}
	if !exists {
		gvk := source.GroupVersionKind()
		return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: strings.ToLower(gvk.Kind)}, key.Name)
	}
	return r.scheme.Convert(found.(runtime.Object).DeepCopyObject(), obj, nil)
}

// List implements client.Reader. It knows namespaces and label selectors.
func (r *Reader) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	source, err := r.source(list)
	if err != nil {
		return err
	}
	var options client.ListOptions
	options.ApplyOptions(opts)
	if options.FieldSelector != nil {
		return fmt.Errorf("list %s from source %q: field selectors are not supported", source.GroupVersionKind().Kind, source.Name())
	}
	var items []runtime.Object
	for _, item := range source.List() {
		obj := item.(client.Object)
		if options.Namespace != "" && obj.GetNamespace() != options.Namespace ||
			options.LabelSelector != nil && !options.LabelSelector.Matches(labels.Set(obj.GetLabels())) {
			continue
		}
		items = append(items, obj.DeepCopyObject())
	}
	return meta.SetList(list, items)
}

func (r *Reader) source(obj runtime.Object) (*Kubernetes, error) {
	gvk, err := apiutil.GVKForObject(obj, r.scheme)
	if err != nil {
		return nil, err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	source, ok := r.sources[gvk]
	if !ok {
		return nil, fmt.Errorf("read %s: the reader has no source of it: give one to NewReader", gvk.Kind)
	}
	return source, nil
}
