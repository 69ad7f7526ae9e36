package informer_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestReaderReadsEveryFormAndMetadataOfAll(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	obj := named(namespace, "x")
	obj.Labels = map[string]string{"tier": "front"}
	create(t, c, obj)
	for name, object := range forms() {
		t.Run(name, func(t *testing.T) {
			config := configMapConfig(t, c, namespace)
			config.Object = object
			f := follow(t, config)
			f.await(informer.Added, "x")
			reader := informer.NewReader(c.Scheme(), f.Kubernetes)
			for _, into := range []client.Object{object, partialConfigMap()} {
				got := into.DeepCopyObject().(client.Object)
				if err := reader.Get(t.Context(), client.ObjectKeyFromObject(obj), got); err != nil {
					t.Fatal(err)
				}
				if got.GetUID() != obj.UID || got.GetLabels()["tier"] != "front" {
					t.Errorf("read %T with UID %q and labels %v", got, got.GetUID(), got.GetLabels())
				}
				if gvk := got.GetObjectKind().GroupVersionKind(); gvk != corev1.SchemeGroupVersion.WithKind("ConfigMap") {
					t.Errorf("%T has the kind %s", got, gvk)
				}
			}
			for _, list := range []client.ObjectList{listOf(object), listOf(partialConfigMap())} {
				if err := reader.List(t.Context(), list, client.MatchingLabels{"tier": "front"}); err != nil {
					t.Fatal(err)
				}
				if got := names(t, list); !slices.Equal(got, []string{namespace + "/x"}) {
					t.Errorf("%T lists %v", list, got)
				}
			}
		})
	}
}

