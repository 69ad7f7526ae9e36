package informer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// ErrNotSynced is in the error chain of a [Reader] if its source has not listed everything yet.
var ErrNotSynced = errors.New("the source is not synced")

// Reader reads from sources in place of the API server. It is a client.Reader that makes no
// requests. Its results may be older than the state of the API server, so writes must include the
// resource version or UID they are for.
//
// Objects are read in the form in which their source stores them (typed, unstructured, metadata
// only), and as metav1.PartialObjectMetadata from every source. They carry their apiVersion and
// kind. They are the caller's own unless client.UnsafeDisableDeepCopy is given: then they share
// everything with the store and with each other, and must not be changed.
//
// A request that can't be answered in full is an error: a kind without a source or with two, a
// source that is not synced ([ErrNotSynced]), a namespace that the source does not watch, another
// form of the objects, and options that only an API server supports. The context is used only for
// its secretscontext, which gets the values of Secrets. All methods are safe for concurrent use.
type Reader struct {
	scheme  *runtime.Scheme
	sources map[schema.GroupVersionKind][]*Kubernetes
}

var _ client.Reader = (*Reader)(nil)

// NewReader returns a reader of the sources, and adds an index by namespace to each. From then on a
// source holds everything that it selects ([Kubernetes.HoldAll]). The scheme knows the kinds of
// typed objects. There must be one source for each kind. It should have no selectors: the reader
// does not see the objects that they exclude.
func NewReader(scheme *runtime.Scheme, sources ...*Kubernetes) *Reader {
	r := &Reader{scheme: scheme, sources: make(map[schema.GroupVersionKind][]*Kubernetes, len(sources))}
	for _, s := range sources {
		if of := r.sources[s.gvk]; !slices.Contains(of, s) {
			r.sources[s.gvk] = append(of, s)
		}
		s.HoldAll()
		s.addIndex(namespaceIndex, namespaceOf)
	}
	return r
}

// Get implements client.Reader. A missing object is an error for which apierrors.IsNotFound holds.
// The key of a kind without namespaces has none.
func (r *Reader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	options := (&client.GetOptions{}).ApplyOptions(opts)
	source, err := r.source(obj, key.Namespace)
	if err == nil && options.Raw != nil {
		err = unsupported("raw options")
	}
	if err != nil {
		return fmt.Errorf("get %s %s from a source: %w", kindAsked(obj), key, err)
	}
	held, exists := source.stored(key)
	if !exists {
		resource, _ := meta.UnsafeGuessKindToResource(source.gvk)
		return apierrors.NewNotFound(resource.GroupResource(), key.Name)
	}
	_, own := held.(*packed)
	stored := whole(held).(client.Object)
	found := reflect.ValueOf(source.present(stored, formOf(obj), own || is(options.UnsafeDisableDeepCopy)))
	target := reflect.ValueOf(obj)
	if found.Type() != target.Type() {
		return fmt.Errorf("get %s %s from a source: source %q holds it as a %s, not as a %s",
			source.gvk.Kind, key, source.Name(), found.Type(), target.Type())
	}
	target.Elem().Set(found.Elem())
	MarkSecrets(ctx, obj)
	return nil
}

// List implements client.Reader. It supports namespaces and label selectors. It returns everything
// at once, ordered by namespace and name. The list has no resource version.
//
// The cost of listing one namespace depends on the number of objects in that namespace only.
// Without a namespace, a source that watches some namespaces returns the objects of all of these.
func (r *Reader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	source, err := r.source(list, options.Namespace)
	if err == nil {
		err = checkOptions(options)
	}
	if err == nil {
		err = source.list(list, options)
	}
	if err != nil {
		return fmt.Errorf("list %s from a source: %w", kindAsked(list), err)
	}
	MarkSecrets(ctx, list)
	return nil
}

func (k *Kubernetes) list(list client.ObjectList, options *client.ListOptions) error {
	items := k.itemsOf(options.Namespace)
	slices.SortFunc(items, func(a, b Item) int {
		return cmp.Or(cmp.Compare(a.Key.Namespace, b.Key.Namespace), cmp.Compare(a.Key.Name, b.Key.Name))
	})
	form, share := formOf(list), is(options.UnsafeDisableDeepCopy)
	found := make([]runtime.Object, 0, len(items))
	for _, item := range items {
		stored := whole(item.Object).(client.Object)
		if options.LabelSelector == nil || options.LabelSelector.Matches(labels.Set(stored.GetLabels())) {
			found = append(found, k.present(stored, form, share || stored != item.Object))
		}
	}
	return meta.SetList(list, found)
}

