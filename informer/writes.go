package informer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// defaultWait is the default of [Writes].Wait.
const defaultWait = 5 * time.Second

// Writes makes the sources of a process aware of its writes. The API server's answer to a write
// goes into the stores of the sources of its kind before the caller gets it, and its event is
// recognised as an own one.
//
//	writes := &informer.Writes{}
//	restConfig.Wrap(writes.Transport)
//	c, err := client.NewWithWatch(restConfig, client.Options{})
//	source, err := informer.NewKubernetes(informer.KubernetesConfig{Client: writes.Client(c), …})
//
// operator.Dependencies sets this up. The context of a request has its author ([AuthorOf]). A
// source reads the object once more if it stores another form or API version than the answer has,
// or selects by fields that only the API server knows. If a resource version is not a number, the
// write waits up to Wait until the watch shows it, and logs if it does not. Deletions of
// collections, subresources with objects of their own, and requests without an answer are not
// recognised: they count as another client's writes.
//
// Neither is a write that may have changed nothing: an API server answers it with the existing
// version, which another client may have made. A write is recognised as the author of its version
// if it created the object, if it was sent with a resource version (in metadata, in an operation of
// a JSON patch on /metadata/resourceVersion, or as a precondition) and is answered with another
// one, or if it removed the object. Any other write is also visible to reads at once, but wakes its
// author once. To avoid that, send the version that was read: client.MergeFromWithOptimisticLock,
// metadata.resourceVersion in an applied object, client.Preconditions. All ready-made resources do.
//
// All methods are safe for concurrent use.
type Writes struct {
	// Wait is how long a write waits for the watch to show it if its answer can't be stored. It
	// must not be changed once there is a transport. Default: 5 seconds.
	Wait time.Duration

	mu      sync.RWMutex
	sources map[schema.GroupResource][]*Kubernetes
}

// Client returns a client that behaves like c. Sources made with it are aware of the writes.
func (w *Writes) Client(c client.WithWatch) client.WithWatch { return trackedClient{c, w} }

type trackedClient struct {
	client.WithWatch

	writes *Writes
}

// trackWrites registers the source for writes, once its kind is defined.
func (k *Kubernetes) trackWrites() {
	tracked, ok := k.config.Client.(trackedClient)
	if !ok || k.tracked.Load() {
		return
	}
	mapping, err := k.config.Client.RESTMapper().RESTMapping(k.gvk.GroupKind(), k.gvk.Version)
	if err != nil || k.tracked.Swap(true) {
		return // An undefined kind can't be listed either.
	}
	w, resource := tracked.writes, mapping.Resource.GroupResource()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sources == nil {
		w.sources = map[schema.GroupResource][]*Kubernetes{}
	}
	w.sources[resource] = append(w.sources[resource], k)
}

// of returns the running sources that may hold an object.
func (w *Writes) of(resource schema.GroupResource, namespace string) (running []*Kubernetes) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, k := range w.sources[resource] {
		if k.sharedRun.running() && k.looksAt(namespace) {
			running = append(running, k)
		}
	}
	return running
}

// Transport returns a transport that reports its writes to the sources.
func (w *Writes) Transport(next http.RoundTripper) http.RoundTripper {
	return &writesTransport{writes: w, wait: cmp.Or(w.Wait, defaultWait), next: next}
}

type writesTransport struct {
	writes *Writes
	wait   time.Duration
	next   http.RoundTripper
}

// WrappedRoundTripper lets others find the transport below, for example to close its connections.
func (t *writesTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// CloseIdleConnections is what http.Client.CloseIdleConnections looks for.
func (t *writesTransport) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(t.next) }

// RoundTrip implements http.RoundTripper.
func (t *writesTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	target, ok := targetOf(r)
	if !ok || isDryRun(r) {
		return t.next.RoundTrip(r)
	}
	sources := t.writes.of(target.resource, target.key.Namespace)
	if len(sources) == 0 {
		return t.next.RoundTrip(r)
	}
	author := AuthorOf(r.Context())
	begun := make([]*Write, len(sources))
	// This also runs when a transport below panics: a write that never ends would hide every later
	// change from its author.
	defer func() {
		for _, write := range begun {
			if write != nil {
				write.Unknown() // Unless it has ended.
			}
		}
	}()
	if target.key.Name != "" {
		for i, k := range sources {
			begun[i] = k.feed.Begin(target.key, author)
		}
	}
	response, err := t.next.RoundTrip(r)
	if err != nil || response.StatusCode < 200 || response.StatusCode > 299 {
		return response, err
	}
	answer, err := received(response)
	if err != nil {
		return response, nil // The reader of the response finds the same error.
	}
	base := baseOf(r, response)
	for i, k := range sources {
		obj, err := k.decode(answer)
		o, isObject := obj.(client.Object)
		if begun[i] == nil {
			if err != nil || !isObject {
				continue
			}
			begun[i] = k.feed.Begin(client.ObjectKeyFromObject(o), author) // The API server has chosen the name.
		}
		status, isStatus := obj.(*metav1.Status)
		switch {
		case err == nil && isObject && client.ObjectKeyFromObject(o) == begun[i].key:
			k.recordWrite(r.Context(), begun[i], r.Method, o, base, t.wait)
		case err == nil && isStatus && r.Method == http.MethodDelete && status.Details != nil && status.Details.UID != "":
			begun[i].Gone(status.Details.UID)
		}
	}
	return response, nil
}

