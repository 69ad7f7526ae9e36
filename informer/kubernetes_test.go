package informer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestNewKubernetesNamesEachFaultyField(t *testing.T) {
	_, err := informer.NewKubernetes(informer.KubernetesConfig{
		Namespaces: []string{"a", "", "a"},
		Indexers:   map[string]informer.IndexFunc{"owner": nil},
		Resync:     -time.Second,
	})
	if !errors.Is(err, informer.ErrInvalidConfig) {
		t.Fatalf("err = %v, want ErrInvalidConfig", err)
	}
	for _, want := range []string{
		"Client must be set", "Object must be set", "Logger must be set", "Resync must not be negative",
		"Namespaces has an empty entry at 1", `Namespaces has "a" twice`, `Indexers has no function for "owner"`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}

func TestSourceFollowsObjectsInEveryForm(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	for name, object := range forms() {
		t.Run(name, func(t *testing.T) {
			prefix := strings.ReplaceAll(name, " ", "-")
			before := named(namespace, prefix+"-before")
			create(t, c, before)
			config := configMapConfig(t, c, namespace)
			config.Object = object
			f := follow(t, config)
			if got, want := f.Name(), "configmaps"; got != want {
				t.Errorf("Name = %q, want %q", got, want)
			}

			if e := f.await(informer.Added, before.Name); !e.Backlog {
				t.Error("an object that existed before is not backlog")
			}
			now := named(namespace, prefix+"-now")
			create(t, c, now)
			if e := f.await(informer.Added, now.Name); e.Backlog {
				t.Error("a new object is backlog")
			}
			label(t, c, now, "changed")
			updated := f.await(informer.Updated, now.Name)
			if updated.Backlog || updated.Old == nil {
				t.Errorf("event = %+v, want a fresh one with the old state", updated)
			}

			obj, exists, err := f.Get(client.ObjectKeyFromObject(now))
			if err != nil || !exists {
				t.Fatalf("Get = %t, %v", exists, err)
			}
			got := obj.(client.Object)
			if got.GetLabels()["test"] != "changed" || got.GetUID() != now.UID {
				t.Errorf("labels %v, uid %s; want the changed label, uid %s", got.GetLabels(), got.GetUID(), now.UID)
			}
			if len(got.GetManagedFields()) != 0 {
				t.Error("managed fields are stored")
			}
			if got.GetObjectKind().GroupVersionKind().Kind != "ConfigMap" {
				t.Errorf("kind = %s", got.GetObjectKind().GroupVersionKind())
			}
			if got, want := fmt.Sprintf("%T", obj), fmt.Sprintf("%T", object); got != want {
				t.Errorf("stored as %s, want %s", got, want)
			}

			remove(t, c, now)
			last := f.await(informer.Deleted, now.Name).Object.(client.Object)
			if last.GetLabels()["test"] != "changed" {
				t.Errorf("the last state has labels %v", last.GetLabels())
			}
			if _, exists, _ := f.Get(client.ObjectKeyFromObject(now)); exists {
				t.Error("a deleted object is still stored")
			}
			remove(t, c, before)
			f.await(informer.Deleted, before.Name)
		})
	}
}

func TestMetadataOnlyLeavesOutTheContent(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	create(t, c, named(namespace, "x"))
	config := configMapConfig(t, c, namespace)
	config.MetadataOnly = true
	f := follow(t, config)
	obj, _, _ := f.Get(informer.Key{Namespace: namespace, Name: "x"})
	if _, ok := obj.(*metav1.PartialObjectMetadata); !ok {
		t.Errorf("stored as %T", obj)
	}
}

func TestListsAreStreamed(t *testing.T) {
	instance, namespace := namespaceOf(t)
	create(t, operatortest.NewClient(t, instance.RESTConfig(), nil), named(namespace, "x"))
	for name, object := range forms() {
		t.Run(name, func(t *testing.T) {
			log := &requestLog{}
			config := configMapConfig(t, operatortest.NewClient(t, log.install(instance.RESTConfig()), nil), namespace)
			config.Object = object
			f := follow(t, config)
			f.await(informer.Added, "x")
			f.stop()
			if diff := cmp.Diff([]string{"watch-list"}, log.kinds()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestR11AServerThatDoesNotStreamListsIsListedAndNeverInAnyVersion(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	create(t, c, named(namespace, "x"))
	log := &requestLog{refuse: func(r *http.Request) bool { return r.URL.Query().Has("sendInitialEvents") }}
	f := follow(t, configMapConfig(t, operatortest.NewClient(t, log.install(instance.RESTConfig()), nil), namespace))
	if e := f.await(informer.Added, "x"); !e.Backlog || e.Object.(client.Object).GetObjectKind().GroupVersionKind().Kind != "ConfigMap" {
		t.Errorf("event %+v, want backlog and a kind", e)
	}
	create(t, c, named(namespace, "y"))
	f.await(informer.Added, "y")
	f.stop()
	f.start()
	create(t, c, named(namespace, "z"))
	f.await(informer.Added, "z")
	f.stop()
	got := log.kinds()
	if slices.Contains(got, "list of any version") {
		t.Errorf("requests %v: what is listed may be older than what another process has seen, or this one before", got)
	}
	if !slices.Contains(got, "list") || !slices.Contains(got, "watch") {
		t.Errorf("requests %v, want a list of the newest version, and watches", got)
	}
	if err := f.Status().LastError; err != nil {
		t.Errorf("LastError = %v although the list succeeded", err)
	}
}

func TestSourceIsLimitedToItsNamespacesAndSelectors(t *testing.T) {
	instance, first := namespaceOf(t)
	second, third := instance.Namespace(t), instance.Namespace(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	for _, namespace := range []string{first, second, third} {
		for _, name := range []string{"red", "blue"} {
			obj := named(namespace, name)
			obj.Labels = map[string]string{"color": name}
			create(t, c, obj)
		}
	}
	keys := func(config informer.KubernetesConfig) []string {
		var got []string
		for _, obj := range follow(t, config).List() {
			got = append(got, client.ObjectKeyFromObject(obj.(client.Object)).String())
		}
		slices.Sort(got)
		return got
	}
	sorted := func(keys ...string) []string {
		slices.Sort(keys)
		return keys
	}

	byLabel := configMapConfig(t, c, first, second)
	byLabel.LabelSelector = labels.SelectorFromSet(labels.Set{"color": "red"})
	if diff := cmp.Diff(sorted(first+"/red", second+"/red"), keys(byLabel)); diff != "" {
		t.Errorf("by label in two namespaces (-want +got):\n%s", diff)
	}
	byField := configMapConfig(t, c, third)
	byField.FieldSelector = fields.OneTermEqualSelector("metadata.name", "blue")
	if diff := cmp.Diff([]string{third + "/blue"}, keys(byField)); diff != "" {
		t.Errorf("by field (-want +got):\n%s", diff)
	}
	everywhere := configMapConfig(t, c)
	everywhere.LabelSelector = labels.SelectorFromSet(labels.Set{"color": "blue"})
	want := sorted(first+"/blue", second+"/blue", third+"/blue")
	if diff := cmp.Diff(want, keys(everywhere)); diff != "" {
		t.Errorf("in all namespaces (-want +got):\n%s", diff)
	}
}

func TestObjectThatLeavesTheSelectorIsDeletedButLive(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	obj := named(namespace, "x")
	obj.Labels = map[string]string{"test": "in"}
	create(t, c, obj)
	for name, object := range forms() {
		t.Run(name, func(t *testing.T) {
			config := configMapConfig(t, c, namespace)
			config.Object = object
			config.LabelSelector = labels.SelectorFromSet(labels.Set{"test": "in"})
			f := follow(t, config)
			label(t, c, obj, "out")
			f.await(informer.Deleted, "x")
			live, exists, err := f.GetLive(t.Context(), client.ObjectKeyFromObject(obj))
			if err != nil || !exists || live.(client.Object).GetLabels()["test"] != "out" {
				t.Errorf("GetLive = %v, %t, %v", live, exists, err)
			}
			if _, exists, err := f.GetLive(t.Context(), informer.Key{Namespace: namespace, Name: "absent"}); exists || err != nil {
				t.Errorf("GetLive of what is absent = %t, %v", exists, err)
			}
			label(t, c, obj, "in")
			f.await(informer.Added, "x")
		})
	}
}

func TestResyncAnnouncesEverythingAsBacklog(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	create(t, c, named(namespace, "x"))
	config := configMapConfig(t, c, namespace)
	config.Resync = 20 * time.Millisecond
	f := follow(t, config)
	for range 2 {
		if e := f.await(informer.Updated, "x"); !e.Backlog {
			t.Error("a resync is not backlog")
		}
	}
}

func TestFailingTransformAndIndexCostNoObjectAndTellNoSecret(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	const confidential = "swordfish"
	for _, name := range []string{"fails", "panics", "renamed"} {
		create(t, c, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			StringData: map[string]string{"password": confidential},
		})
	}
	logger, log := newLogger(t)
	f := follow(t, informer.KubernetesConfig{
		Client: c, Object: &corev1.Secret{}, Namespaces: []string{namespace}, Logger: logger,
		Indexers: map[string]informer.IndexFunc{"broken": func(any) []string { panic("no index") }},
		Transform: func(obj any) (any, error) {
			switch secret := obj.(*corev1.Secret); secret.Name {
			case "fails":
				return nil, errors.New("no transform")
			case "panics":
				panic("no transform")
			default:
				other := secret.DeepCopy()
				other.Name = "other"
				return other, nil
			}
		},
	})
	for _, name := range []string{"fails", "panics", "renamed"} {
		obj, exists, _ := f.Get(informer.Key{Namespace: namespace, Name: name})
		if !exists || string(obj.(*corev1.Secret).Data["password"]) != confidential {
			t.Errorf("%s is not stored as received", name)
		}
	}
	f.stop()
	text := log.String()
	for _, want := range []string{"no transform", "index broken panicked"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log does not tell %q", want)
		}
	}
	if strings.Contains(text, confidential) || strings.Contains(text, "c3dvcmRmaXNo") {
		t.Error("the log tells the content of a secret")
	}
}

func TestTransformNothingKeepsManagedFields(t *testing.T) {
	instance, namespace := namespaceOf(t)
	c := operatortest.NewClient(t, instance.RESTConfig(), nil)
	create(t, c, named(namespace, "x"))
	config := configMapConfig(t, c, namespace)
	config.Transform = informer.TransformNothing
	f := follow(t, config)
	obj, _, _ := f.Get(informer.Key{Namespace: namespace, Name: "x"})
	if len(obj.(client.Object).GetManagedFields()) == 0 {
		t.Error("managed fields are gone")
	}
}

func TestRunEndsAlsoWhileTheServerCanNotBeReached(t *testing.T) {
	instance, namespace := namespaceOf(t)
	w := &wire{}
	config := configMapConfig(t, operatortest.NewClient(t, w.install(t, instance.RESTConfig()), nil), namespace)
	w.set(true)
	source, err := informer.NewKubernetes(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- source.Run(ctx) }()
	operatortest.Eventually(t, "the outage is reported", func() bool { return source.Status().LastError != nil })
	if source.Status().Synced || !source.Status().LastContact.IsZero() {
		t.Errorf("status = %+v, want neither synced nor contact", source.Status())
	}
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("Run does not end")
	}
}
