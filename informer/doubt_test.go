package informer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/crdclient"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// TestR11AnAnswerThatSomebodyElseMayHaveMadeWakes writes in each way while the watch is held. A
// write that may not have made the version in its answer is a reason to reconcile.
func TestR11AnAnswerThatSomebodyElseMayHaveMadeWakes(t *testing.T) {
	type write func(ctx context.Context, c client.Client, seen *policyv1.PodDisruptionBudget) error
	patch := func(form types.PatchType, document string) write {
		return func(ctx context.Context, c client.Client, seen *policyv1.PodDisruptionBudget) error {
			document := strings.NewReplacer("UID", string(seen.UID), "VERSION", seen.ResourceVersion, "NAME", seen.Name).Replace(document)
			return c.Patch(ctx, seen, client.RawPatch(form, []byte(document)), client.FieldOwner("test"))
		}
	}
	merge := func(document string) write { return patch(types.MergePatchType, document) }
	ops := func(document string) write { return patch(types.JSONPatchType, document) }
	apply := func(metadata string) write {
		return patch(types.ApplyPatchType, fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"NAME",%s}}`, metadata))
	}
	tests := map[string]struct {
		write write
		// foreign is true if another client has made a change that the watch does not show yet.
		foreign bool
		wakes   int64
	}{
		"a merge patch that changes nothing":              {write: merge(`{"metadata":{"uid":"UID"}}`), foreign: true, wakes: 1},
		"a merge patch of a version, likewise":            {write: merge(`{"metadata":{"resourceVersion":"VERSION"}}`), foreign: true, wakes: 1},
		"a JSON patch that changes nothing":               {write: ops(`[{"op":"add","path":"/metadata/labels/foreign","value":"1"}]`), foreign: true, wakes: 1},
		"a JSON patch of a version, likewise":             {write: ops(`[{"op":"test","path":"/metadata/resourceVersion","value":"VERSION"}]`), foreign: true, wakes: 1},
		"a merge patch of no version":                     {write: merge(`{"metadata":{"labels":{"own":"1"}}}`), wakes: 1},
		"an apply of no version":                          {write: apply(`"labels":{"own":"1"}`), wakes: 1},
		"a JSON patch of no version":                      {write: ops(`[{"op":"remove","path":"/metadata/finalizers/0"}]`), wakes: 1},
		"a deletion of no version that is held up":        {write: removal(false), wakes: 1},
		"a merge patch of a version":                      {write: merge(`{"metadata":{"resourceVersion":"VERSION","labels":{"own":"1"}}}`)},
		"an apply of a version":                           {write: apply(`"resourceVersion":"VERSION","labels":{"own":"1"}`)},
		"a deletion of a version that is held up":         {write: removal(true)},
		"a JSON patch of a version":                       {write: ops(`[{"op":"test","path":"/metadata/resourceVersion","value":"VERSION"},{"op":"add","path":"/metadata/labels","value":{"own":"1"}}]`)},
		"a JSON patch to a version":                       {write: ops(`[{"op":"add","path":"/metadata/resourceVersion","value":"VERSION"},{"op":"add","path":"/metadata/labels","value":{"own":"1"}}]`)},
		"a merge patch of the version of somebody else's": {write: merge(`{"metadata":{"resourceVersion":"VERSION","labels":{"own":"1"}}}`), foreign: true, wakes: 1},
	}

	server := newRealServer(t)
	namespace := server.instance.Namespace(t)
	source := follow(t, informer.KubernetesConfig{
		Client: server.reader, Object: &policyv1.PodDisruptionBudget{}, Namespaces: []string{namespace}, Logger: server.logger,
	})
	author := &informer.Author{Framework: "f", Key: informer.Key{Name: "primary"}}
	var woken atomic.Int64
	source.Subscribe(func(e informer.Event) {
		if e.Key.Name != markerName {
			e.Wake("f", author.Key, func() { woken.Add(1) })
		}
	})
	catchUp := func() {
		t.Helper()
		mark := server.mark(t, namespace)
		operatortest.Eventually(t, "the source has caught up", func() error {
			obj, exists, err := source.Get(client.ObjectKeyFromObject(mark))
			if err == nil && (!exists || numberOf(obj.(client.Object)) < numberOf(mark)) {
				err = errors.New("it shows an older one")
			}
			return err
		})
	}
	n := 0
	for name, tt := range tests {
		n++
		obj := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: fmt.Sprint("x-", n), Finalizers: []string{"test.operatorkit.io/held"},
		}}
		t.Run(name, func(t *testing.T) {
			if err := server.user.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
			catchUp()
			server.lag.Hold(nil)
			defer server.lag.Release()
			if tt.foreign {
				if err := merge(`{"metadata":{"labels":{"foreign":"1"}}}`)(t.Context(), server.user, obj); err != nil {
					t.Fatal(err)
				}
			}
			woken.Store(0)
			if err := tt.write(context.WithValue(t.Context(), informer.AuthorKey, author), server.operator, obj); err != nil {
				t.Fatal(err)
			}
			live := server.live(t, client.ObjectKeyFromObject(obj))
			stored, exists, err := source.Get(client.ObjectKeyFromObject(obj))
			if err != nil || !exists || stored.(client.Object).GetResourceVersion() != live.ResourceVersion {
				t.Errorf("the source has %v, %v, want version %s", stored, err, live.ResourceVersion)
			}
			server.lag.Release()
			catchUp()
			if got := woken.Load(); got != tt.wakes {
				t.Errorf("who wrote was woken %d times, want %d", got, tt.wakes)
			}
		})
	}
}

func TestR11EachSourceOfAKindReadsWhatIsWrittenInItsOwnForm(t *testing.T) {
	server := newRealServer(t)
	config := informer.KubernetesConfig{
		Client: server.reader, Object: &policyv1.PodDisruptionBudget{}, Namespaces: []string{server.instance.Namespace(t)}, Logger: server.logger,
	}
	trimming := config
	trimming.Transform = func(obj any) (any, error) {
		delete(obj.(client.Object).GetLabels(), "large")
		return obj, nil
	}
	metadata := config
	metadata.MetadataOnly = true
	sources := []*follower{follow(t, trimming), follow(t, config), follow(t, metadata), follow(t, trimming)}
	server.lag.Hold(nil)
	defer server.lag.Release()
	obj := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{
		Namespace: config.Namespaces[0], GenerateName: "x-", Labels: map[string]string{"large": "1", "small": "1"},
	}}
	if err := server.operator.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{1, 2, 2, 1} {
		stored, exists, err := sources[i].Get(client.ObjectKeyFromObject(obj))
		if err != nil || !exists || len(stored.(client.Object).GetLabels()) != want {
			t.Errorf("source %d has %v, %v, want %d labels", i, stored, err, want)
		}
	}
}

// Sources may be made before the definitions of their kinds are applied, when the plural of the
// kind Shelf is not known yet.
func TestR11AWriteOfAKindThatWasDefinedLaterIsReadAtOnce(t *testing.T) {
	server := newRealServer(t)
	kind := schema.GroupVersionKind{Group: "later.example.com", Version: "v1", Kind: "Shelf"}
	shelf := func(name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kind)
		u.SetName(name)
		return u
	}
	source, err := informer.NewKubernetes(informer.KubernetesConfig{Client: server.reader, Object: shelf(""), Logger: server.logger})
	if err != nil {
		t.Fatal(err)
	}
	define(t, server, kind, "shelves")
	followSource(t, source)

	server.lag.Hold(nil)
	defer server.lag.Release()
	a := shelf("a")
	if err := server.operator.Create(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if stored, exists, err := source.Get(informer.Key{Name: "a"}); err != nil || !exists || stored.(client.Object).GetUID() != a.GetUID() {
		t.Errorf("once it was written, the source has %v, %v", stored, err)
	}
}

// define applies the definition of a kind without namespaces, and takes it back at the end.
func define(t *testing.T, server *realServer, kind schema.GroupVersionKind, plural string) {
	t.Helper()
	crds, err := crdclient.New(crdclient.Config{Client: server.user, Logger: server.logger})
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + kind.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group, Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: plural, Singular: strings.ToLower(kind.Kind), Kind: kind.Kind, ListKind: kind.Kind + "List",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: kind.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		},
	}
	untyped := &unstructured.Unstructured{}
	untyped.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	untyped.SetName(crd.Name)
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(server.user.Delete(context.WithoutCancel(t.Context()), untyped)); err != nil {
			t.Error(err)
		}
	})
	if err := crds.EnsureCreated(t.Context(), crd, backoff.NewConstantBackOff(10*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
}

// A deletion requests a dry run in its body, unlike other requests.
func TestR11ADryRunChangesNothing(t *testing.T) {
	server := newRealServer(t)
	namespace := server.instance.Namespace(t)
	source := follow(t, informer.KubernetesConfig{
		Client: server.reader, Object: &policyv1.PodDisruptionBudget{}, Namespaces: []string{namespace}, Logger: server.logger,
	})
	for name, finalizers := range map[string][]string{"free": nil, "held": {"test.operatorkit.io/held"}} {
		obj := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: finalizers}}
		if err := server.user.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		shown := func(version string) error {
			stored, exists, err := source.Get(client.ObjectKeyFromObject(obj))
			if err == nil && (!exists || stored.(client.Object).GetResourceVersion() != version || stored.(client.Object).GetDeletionTimestamp() != nil) {
				err = fmt.Errorf("the source has %v, want version %s", stored, version)
			}
			return err
		}
		operatortest.Eventually(t, name+" is shown", func() error { return shown(obj.ResourceVersion) })
		untyped := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		untyped.SetGroupVersionKind(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"))
		for _, removed := range []client.Object{obj.DeepCopy(), untyped} {
			if err := server.operator.Delete(t.Context(), removed, client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			if err := shown(obj.ResourceVersion); err != nil {
				t.Errorf("%s, after a dry run of its deletion: %v", name, err)
			}
		}
		if err := server.apply(t.Context(), server.user, obj, 1); err != nil {
			t.Fatal(err)
		}
		operatortest.Eventually(t, name+" is shown as it was changed", func() error { return shown(obj.ResourceVersion) })
	}
}

// Only the API server can evaluate some field selectors. So the source reads a written object
// again, when another client may have changed it.
func TestR11WhatLeavesAFieldSelectorBehindAWriteWakes(t *testing.T) {
	server := newRealServer(t)
	namespace := server.instance.Namespace(t)
	source := follow(t, informer.KubernetesConfig{
		Client: server.reader, Object: &corev1.Event{}, Namespaces: []string{namespace}, Logger: server.logger,
		FieldSelector: fields.OneTermEqualSelector("type", corev1.EventTypeWarning),
	})
	obj := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}, Type: corev1.EventTypeWarning,
		InvolvedObject: corev1.ObjectReference{Namespace: namespace, Name: "a"},
	}
	if err := server.user.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "it is shown", func() error {
		if _, exists, err := source.Get(client.ObjectKeyFromObject(obj)); err != nil || !exists {
			return errors.Join(err, errors.New("it is not there"))
		}
		return nil
	})
	author := &informer.Author{Framework: "f", Key: informer.Key{Name: "primary"}}
	var woken atomic.Int64
	source.Subscribe(func(e informer.Event) { e.Wake("f", author.Key, func() { woken.Add(1) }) })
	woken.Store(0)
	server.lag.Hold(nil)
	defer server.lag.Release()

	ticket, written := newTicket(), make(chan error, 1)
	own := obj.DeepCopy()
	own.Message = "own"
	go func() {
		written <- server.operator.Update(context.WithValue(ticket.in(t.Context()), informer.AuthorKey, author), own)
	}()
	<-ticket.arrived
	theirs := &corev1.Event{}
	if err := server.user.Get(t.Context(), client.ObjectKeyFromObject(obj), theirs); err != nil {
		t.Fatal(err)
	}
	theirs.Type = corev1.EventTypeNormal
	if err := server.user.Update(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	ticket.release <- nil
	// The watch continues only while or after the answer is processed.
	select {
	case err := <-written:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(time.Second):
	}
	server.lag.Release()
	operatortest.Eventually(t, "who wrote is woken for what somebody else has changed", func() error {
		if _, exists, err := source.Get(client.ObjectKeyFromObject(obj)); err != nil || exists || woken.Load() == 0 {
			return errors.Join(err, fmt.Errorf("it was woken %d times; it is stored: %t", woken.Load(), exists))
		}
		return nil
	})
}

func removal(locked bool) func(context.Context, client.Client, *policyv1.PodDisruptionBudget) error {
	return func(ctx context.Context, c client.Client, seen *policyv1.PodDisruptionBudget) error {
		preconditions := client.Preconditions{UID: &seen.UID}
		if locked {
			preconditions.ResourceVersion = &seen.ResourceVersion
		}
		return c.Delete(ctx, seen, preconditions)
	}
}
