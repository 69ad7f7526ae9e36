package informer_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

const ours = "test.operatorkit.io/ours"

// finalizersOf asks the API server.
func finalizersOf(t *testing.T, c client.Client, obj client.Object) []string {
	t.Helper()
	live := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), live); err != nil {
		t.Fatal(err)
	}
	finalizers := live.Finalizers
	slices.Sort(finalizers)
	return finalizers
}

// setFinalizers is another writer, and works in clean-ups too.
func setFinalizers(t *testing.T, c client.Client, obj client.Object, finalizers ...string) {
	t.Helper()
	quoted := make([]string, len(finalizers))
	for i, finalizer := range finalizers {
		quoted[i] = fmt.Sprintf("%q", finalizer)
	}
	patch := fmt.Sprintf(`{"metadata":{"finalizers":[%s]}}`, strings.Join(quoted, ","))
	target := named(obj.GetNamespace(), obj.GetName())
	if err := c.Patch(context.WithoutCancel(t.Context()), target, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// stored returns an object as the source has it.
func stored(t *testing.T, source informer.Source, obj client.Object) any {
	t.Helper()
	got, exists, err := source.Get(client.ObjectKeyFromObject(obj))
	if err != nil || !exists {
		t.Fatalf("Get = %t, %v", exists, err)
	}
	return got
}

func TestFinalizerIsAddedAndRemovedAlone(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	for form, object := range forms() {
		for name, test := range map[string]struct {
			before []string // when the source sees the object
			race   []string // written by another after that
			want   []string // with ours added
		}{
			"none":                 {nil, nil, []string{ours}},
			"another":              {[]string{"a.io/1"}, nil, []string{"a.io/1", ours}},
			"another comes":        {nil, []string{"a.io/1"}, []string{"a.io/1", ours}},
			"a second one comes":   {[]string{"a.io/1"}, []string{"a.io/1", "b.io/2"}, []string{"a.io/1", "b.io/2", ours}},
			"another goes":         {[]string{"a.io/1", "b.io/2"}, []string{"b.io/2"}, []string{"b.io/2", ours}},
			"ours is there":        {[]string{ours}, nil, []string{ours}},
			"ours comes meanwhile": {nil, []string{ours, "a.io/1"}, []string{"a.io/1", ours}},
		} {
			t.Run(form+"/"+name, func(t *testing.T) {
				obj := named(namespace, strings.ReplaceAll(form+"-"+name, " ", "-"))
				obj.Finalizers = test.before
				create(t, c, obj)
				t.Cleanup(func() { setFinalizers(t, c, obj) })
				config := configMapConfig(t, c, namespace)
				config.Object = object
				f := follow(t, config)
				seen := stored(t, f, obj)
				f.stop()
				if test.race != nil {
					setFinalizers(t, c, obj, test.race...)
				}

				result, err := f.AddFinalizer(t.Context(), seen, ours)
				if err != nil {
					t.Fatal(err)
				}
				got := result.(client.Object).GetFinalizers()
				slices.Sort(got)
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("returned finalizers (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(test.want, finalizersOf(t, c, obj)); diff != "" {
					t.Errorf("stored finalizers (-want +got):\n%s", diff)
				}

				// The object that was seen first is old by now in every way.
				for range 2 {
					if err := f.RemoveFinalizer(t.Context(), seen, ours); err != nil {
						t.Fatal(err)
					}
				}
				left := slices.DeleteFunc(test.want, func(s string) bool { return s == ours })
				if diff := cmp.Diff(left, finalizersOf(t, c, obj), emptyIsNil); diff != "" {
					t.Errorf("finalizers left (-want +got):\n%s", diff)
				}
				live := &corev1.ConfigMap{}
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(obj), live); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(obj.Data, live.Data); diff != "" {
					t.Errorf("content (-want +got):\n%s", diff)
				}
			})
		}
	}
}

var emptyIsNil = cmp.Transformer("emptyIsNil", func(s []string) []string {
	if len(s) == 0 {
		return nil
	}
	return s
})

func TestConcurrentFinalizersAllSurvive(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	obj := named(namespace, "x")
	create(t, c, obj)
	f := follow(t, configMapConfig(t, c, namespace))
	seen := stored(t, f, obj)

	var wg sync.WaitGroup
	want := []string{}
	for i := range 6 {
		finalizer := fmt.Sprintf("test.operatorkit.io/%d", i)
		want = append(want, finalizer)
		wg.Go(func() {
			if _, err := f.AddFinalizer(t.Context(), seen, finalizer); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff(want, finalizersOf(t, c, obj)); diff != "" {
		t.Errorf("after adding (-want +got):\n%s", diff)
	}
	for _, finalizer := range want {
		wg.Go(func() {
			if err := f.RemoveFinalizer(t.Context(), seen, finalizer); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if diff := cmp.Diff([]string{}, finalizersOf(t, c, obj), emptyIsNil); diff != "" {
		t.Errorf("after removing (-want +got):\n%s", diff)
	}
}

func TestFinalizerOfAnObjectThatIsNotTheOneSeen(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	for form, object := range forms() {
		t.Run(form, func(t *testing.T) {
			prefix := strings.ReplaceAll(form, " ", "-")
			gone, reborn := named(namespace, prefix+"-gone"), named(namespace, prefix+"-reborn")
			deleting := named(namespace, prefix+"-deleting")
			deleting.Finalizers = []string{"a.io/1"}
			for _, obj := range []client.Object{gone, reborn, deleting} {
				create(t, c, obj)
			}
			config := configMapConfig(t, c, namespace)
			config.Object = object
			f := follow(t, config)
			seenGone, seenReborn, seenDeleting := stored(t, f, gone), stored(t, f, reborn), stored(t, f, deleting)
			f.stop()
			for _, obj := range []client.Object{gone, reborn, deleting} {
				remove(t, c, obj)
			}
			t.Cleanup(func() { setFinalizers(t, c, deleting) })
			again := named(namespace, reborn.Name)
			again.Finalizers = []string{ours}
			create(t, c, again)
			t.Cleanup(func() { setFinalizers(t, c, again) })

			if _, err := f.AddFinalizer(t.Context(), seenGone, ours); !apierrors.IsNotFound(err) {
				t.Errorf("add to an object that is gone: %v", err)
			}
			if _, err := f.AddFinalizer(t.Context(), seenDeleting, ours); !apierrors.IsConflict(err) {
				t.Errorf("add to an object that is being deleted: %v", err)
			}
			if _, err := f.AddFinalizer(t.Context(), seenReborn, ours); !apierrors.IsConflict(err) {
				t.Errorf("add to an object that was replaced: %v", err)
			}
			for name, seen := range map[string]any{"gone": seenGone, "deleting": seenDeleting, "reborn": seenReborn} {
				if err := f.RemoveFinalizer(t.Context(), seen, ours); err != nil {
					t.Errorf("remove from %s: %v", name, err)
				}
			}
			seenReborn.(client.Object).SetFinalizers([]string{ours})
			if err := f.RemoveFinalizer(t.Context(), seenReborn, ours); err != nil {
				t.Errorf("remove from replaced: %v", err)
			}
			if diff := cmp.Diff([]string{ours}, finalizersOf(t, c, again)); diff != "" {
				t.Errorf("finalizers of the object that took the name (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFinalizerThatTheServerRefusesIsAnError(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	obj := named(namespace, "x")
	create(t, c, obj)
	f := follow(t, configMapConfig(t, c, namespace))
	if _, err := f.AddFinalizer(t.Context(), stored(t, f, obj), "not a finalizer"); !apierrors.IsInvalid(err) {
		t.Errorf("err = %v, want the server's", err)
	}
	if _, err := f.AddFinalizer(t.Context(), "text", ours); err == nil || !strings.Contains(err.Error(), "string is not a Kubernetes object") {
		t.Errorf("err = %v", err)
	}
	if err := f.RemoveFinalizer(t.Context(), "text", ours); err == nil || !strings.Contains(err.Error(), "string is not a Kubernetes object") {
		t.Errorf("err = %v", err)
	}
}

func TestAFinalizerThatTheServerRefusesToTakeOffInADeletionIsTheServersError(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	faults := operatortest.NewFaults()
	source := follow(t, configMapConfig(t, operatortest.NewClient(t, faults.Wrap(instance.RESTConfig()), nil), namespace))
	obj := named(namespace, "x")
	obj.Finalizers = []string{ours}
	create(t, c, obj)
	t.Cleanup(func() { setFinalizers(t, c, obj) })
	early := source.await(informer.Added, "x").Object
	remove(t, c, obj)
	late := source.await(informer.Updated, "x").Object
	refusal := apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "x", nil)
	refusal.ErrStatus.Message = "policy says no"
	faults.On(func(r operatortest.Request) bool { return r.Verb == "patch" }, operatortest.Answer(refusal))
	for name, seen := range map[string]any{"seen while it is being deleted": late, "seen before that": early} {
		t.Run(name, func(t *testing.T) {
			before := len(faults.Writes())
			if err := source.RemoveFinalizer(t.Context(), seen, ours); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "policy says no") {
				t.Errorf("err = %v, want the server's", err)
			}
			if got := len(faults.Writes()) - before; got != 1 {
				t.Errorf("%d patches were sent, want 1", got)
			}
		})
	}
}

func TestR5A404OfAProxyEndsNoFinalizer(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	faults := operatortest.NewFaults()
	source := follow(t, configMapConfig(t, operatortest.NewClient(t, faults.Wrap(instance.RESTConfig()), nil), namespace))
	held, free := named(namespace, "held"), named(namespace, "free")
	held.Finalizers = []string{ours}
	t.Cleanup(func() { setFinalizers(t, c, held) })
	for _, obj := range []*corev1.ConfigMap{held, free} {
		create(t, c, obj)
		source.await(informer.Added, obj.Name)
	}
	for name, answer := range map[string]*apierrors.StatusError{
		"without details": {ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound}},
		"of another":      apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "another"),
	} {
		t.Run(name, func(t *testing.T) {
			lying := faults.On(func(r operatortest.Request) bool {
				return r.Resource == "configmaps" && (r.Verb == "patch" || r.Verb == "get")
			}, operatortest.Answer(answer))
			defer lying.Remove()
			if err := source.RemoveFinalizer(t.Context(), stored(t, source, held), ours); err == nil {
				t.Error("the removal of a finalizer that is still there counts as done")
			}
			if err := source.RemoveFinalizer(t.Context(), stored(t, source, free), ours); err == nil {
				t.Error("an object that could not be read counts as gone")
			}
			if _, err := source.AddFinalizer(t.Context(), stored(t, source, free), ours); err == nil || apierrors.IsNotFound(err) {
				t.Errorf("adding a finalizer: got error %v, want one that is no 404", err)
			}
			if _, exists, err := source.GetLive(t.Context(), client.ObjectKeyFromObject(held)); err == nil {
				t.Errorf("GetLive: exists is %t, want an error", exists)
			}
		})
	}
	if diff := cmp.Diff([]string{ours}, finalizersOf(t, c, held)); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
}
