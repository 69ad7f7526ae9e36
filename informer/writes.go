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

	"github.com/operatorkit/operatorkit/internal/plural"
)

// DefaultWait is the default of [Writes].Wait.
const DefaultWait = 5 * time.Second

// Writes has the sources of a process know what it writes: the answer of an API server to a write goes into the stores of the sources
// of its kind before whoever wrote gets it, and its event is known to be an own one.
//
//	writes := &informer.Writes{}
//	restConfig.Wrap(writes.Transport)
//	c, err := client.NewWithWatch(restConfig, client.Options{})
//	source, err := informer.NewKubernetes(informer.KubernetesConfig{Client: writes.Client(c), …})
//
// Those of operator.Dependencies do that. Who writes is told by the context of the request ([AuthorOf]). If the answer has another form or
// API version than the objects of a source, the object is read once more for that source. If its resource version is not a number, or
// somebody has changed it meanwhile, the write waits until the watch shows it, for as long as Wait says; when that is not enough it is
// logged. What is not known by the answer counts as written by somebody else: a collection that is deleted, subresources with objects of
// their own, and what has no answer.
//
// So does a write that may have changed nothing. An API server answers it with the version that is there, as it does a write that has made one,
// and nothing in the answer tells the two apart: managedFields have whole seconds, names that several programs may share, and not what was taken
// away. If somebody else has made that version, and the watch has not shown it yet, it must not be passed over. What has made its version for sure
// is a creation; what was sent with a resource version, also as the precondition of a deletion or the test of a JSON patch, and is answered with
// another one; a JSON patch that removes something, appends to a list, or changes what it has tested; and a deletion after which the object is gone.
// Whatever else is answered with a version that was not shown yet, such as a merge patch or an apply without a resource version, is
// read at once like any other write, and wakes who wrote it, once. Who wants no echo of it sends the version that was read:
// client.MergeFromWithOptimisticLock, metadata.resourceVersion in what is applied, client.Preconditions. All ready-made resources do.
//
// All methods are safe for concurrent use.
type Writes struct {
	// Wait is how long a write waits at most for the watch to show it, where its answer can't be stored. It must not be changed once there
	// is a transport. Default: 5 seconds.
	Wait time.Duration

	mu      sync.RWMutex
	sources map[schema.GroupResource][]*Kubernetes
}

// Client returns a client that does what c does. Sources that are made with it are those that know of the writes.
func (w *Writes) Client(c client.WithWatch) client.WithWatch { return trackedClient{c, w} }

type trackedClient struct {
	client.WithWatch

	writes *Writes
}