// source returns the source that can answer for a namespace, in the form of obj, which may be a
// list.
func (r *Reader) source(obj runtime.Object, namespace string) (*Kubernetes, error) {
	gvk, err := apiutil.GVKForObject(obj, r.scheme)
	if err != nil {
		return nil, err
	}
	if meta.IsListType(obj) {
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	}
	sources := r.sources[gvk]
	switch len(sources) {
	case 0:
		return nil, fmt.Errorf("the reader has no source of %s: give one to NewReader", gvk)
	case 1:
	default:
		return nil, fmt.Errorf("the reader has %d sources of %s, and can't tell which one to ask: give NewReader one", len(sources), gvk)
	}
	source := sources[0]
	if form := formOf(obj); form != source.form && form != metadataOnly {
		return nil, fmt.Errorf("source %q holds the objects in the form %q, not %q: ask for that, or for their metadata", source.Name(), source.form, form)
	}
	if of := source.config.Namespaces; namespace != "" && len(of) > 0 && !slices.Contains(of, namespace) {
		return nil, fmt.Errorf("source %q does not watch namespace %s, but %s", source.Name(), namespace, strings.Join(of, ", "))
	}
	if status := source.Status(); !status.Synced {
		return nil, notSynced(source, status)
	}
	return source, nil
}

func notSynced(source *Kubernetes, status Status) error {
	err := fmt.Errorf("%w: %q has not listed everything yet: wait for WaitForSync", ErrNotSynced, source.Name())
	if status.LastError != nil {
		return fmt.Errorf("%w: %w", err, status.LastError)
	}
	return err
}

// present returns a stored object in a form: a copy, unless share is set.
func (k *Kubernetes) present(stored client.Object, form representation, share bool) client.Object {
	if form == metadataOnly && k.form != metadataOnly {
		partial := meta.AsPartialObjectMetadata(stored)
		partial.SetGroupVersionKind(k.gvk)
		stored = partial
	}
	if share {
		return stored
	}
	return stored.DeepCopyObject().(client.Object)
}

// formOf returns the form of an object or a list.
func formOf(obj runtime.Object) representation {
	switch obj.(type) {
	case *unstructured.Unstructured, *unstructured.UnstructuredList:
		return untyped
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return metadataOnly
	}
	return typed
}

// String returns the usual name of the form.
func (r representation) String() string {
	return [...]string{typed: "typed", untyped: "unstructured", metadataOnly: "metadata only"}[r]
}

// kindAsked returns the kind of obj, or its Go type if the kind is not set.
func kindAsked(obj runtime.Object) string {
	if kind := obj.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", obj), "*")
}

// checkOptions refuses options that the reader does not support: an answer that looks complete must
// be complete.
func checkOptions(o *client.ListOptions) error {
	switch {
	case o.FieldSelector != nil && !o.FieldSelector.Empty():
		return unsupported("field selectors")
	case o.Limit > 0 || o.Continue != "":
		return unsupported("Limit and Continue")
	case o.Raw != nil:
		return unsupported("raw options")
	}
	return nil
}

func unsupported(what string) error {
	return fmt.Errorf("%s are not supported: leave them out, or ask the API server", what)
}

func is(option *bool) bool { return option != nil && *option }

// namespaceIndex is the index that a Reader adds to its sources.
const namespaceIndex = "operatorkit.io/namespace"

// namespaceOf files objects under their namespaces. Kinds without namespaces are not filed.
func namespaceOf(obj any) []string {
	if o, ok := obj.(client.Object); ok && o.GetNamespace() != "" {
		return []string{o.GetNamespace()}
	}
	return nil
}

// addIndex adds an index of the stored objects, unless it exists.
func (h *Hub) addIndex(name string, values IndexFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, exists := h.store.indexes[name]; exists {
		return
	}
	ix := &index{values: values, keys: map[string]keySet{}}
	for key, e := range h.store.entries {
		for _, value := range values(whole(e.object)) {
			ix.keys[value] = ix.keys[value].with(key)
		}
	}
	h.store.indexes[name] = ix
}

// itemsOf returns the objects of a namespace in stored form, or all of them for "".
func (h *Hub) itemsOf(namespace string) []Item {
	if namespace == "" {
		return h.items()
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	items, _ := h.store.byIndex(namespaceIndex, namespace) // NewReader has added it
	return items
}

// stored returns an object in stored form.
func (h *Hub) stored(key Key) (held any, exists bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	e, exists := h.store.entries[key]
	return e.object, exists
}