func TestReaderListsLikeTheServer(t *testing.T) {
	source := fed(t, informer.KubernetesConfig{}, labelled("b", "y", "front"), labelled("b", "x", "back"), labelled("a", "z", "front"))
	reader := informer.NewReader(scheme.Scheme, source)
	source.Fed().Set(item(labelled("c", "w", "front")))
	for name, c := range map[string]struct {
		options []client.ListOption
		want    []string
	}{
		"all, by namespace and name": {nil, []string{"a/z", "b/x", "b/y", "c/w"}},
		"a namespace":                {[]client.ListOption{client.InNamespace("b")}, []string{"b/x", "b/y"}},
		"an empty namespace":         {[]client.ListOption{client.InNamespace("none")}, []string{}},
		"a label":                    {[]client.ListOption{client.MatchingLabels{"tier": "front"}}, []string{"a/z", "b/y", "c/w"}},
		"both":                       {[]client.ListOption{client.InNamespace("b"), client.MatchingLabels{"tier": "front"}}, []string{"b/y"}},
		"an empty field selector":    {[]client.ListOption{client.MatchingFieldsSelector{Selector: fields.Everything()}, client.InNamespace("c")}, []string{"c/w"}},
	} {
		t.Run(name, func(t *testing.T) {
			list := &corev1.ConfigMapList{Items: []corev1.ConfigMap{*named("old", "content")}}
			if err := reader.List(t.Context(), list, c.options...); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, names(t, list)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestReaderGivesCopiesUnlessToldOtherwise(t *testing.T) {
	for name, object := range forms() {
		t.Run(name, func(t *testing.T) {
			stored := object.DeepCopyObject().(client.Object)
			stored.SetNamespace("a")
			stored.SetName("x")
			stored.SetLabels(map[string]string{"tier": "front"})
			source := fed(t, informer.KubernetesConfig{Object: object}, stored)
			reader := informer.NewReader(scheme.Scheme, source)
			key := client.ObjectKey{Namespace: "a", Name: "x"}

			for _, form := range []client.Object{object, partialConfigMap()} {
				got := form.DeepCopyObject().(client.Object)
				if err := reader.Get(t.Context(), key, got); err != nil {
					t.Fatal(err)
				}
				got.GetLabels()["tier"] = "changed"
				list := listOf(form)
				if err := reader.List(t.Context(), list); err != nil {
					t.Fatal(err)
				}
				first(t, list).GetLabels()["tier"] = "changed"
			}
			if tier := stored.GetLabels()["tier"]; tier != "front" {
				t.Fatalf("the store has the label %q now", tier)
			}
			if _, ok := stored.(*unstructured.Unstructured); ok {
				return // it gives its labels as a copy
			}
			got, list := object.DeepCopyObject().(client.Object), listOf(object)
			if err := errors.Join(reader.Get(t.Context(), key, got, client.UnsafeDisableDeepCopy), reader.List(t.Context(), list, client.UnsafeDisableDeepCopy)); err != nil {
				t.Fatal(err)
			}
			got.GetLabels()["by get"] = "yes"
			first(t, list).GetLabels()["by list"] = "yes"
			if labels := stored.GetLabels(); labels["by get"] != "yes" || labels["by list"] != "yes" {
				t.Errorf("labels = %v: a copy was made", labels)
			}
		})
	}
}

func TestReaderRefusesWhatItCannotAnswer(t *testing.T) {
	source := fed(t, informer.KubernetesConfig{Namespaces: []string{"a", "b"}}, labelled("a", "x", "front"))
	reader := informer.NewReader(scheme.Scheme, source)
	twice := informer.NewReader(scheme.Scheme, source, fed(t, informer.KubernetesConfig{Name: "other"}))
	others := runtime.NewScheme()
	others.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("ConfigMap"), &disguised{})
	disguising := informer.NewReader(others, source)
	for name, c := range map[string]struct {
		read func() error
		want string
	}{
		"a kind without a source": {func() error { return reader.Get(t.Context(), key("a", "x"), &corev1.Secret{}) },
			"get v1.Secret a/x from a source: the reader has no source of /v1, Kind=Secret: give one to NewReader"},
		"a kind that the scheme does not know": {func() error { return reader.List(t.Context(), &unknownList{}) }, "no kind is registered"},
		"a kind with two sources": {func() error { return twice.List(t.Context(), &corev1.ConfigMapList{}) },
			"the reader has 2 sources of /v1, Kind=ConfigMap, and can't tell which one to ask"},
		"a namespace that is not watched": {func() error { return reader.Get(t.Context(), key("c", "x"), &corev1.ConfigMap{}) },
			`source "configmaps" does not watch namespace c, but a, b`},
		"the list of one": {func() error { return reader.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("c")) },
			`list v1.ConfigMapList from a source: source "configmaps" does not watch namespace c, but a, b`},
		"another form": {func() error { return reader.Get(t.Context(), key("a", "x"), untypedConfigMap()) },
			`holds the objects in the form "typed", not "unstructured"`},
		"the list of another form": {func() error { return reader.List(t.Context(), listOf(untypedConfigMap())) },
			`holds the objects in the form "typed", not "unstructured"`},
		"another Go type": {func() error { return disguising.Get(t.Context(), key("a", "x"), &disguised{named("a", "x")}) },
			`source "configmaps" holds it as a *v1.ConfigMap, not as a *informer_test.disguised`},
		"fields": {func() error {
			return reader.List(t.Context(), &corev1.ConfigMapList{}, client.MatchingFields{"metadata.name": "x"})
		}, "field selectors are not supported"},
		"a limit":        {func() error { return reader.List(t.Context(), &corev1.ConfigMapList{}, client.Limit(1)) }, "Limit and Continue are not supported"},
		"a continuation": {func() error { return reader.List(t.Context(), &corev1.ConfigMapList{}, client.Continue("x")) }, "Limit and Continue are not supported"},
		"raw options": {func() error {
			return reader.List(t.Context(), &corev1.ConfigMapList{}, &client.ListOptions{Raw: &metav1.ListOptions{}})
		}, "raw options are not supported"},
		"raw options of get": {func() error {
			return reader.Get(t.Context(), key("a", "x"), &corev1.ConfigMap{}, &client.GetOptions{Raw: &metav1.GetOptions{}})
		}, "raw options are not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.read(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestReaderDoesNotTakeAHalfReadStoreForTheWorld(t *testing.T) {
	source := newFed(t, informer.KubernetesConfig{Namespaces: []string{"a", "b"}})
	reader := informer.NewReader(scheme.Scheme, source)
	source.Fed().Replace("a", []informer.Item{item(named("a", "x"))})
	cause := errors.New("no route to host")
	source.Fed().Fail("b", cause)
	for _, err := range []error{
		reader.Get(t.Context(), key("a", "x"), &corev1.ConfigMap{}), reader.List(t.Context(), &corev1.ConfigMapList{}),
	} {
		if !errors.Is(err, informer.ErrNotSynced) || !errors.Is(err, cause) {
			t.Errorf("error = %v, want ErrNotSynced and %v", err, cause)
		}
	}
	source.Fed().Replace("b", nil)
	if err := reader.Get(t.Context(), key("a", "x"), &corev1.ConfigMap{}); err != nil {
		t.Error(err)
	}
}

func TestReaderSaysNotFoundLikeTheServer(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	reader := informer.NewReader(scheme.Scheme, follow(t, configMapConfig(t, c, namespace)).Kubernetes)
	want := c.Get(t.Context(), key(namespace, "none"), &corev1.ConfigMap{})
	got := reader.Get(t.Context(), key(namespace, "none"), &corev1.ConfigMap{})
	if !apierrors.IsNotFound(got) || got.Error() != want.Error() {
		t.Errorf("error = %v, want %v", got, want)
	}
}

// TestReaderFindsWhatIsThere compares lists of namespaces, which use an index, with the stored
// objects.
func TestReaderFindsWhatIsThere(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		source := fed(t, informer.KubernetesConfig{})
		var reader *informer.Reader
		begin := rapid.IntRange(0, 60).Draw(r, "reader is made after")
		there := map[string]bool{}
		for i := range 60 {
			if i == begin {
				reader = informer.NewReader(scheme.Scheme, source)
			}
			obj := named(rapid.SampledFrom([]string{"a", "b"}).Draw(r, "namespace"), fmt.Sprintf("x%02d", rapid.IntRange(0, 30).Draw(r, "name")))
			id := obj.Namespace + "/" + obj.Name
			if there[id] = rapid.Bool().Draw(r, "set"); there[id] {
				source.Fed().Set(item(obj))
			} else {
				source.Fed().Delete(client.ObjectKeyFromObject(obj), nil)
			}
		}
		if reader == nil {
			reader = informer.NewReader(scheme.Scheme, source)
		}
		for _, namespace := range []string{"a", "b"} {
			want := []string{}
			for id, set := range there {
				if set && strings.HasPrefix(id, namespace+"/") {
					want = append(want, id)
				}
			}
			slices.Sort(want)
			list := &corev1.ConfigMapList{}
			if err := reader.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
				r.Fatal(err)
			}
			if diff := cmp.Diff(want, names(t, list)); diff != "" {
				r.Fatalf("namespace %s: -want +got:\n%s", namespace, diff)
			}
		}
	})
}

func TestReaderReadsWhileTheSourceChanges(t *testing.T) {
	source := fed(t, informer.KubernetesConfig{}, named("a", "stays"))
	reader := informer.NewReader(scheme.Scheme, source)
	var wg sync.WaitGroup
	for worker := range 3 {
		wg.Go(func() {
			for i := range 300 {
				obj := labelled("a", fmt.Sprintf("x%d", i%20), fmt.Sprint(worker))
				source.Fed().Set(item(obj))
				source.Fed().Delete(client.ObjectKeyFromObject(obj), nil)
			}
		})
		wg.Go(func() {
			for range 300 {
				list := &corev1.ConfigMapList{}
				err := reader.List(t.Context(), list, client.InNamespace("a"), client.UnsafeDisableDeepCopy)
				if err != nil || !slices.Contains(names(t, list), "a/stays") {
					t.Errorf("list = %v, %v", names(t, list), err)
				}
				if err := reader.Get(t.Context(), key("a", "x1"), &corev1.ConfigMap{}); err != nil && !apierrors.IsNotFound(err) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestReaderListsANamespaceAlone asserts that the list of a namespace takes no more work if there
// are other namespaces.
func TestReaderListsANamespaceAlone(t *testing.T) {
	allocations := func(namespaces int) float64 {
		reader := informer.NewReader(scheme.Scheme, fed(t, informer.KubernetesConfig{}, crowd(namespaces, 20)...))
		return testing.AllocsPerRun(20, func() {
			list := &corev1.ConfigMapList{}
			if err := reader.List(t.Context(), list, client.InNamespace("namespace-0"), client.UnsafeDisableDeepCopy); err != nil || len(list.Items) != 20 {
				t.Fatal(len(list.Items), err)
			}
		})
	}
	if one, many := allocations(1), allocations(20); many > one {
		t.Errorf("%v allocations with 20 namespaces, %v with one", many, one)
	}
}

func BenchmarkReaderListsANamespaceOf10000Objects(b *testing.B) {
	reader := informer.NewReader(scheme.Scheme, fed(b, informer.KubernetesConfig{}, crowd(100, 100)...))
	for name, options := range map[string][]client.ListOption{
		"one of 100 namespaces":         {client.InNamespace("namespace-7"), client.UnsafeDisableDeepCopy},
		"one of 100 namespaces, copies": {client.InNamespace("namespace-7")},
		"all":                           {client.UnsafeDisableDeepCopy},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := reader.List(b.Context(), &corev1.ConfigMapList{}, options...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