// add files a source under the resource that its kind has by now, and tells whether that is known: before the kind is defined, it is a
// guess.
func (w *Writes) add(k *Kubernetes) (known bool) {
	resource := plural.Of(k.gvk)
	if mapping, err := k.config.Client.RESTMapper().RESTMapping(k.gvk.GroupKind(), k.gvk.Version); err == nil {
		resource, known = mapping.Resource, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sources == nil {
		w.sources = map[schema.GroupResource][]*Kubernetes{}
	}
	for former, sources := range w.sources {
		w.sources[former] = slices.DeleteFunc(sources, func(other *Kubernetes) bool { return other == k })
	}
	w.sources[resource.GroupResource()] = append(w.sources[resource.GroupResource()], k)
	return known
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

// Transport returns a transport that has the sources know what is written through it.
func (w *Writes) Transport(next http.RoundTripper) http.RoundTripper {
	return &writesTransport{writes: w, wait: cmp.Or(w.Wait, DefaultWait), next: next}
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
	written, ok := targetOf(r)
	if !ok || isDryRun(r) {
		return t.next.RoundTrip(r)
	}
	sources := t.writes.of(written.resource, written.key.Namespace)
	if len(sources) == 0 {
		return t.next.RoundTrip(r)
	}
	if written.key.Name == "" {
		written.readName(r)
	}
	author := AuthorOf(r.Context())
	begun := make([]*Write, len(sources))
	// Also when what is below panics: a write that never ends would keep every later change from its author.
	defer func() {
		for _, write := range begun {
			if write != nil {
				write.Unknown()
			}
		}
	}()
	if written.key.Name != "" {
		for i, k := range sources {
			begun[i] = k.feed.Begin(written.key, author)
		}
	}
	response, answer, err := t.answer(r)
	if answer == nil {
		return response, err
	}
	base, answers := baseOf(r, response), decoded(sources, answer)
	for i, k := range sources {
		if begun[i] == nil {
			begun[i] = k.feed.Begin(keyOf(answers[i]), author)
		}
		k.wrote(r.Context(), begun[i], r.Method, answers[i], base, t.wait)
		begun[i] = nil
	}
	return response, err
}

// decoded returns for each source what an API server has answered, or nil if it can't be decoded. What sources decode alike is decoded once;
// each gets an object of its own.
func decoded(sources []*Kubernetes, answer []byte) []runtime.Object {
	objs := make([]runtime.Object, len(sources))
	for i, k := range sources {
		alike := slices.IndexFunc(sources[:i], k.decodesLike)
		if alike >= 0 && objs[alike] != nil {
			objs[i] = objs[alike].DeepCopyObject()
			continue
		}
		if obj, err := k.decode(answer); err == nil {
			objs[i] = obj
		}
	}
	return objs
}

// answer sends a request, and reads the answer unless that is a refusal.
func (t *writesTransport) answer(r *http.Request) (*http.Response, []byte, error) {
	response, err := t.next.RoundTrip(r)
	if err != nil || response.StatusCode < 200 || response.StatusCode > 299 {
		return response, nil, err
	}
	content, err := received(response)
	if err != nil {
		return response, nil, nil
	}
	return response, content, nil
}

// showsAll tells whether there is no object in the namespaces of the source that it leaves out.
func (k *Kubernetes) showsAll() bool {
	return k.config.LabelSelector == nil && k.config.FieldSelector == nil
}

// looksAt tells whether the source holds objects of a namespace.
func (k *Kubernetes) looksAt(namespace string) bool {
	return len(k.config.Namespaces) == 0 || slices.Contains(k.config.Namespaces, namespace)
}

// wrote ends a write with the answer to it, which is nil if it can't be decoded, or when the watch has shown it, for which it waits that long.
// The answer belongs to the source afterwards.
func (k *Kubernetes) wrote(ctx context.Context, w *Write, method string, obj runtime.Object, base string, limit time.Duration) {
	var status *metav1.Status
	if s, ok := obj.(*metav1.Status); ok {
		status = s
	}
	o, ok := obj.(client.Object)
	switch {
	case status != nil && method == http.MethodDelete && status.Details != nil && status.Details.UID != "":
		w.Gone(status.Details.UID, k.showsAll())
		return
	case !ok || client.ObjectKeyFromObject(o) != w.key:
		w.Unknown()
		return
	case k.isGone(method, o):
		w.Gone(o.GetUID(), k.showsAll())
		return
	}
	stored, err := k.inForm(o)
	if err != nil {
		if live, readErr := k.getLive(ctx, w.key); readErr == nil && live.GetUID() == o.GetUID() && live.GetResourceVersion() == o.GetResourceVersion() {
			stored, err = live, nil
		}
	}
	if err == nil && !k.comparable(o) {
		err = fmt.Errorf("its resource version %q is not a number", o.GetResourceVersion())
	}
	if err != nil {
		k.await(ctx, w, o, base, err, limit)
		return
	}
	selected, err := k.selectsWritten(ctx, o)
	if err != nil {
		k.await(ctx, w, o, base, err, limit)
		return
	}
	item, _ := k.prepare.item(stored)
	w.Stored(item, base, selected)
}

// keyOf returns the key of an object that was created and named by the API server.
func keyOf(answer runtime.Object) Key {
	if named, ok := answer.(client.Object); ok {
		return client.ObjectKeyFromObject(named)
	}
	return Key{}
}

// decodesLike tells whether another source gets the same of every answer.
func (k *Kubernetes) decodesLike(other *Kubernetes) bool {
	return (k.form == typed) == (other.form == typed) && k.config.Client.Scheme() == other.config.Client.Scheme()
}

// metadataCodecs decode the metadata of objects alone, of any kind.
var metadataCodecs = sync.OnceValue(func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	utilruntime.Must(metav1.AddMetaToScheme(scheme))
	return serializer.NewCodecFactory(scheme)
})

// decode returns what an API server has answered.
func (k *Kubernetes) decode(answer []byte) (runtime.Object, error) {
	// Only what is known as a Go type is encoded in another way than JSON.
	if !bytes.HasPrefix(answer, []byte("{")) || k.form == typed {
		obj, _, err := k.codecs().UniversalDeserializer().Decode(answer, nil, nil)
		if runtime.IsNotRegisteredError(err) { // Schemes need not have the form of metadata alone, which clients ask for by themselves.
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

// isGone tells whether the answer to a write says that the object is gone.
func (k *Kubernetes) isGone(method string, o client.Object) bool {
	if k.gvk.Group == "" && k.gvk.Kind == "Namespace" {
		return false // It has finalizers of another sort.
	}
	if o.GetDeletionTimestamp() == nil {
		return method == http.MethodDelete
	}
	grace := o.GetDeletionGracePeriodSeconds()
	return len(o.GetFinalizers()) == 0 && (grace == nil || *grace == 0)
}

// inForm returns an object as the source stores it, or an error if it can't be had like that.
func (k *Kubernetes) inForm(o client.Object) (client.Object, error) {
	if partial, ok := o.(*metav1.PartialObjectMetadata); ok && k.form != metadataOnly {
		return nil, fmt.Errorf("the answer is metadata of %s alone", partial.Kind)
	}
	if k.form == metadataOnly {
		partial := meta.AsPartialObjectMetadata(o)
		partial.SetGroupVersionKind(k.gvk)
		return partial, nil
	}
	if gvk := o.GetObjectKind().GroupVersionKind(); gvk != k.gvk {
		return nil, fmt.Errorf("the answer is of %s", gvk)
	}
	if _, ok := o.(*unstructured.Unstructured); !ok && k.form == untyped {
		return nil, fmt.Errorf("the answer is a %T", o)
	}
	return o, nil
}

func (k *Kubernetes) comparable(o client.Object) bool {
	_, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), o.GetResourceVersion())
	return err == nil
}

// selectsWritten tells whether the source selects an object as it was written.
func (k *Kubernetes) selectsWritten(ctx context.Context, o client.Object) (bool, error) {
	if k.config.FieldSelector == nil || k.config.FieldSelector.Empty() {
		return k.Selects(o), nil
	}
	own := fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()}
	for _, requirement := range k.config.FieldSelector.Requirements() {
		if _, known := own[requirement.Field]; !known {
			return k.selectsLiveAsWritten(ctx, o)
		}
	}
	return k.config.FieldSelector.Matches(own) && k.Selects(o), nil
}

// selectsLiveAsWritten asks whether the source selects an object, and is an error if somebody has changed it since it was written, of whom
// the answer may be.
func (k *Kubernetes) selectsLiveAsWritten(ctx context.Context, o client.Object) (bool, error) {
	selected, err := k.SelectsLive(ctx, o)
	if err != nil {
		return false, err
	}
	if _, held := k.versionOf(client.ObjectKeyFromObject(o)); !held && !selected {
		return false, nil // There is nothing to put right, and the watch may never show it.
	}
	live, err := k.getLive(ctx, client.ObjectKeyFromObject(o))
	switch {
	case err != nil:
		return false, err
	case live.GetUID() != o.GetUID() || live.GetResourceVersion() != o.GetResourceVersion():
		return false, errors.New("it has changed since")
	}
	return selected, nil
}

// await waits until the watch shows what was written, or something else that came later.
func (k *Kubernetes) await(ctx context.Context, w *Write, o client.Object, base string, reason error, limit time.Duration) {
	before, _ := k.versionOf(w.key)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(context.Context) (bool, error) {
		now, exists := k.versionOf(w.key)
		return exists && now == o.GetResourceVersion() || now != before, nil
	})
	if err != nil && !errors.Is(context.Cause(ctx), context.Canceled) {
		k.config.Logger.With("source", k.Name()).Errorf(ctx, reason, "%s was written and the watch has not shown it after %s: what is read may be older", w.key, limit)
	}
	if !(written{base, o.GetResourceVersion()}).made() {
		w.Unknown()
		return
	}
	w.Shown(o.GetResourceVersion())
}

func (k *Kubernetes) versionOf(key Key) (version string, exists bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	e, exists := k.store.entries[key]
	return e.version, exists
}
