package informer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer/notfound"
)

var (
	_ Source         = (*Kubernetes)(nil)
	_ FinalizerStore = (*Kubernetes)(nil)
	_ LiveReader     = (*Kubernetes)(nil)
	_ Comparer       = (*Kubernetes)(nil)
	_ LiveSelector   = (*Kubernetes)(nil)
	_ Interface      = (*Kubernetes)(nil)
)

// Kubernetes is a [Source] of the objects of one kind in a Kubernetes API. The objects it returns
// are client.Objects with apiVersion and kind.
//
// It watches, with streaming lists where the server supports them. A watch that ends is resumed
// where it ended. A failed one is retried forever, after 0.2 to 20 seconds, and changes made
// meanwhile are found by comparison. The store survives the end of Run: a later Run announces the
// changes in between.
type Kubernetes struct {
	*Hub
	feed   *Feed
	config KubernetesConfig
	// client is the client of config. It checks each 404 before it takes an object for gone.
	client  client.Client
	gvk     schema.GroupVersionKind
	form    representation
	prepare *preparation
	limits  limits
	// tracked is true once the source is registered for the writes of its kind.
	tracked atomic.Bool
	// codecs decode answers to writes. They are made for the first one.
	codecs func() serializer.CodecFactory
}

// NewKubernetes returns a source that does nothing until Run is called. The error names each
// invalid field of the configuration and wraps [ErrInvalidConfig]. It does not contact the API
// server.
func NewKubernetes(config KubernetesConfig) (*Kubernetes, error) {
	gvk, form, err := config.validate()
	if err != nil {
		return nil, err
	}
	config.Namespaces = slices.Clone(config.Namespaces)
	k := &Kubernetes{
		config:  config,
		client:  notfound.Checked(config.Client),
		gvk:     gvk,
		form:    form,
		prepare: newPreparation(gvk, config.Transform, config.Logger.With("source", config.Name)),
	}
	k.codecs = sync.OnceValue(func() serializer.CodecFactory { return serializer.NewCodecFactory(config.Client.Scheme()) })
	if _, err := k.newObject(); err != nil {
		return nil, fmt.Errorf("%w of a kubernetes source: Object can't be used: %w", ErrInvalidConfig, err)
	}
	if _, err := k.newList(); err != nil {
		return nil, fmt.Errorf("%w of a kubernetes source: Object can't be listed: %w", ErrInvalidConfig, err)
	}
	k.Hub, k.feed = NewHub(HubConfig{
		Name:       config.Name,
		Namespaces: config.Namespaces,
		Indexers:   config.Indexers,
		Logger:     config.Logger,
		Compare:    resourceversion.CompareResourceVersion,
		pack:       k.prepare.strings.pack,
	})
	return k, nil
}

// GroupVersionKind returns the kind of the objects.
func (k *Kubernetes) GroupVersionKind() schema.GroupVersionKind { return k.gvk }

// Namespaces returns the namespaces that the source is limited to, or none if it has all. The slice
// is the caller's.
func (k *Kubernetes) Namespaces() []string { return slices.Clone(k.config.Namespaces) }

// Run implements [Source]. It returns nil.
func (k *Kubernetes) Run(ctx context.Context) error {
	k.feed.Run(ctx, k.work)
	return nil
}

func (k *Kubernetes) work(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, namespace := range k.namespaces() {
		wg.Go(func() {
			for ctx.Err() == nil {
				newStream(k, namespace).run(ctx)
			}
		})
	}
	wg.Go(func() { k.feed.Resync(ctx, k.config.Resync) })
}

// namespaces returns the namespaces to list; "" is all.
func (k *Kubernetes) namespaces() []string {
	if len(k.config.Namespaces) == 0 {
		return []string{""}
	}
	return k.config.Namespaces
}

// unusable logs unusable input, once for each sort.
func (k *Kubernetes) unusable(sort string, err error) {
	if k.feed.Unusable(sort, fmt.Errorf("source %s: %w", k.Name(), err)) {
		k.config.Logger.With("source", k.Name()).Errorf(context.Background(), err, "what has arrived can't be used; more of its sort is not logged")
	}
}