// looksAt reports whether the source holds objects of a namespace.
func (k *Kubernetes) looksAt(namespace string) bool {
	return len(k.config.Namespaces) == 0 || slices.Contains(k.config.Namespaces, namespace)
}

// recordWrite ends a write that was answered with an object. The object belongs to the source afterwards.
func (k *Kubernetes) recordWrite(ctx context.Context, w *Write, method string, o client.Object, base string, limit time.Duration) {
	version := o.GetResourceVersion()
	if k.isGone(method, o) {
		w.Gone(o.GetUID())
		return
	}
	_, err := resourceversion.CompareResourceVersion(version, version)
	if err != nil {
		err = fmt.Errorf("its resource version %q is not a number", version)
	}
	stored, selected := k.inForm(o), k.Selects(o) && k.selectsName(o)
	if err == nil && (stored == nil || k.selectsByFields()) {
		stored, err = k.selected(ctx, o)
		selected = stored != nil
		if !selected {
			stored, base = o, "" // A later change of another client may have excluded it.
		} else if stored.GetResourceVersion() != version {
			base = ""
		}
	}
	if err != nil {
		k.await(ctx, w, version, err, limit)
		w.Shown(version, base)
		return
	}
	item, _ := k.prepare.item(stored)
	w.Stored(item, base, selected)
}

// metadataCodecs decode only the metadata of objects, of any kind.
var metadataCodecs = sync.OnceValue(func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	utilruntime.Must(metav1.AddMetaToScheme(scheme))
	return serializer.NewCodecFactory(scheme)
})

// decode decodes an answer of an API server.
func (k *Kubernetes) decode(answer []byte) (runtime.Object, error) {
	// Only kinds with a Go type are encoded in formats other than JSON.
	if !bytes.HasPrefix(answer, []byte("{")) || k.form == typed {
		obj, _, err := k.codecs().UniversalDeserializer().Decode(answer, nil, nil)
		// A scheme need not have metadata-only types, which clients request by themselves.
		if runtime.IsNotRegisteredError(err) {
			obj, _, err = metadataCodecs().UniversalDeserializer().Decode(answer, nil, nil)
		}
		return obj, err
	}
	obj, kind, err := unstructured.UnstructuredJSONScheme.Decode(answer, nil, nil)
	if u, ok := obj.(*unstructured.Unstructured); ok && kind.Group == "" && kind.Kind == "Status" {
		status := &metav1.Status{}
		return status, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, status)
	}
	return obj, err
}

// isGone reports whether the answer to a write means that the object no longer exists.
func (k *Kubernetes) isGone(method string, o client.Object) bool {
	if k.gvk.Group == "" && k.gvk.Kind == "Namespace" {
		return false // It has finalizers in its spec too.
	}
	if o.GetDeletionTimestamp() == nil {
		return method == http.MethodDelete
	}
	grace := o.GetDeletionGracePeriodSeconds()
	return len(o.GetFinalizers()) == 0 && (grace == nil || *grace == 0)
}

// inForm returns an object in the form in which the source stores it, or nil if the answer can't be
// converted.
func (k *Kubernetes) inForm(o client.Object) client.Object {
	_, isPartial := o.(*metav1.PartialObjectMetadata)
	_, isUntyped := o.(*unstructured.Unstructured)
	switch {
	case k.form == metadataOnly:
		partial := meta.AsPartialObjectMetadata(o)
		partial.SetGroupVersionKind(k.gvk)
		return partial
	case isPartial, o.GetObjectKind().GroupVersionKind() != k.gvk, isUntyped != (k.form == untyped):
		return nil
	}
	return o
}

// selectsName reports whether the field selector matches the name of an object.
func (k *Kubernetes) selectsName(o client.Object) bool {
	own := fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()}
	return k.config.FieldSelector == nil || k.selectsByFields() || k.config.FieldSelector.Matches(own)
}

// selectsByFields reports whether the source has a field selector that only the API server can
// evaluate.
func (k *Kubernetes) selectsByFields() bool {
	return k.config.FieldSelector != nil && slices.ContainsFunc(k.config.FieldSelector.Requirements(), func(r fields.Requirement) bool {
		return r.Field != "metadata.name" && r.Field != "metadata.namespace"
	})
}

// await waits until the watch shows the written version or a later one.
func (k *Kubernetes) await(ctx context.Context, w *Write, version string, reason error, limit time.Duration) {
	before, _ := k.versionOf(w.key)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(context.Context) (bool, error) {
		now, exists := k.versionOf(w.key)
		return exists && now == version || now != before, nil
	})
	if err != nil && !errors.Is(context.Cause(ctx), context.Canceled) {
		k.config.Logger.With("source", k.Name()).Errorf(ctx, reason, "%s was written and the watch has not shown it after %s: what is read may be older", w.key, limit)
	}
}

func (k *Kubernetes) versionOf(key Key) (version string, exists bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	e, exists := k.store.entries[key]
	return e.version, exists
}