// newObject returns an empty object of the kind, in the form in which the source stores it.
func (k *Kubernetes) newObject() (client.Object, error) {
	switch k.form {
	case untyped:
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(k.gvk)
		return obj, nil
	case metadataOnly:
		obj := &metav1.PartialObjectMetadata{}
		obj.SetGroupVersionKind(k.gvk)
		return obj, nil
	}
	obj, err := k.config.Client.Scheme().New(k.gvk)
	if err != nil {
		return nil, fmt.Errorf("make a %s: %w", k.gvk.Kind, err)
	}
	typed, ok := obj.(client.Object)
	if !ok {
		return nil, fmt.Errorf("make a %s: %T has no object metadata", k.gvk.Kind, obj)
	}
	return typed, nil
}

func (k *Kubernetes) newList() (client.ObjectList, error) {
	gvk := k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List")
	switch k.form {
	case untyped:
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		return list, nil
	case metadataOnly:
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		return list, nil
	}
	obj, err := k.config.Client.Scheme().New(gvk)
	if err != nil {
		return nil, fmt.Errorf("make a %s (the scheme needs the list type too): %w", gvk.Kind, err)
	}
	list, ok := obj.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("make a %s: %T has no list metadata", gvk.Kind, obj)
	}
	return list, nil
}

// GetLive implements [LiveReader] by a request to the API server. The object is transformed, like a
// stored one.
func (k *Kubernetes) GetLive(ctx context.Context, key Key) (obj any, exists bool, err error) {
	live, err := k.getLive(ctx, key)
	switch {
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	return live, true, nil
}

func (k *Kubernetes) getLive(ctx context.Context, key Key) (client.Object, error) {
	obj, err := k.newObject()
	if err != nil {
		return nil, err
	}
	if err := k.client.Get(ctx, key, obj); err != nil {
		return nil, fmt.Errorf("get %s %s: %w", k.gvk.Kind, key, err)
	}
	return k.prepare.answer(obj), nil
}

// SelectsLive implements [LiveSelector]. If there is a selector it asks the API server, because
// only the server knows fields, and labels that the transform has dropped.
func (k *Kubernetes) SelectsLive(ctx context.Context, obj any) (bool, error) {
	o, err := k.object(obj)
	if err != nil {
		return false, err
	}
	if !k.looksAt(o.GetNamespace()) || k.config.LabelSelector == nil && k.config.FieldSelector == nil {
		return k.looksAt(o.GetNamespace()), nil
	}
	selected, err := k.selected(ctx, o)
	return selected != nil, err
}

// selected reads an object from the API server, untransformed. It returns nil if the selectors do
// not match.
func (k *Kubernetes) selected(ctx context.Context, o client.Object) (client.Object, error) {
	list, err := k.newList()
	if err != nil {
		return nil, err
	}
	name := fields.OneTermEqualSelector("metadata.name", o.GetName())
	if k.config.FieldSelector != nil {
		name = fields.AndSelectors(k.config.FieldSelector, name)
	}
	err = k.client.List(ctx, list, &client.ListOptions{Namespace: o.GetNamespace(), LabelSelector: k.config.LabelSelector, FieldSelector: name})
	if err != nil {
		return nil, fmt.Errorf("select %s %s: %w", k.gvk.Kind, client.ObjectKeyFromObject(o), err)
	}
	var found client.Object
	err = meta.EachListItem(list, func(item runtime.Object) error {
		found = item.(client.Object)
		return nil
	})
	return found, err
}

// Convert returns an object of the source's kind, as received from a server, in the form in which
// the source returns objects, and transformed like them. It is for objects that the source does not
// hold, such as the answer to a dry run. received belongs to the source afterwards.
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

// Selects reports whether the namespaces and the label selector of the source match an object of
// its kind. Field selectors are ignored: only the server can evaluate them.
func (k *Kubernetes) Selects(obj client.Object) bool {
	if !k.looksAt(obj.GetNamespace()) {
		return false
	}
	return k.config.LabelSelector == nil || k.config.LabelSelector.Matches(labels.Set(obj.GetLabels()))
}
