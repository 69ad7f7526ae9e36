package target_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

func TestOnlyThoseAreToldWhomAChangeConcernsAndWhoWatch(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connected(w.deploy("prod", administrator(t, w.kube, "first")))
	w.acquire(c.Key(), other)
	kind := configMaps(w.namespace)
	w.watch(c, user, kind)
	if err := c.Watch(other, kind); err != nil {
		t.Fatal(err)
	}
	if got := c.Health().Watches; got != 1 {
		t.Errorf("%d watches, want one for both", got)
	}

	w.put(configMap(w.namespace, "of-a-stranger", target.Key{Namespace: "platform", Name: "stranger"}))
	w.put(configMap(w.namespace, "of-other", other))
	mine := configMap(w.namespace, "mine", user)
	w.put(mine)
	w.told("the owner is told", func(n target.Notice) bool {
		return changeOf("mine")(n) && n.User == user && n.Cluster == c.Key() && n.Kind.Kind == "ConfigMap" && n.Object.Namespace == w.namespace
	})
	if n := w.noticed(changeOf("of-a-stranger")); n != 0 {
		t.Errorf("%d notices of what concerns nobody", n)
	}
	if n := w.noticed(func(n target.Notice) bool { return changeOf("of-other")(n) && n.User == other }); n != 1 {
		t.Errorf("%d notices for the other owner, want 1", n)
	}
	if n := w.noticed(func(n target.Notice) bool { return changeOf("of-other")(n) && n.User == user }); n != 0 {
		t.Errorf("%d notices of what belongs to another", n)
	}

	// What loses its label concerns those whom it concerned before.
	w.forget()
	mine.Labels[owner] = "nobody.nobody"
	w.put(mine)
	w.told("the former owner is told", func(n target.Notice) bool { return changeOf("mine")(n) && n.User == user })
}

func TestWithoutOwnersEverybodyIsTold(t *testing.T) {
	for name, owners := range map[string]target.Owners{
		"none":        nil,
		"in disorder": func(target.Key, client.Object) []target.Key { panic("no owners today") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(c *target.Config) { c.Owners = owners })
			c := w.connected(w.deploy("prod", administrator(t, w.kube, "first")))
			w.acquire(c.Key(), other)
			w.watch(c, user, configMaps(w.namespace))
			if err := c.Watch(other, configMaps(w.namespace)); err != nil {
				t.Fatal(err)
			}
			w.put(configMap(w.namespace, "made", target.Key{Namespace: "platform", Name: "stranger"}))
			for _, who := range []target.Key{user, other} {
				w.told("everybody is told", func(n target.Notice) bool { return changeOf("made")(n) && n.User == who })
			}
		})
	}
}

func TestTheEndOfWatchesIsNoLossOfContact(t *testing.T) {
	const selectors = 30
	begun := make(chan struct{}, 1000)
	w := newWorld(t, func(c *target.Config) {
		c.WrapTransport = func(_ target.Key, next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.URL.Query().Get("watch") == "" {
					return next.RoundTrip(r)
				}
				begun <- struct{}{}
				return silent(r)
			})
		}
	})
	c := w.connected(w.deploy("prod", administrator(t, w.kube, "first")))
	var kinds []target.Kind
	for _, kind := range []string{"ConfigMap", "Secret", "Service", "Pod", "Endpoints", "ServiceAccount", "Namespace", "Node", "LimitRange", "ResourceQuota"} {
		for i := range selectors {
			kinds = append(kinds, target.Kind{
				GroupVersionKind: corev1.SchemeGroupVersion.WithKind(kind), Selector: labels.SelectorFromSet(labels.Set{"number": strconv.Itoa(i)}),
			})
		}
	}
	if err := c.Watch(user, kinds...); err != nil {
		t.Fatal(err)
	}
	for range kinds {
		<-begun
	}
	w.stop()
	if log := w.log.String(); strings.Contains(log, "lost contact") || strings.Contains(log, "can't be read") {
		t.Errorf("the log complains:\n%s", log)
	}
}

func TestWatchesAreThoseOfTheLastCall(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connected(w.deploy("prod", administrator(t, w.kube, "first")))
	whole := configMaps(w.namespace)
	whole.Whole = true
	secrets := target.Kind{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Secret"), Selector: whole.Selector}
	w.watch(c, user, whole, secrets, whole)
	if got := c.Health().Watches; got != 2 {
		t.Errorf("%d watches, want 2", got)
	}
	objects, ok := c.Objects(whole)
	if !ok {
		t.Fatal("the watch is not there")
	}
	data := configMap(w.namespace, "made", user)
	data.Data = map[string]string{"key": "value"}
	w.put(data)
	w.told("the change is told", changeOf("made"))
	obj, exists, err := objects.Get(client.ObjectKeyFromObject(data))
	if err != nil || !exists {
		t.Fatalf("Get = %t, %v", exists, err)
	}
	if value, _, _ := unstructured.NestedString(obj.(*unstructured.Unstructured).Object, "data", "key"); value != "value" {
		t.Errorf("the object is %v", obj)
	}

	if err := c.Watch(user, secrets); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Objects(whole); ok || c.Health().Watches != 1 {
		t.Errorf("%d watches, want that of Secrets only", c.Health().Watches)
	}
	w.clusters.Release(c.Key(), user)
	if got := c.Health(); got.Watches != 0 || got.Users != 0 {
		t.Errorf("after the release: %+v", got)
	}
	if err := c.Watch(user, secrets); !errors.Is(err, target.ErrReleased) {
		t.Errorf("Watch without Acquire: %v, want ErrReleased", err)
	}
}

func TestNothingRunsForAWatchThatHasEnded(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connected(w.deploy("prod", administrator(t, w.kube, "first")))
	w.watch(c, user, configMaps(w.namespace))
	if err := c.Watch(user); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the watch has ended", func() error {
		var running bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&running, 2); err != nil {
			return err
		}
		if n := strings.Count(running.String(), "target.(*Cluster).follow("); n != 0 {
			return fmt.Errorf("%d goroutines follow it", n)
		}
		return nil
	})
}

func TestAKindThatComesLateIsMappedAndWatched(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connected(w.deploy("prod", administrator(t, w.kube, "first")))
	group := w.namespace + ".example.com"
	gadgets := schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Gadget"}
	if _, err := c.RESTMapper().RESTMapping(gadgets.GroupKind()); !meta.IsNoMatchError(err) {
		t.Fatalf("mapping before the definition: %v, want no match", err)
	}
	if err := c.Watch(user, target.Kind{GroupVersionKind: gadgets}); err != nil {
		t.Fatal(err)
	}

	w.kube.InstallCRDs(t, definition(gadgets, "gadgets"))
	operatortest.Eventually(t, "the kind is mapped", func() error {
		_, err := c.RESTMapper().RESTMapping(gadgets.GroupKind())
		return err
	})
	w.told("the watch begins", func(n target.Notice) bool { return n.Occasion == target.WatchBegun && n.Kind == gadgets })
	gadget := &unstructured.Unstructured{}
	gadget.SetGroupVersionKind(gadgets)
	gadget.SetNamespace(w.namespace)
	gadget.SetName("first")
	gadget.SetLabels(map[string]string{owner: user.Namespace + "." + user.Name})
	if err := c.Client().Create(t.Context(), gadget); err != nil {
		t.Fatal(err)
	}
	w.told("an object of the kind is told", changeOf("first"))

	// Another kind in another version of a group that is known by now.
	gizmos := schema.GroupVersionKind{Group: group, Version: "v2", Kind: "Gizmo"}
	w.kube.InstallCRDs(t, definition(gizmos, "gizmos"))
	operatortest.Eventually(t, "the second kind is mapped", func() error {
		_, err := c.RESTMapper().RESTMapping(gizmos.GroupKind())
		return err
	})
}

func definition(gvk schema.GroupVersionKind, plural string) *apiextensionsv1.CustomResourceDefinition {
	anything := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + gvk.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gvk.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: gvk.Kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: gvk.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything},
				},
			}},
		},
	}
}

func TestTheManagementClusterHasTheZeroKey(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connected(target.Key{})
	w.watch(c, user, configMaps(w.namespace))
	w.put(configMap(w.namespace, "made", user))
	w.told("a change is told", changeOf("made"))
	if err := c.Client().Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "made"}, &corev1.ConfigMap{}); err != nil {
		t.Error(err)
	}
}

// TestManyUsersComeAndGo has users come and go at once, while the clusters are dropped as soon as nobody uses them.
func TestManyUsersComeAndGo(t *testing.T) {
	w := newWorld(t, func(c *target.Config) { c.IdleTimeout = time.Millisecond })
	keys := []target.Key{{}}
	for i := range 3 {
		keys = append(keys, w.deploy(fmt.Sprint("c", i), administrator(t, w.kube, "first")))
	}
	for _, key := range keys {
		w.connected(key)
		w.clusters.Release(key, user)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			who := target.Key{Namespace: "platform", Name: fmt.Sprint("user-", i)}
			for n := range 30 {
				key := keys[(i+n)%len(keys)]
				c, err := w.clusters.Acquire(key, who)
				if err != nil {
					t.Errorf("Acquire: %v", err)
					return
				}
				if err := c.Watch(who, configMaps(w.namespace)); err != nil {
					t.Errorf("Watch: %v", err)
				}
				if err := c.Client().Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "none"}, &corev1.ConfigMap{}); client.IgnoreNotFound(err) != nil {
					t.Errorf("Get: %v", err)
				}
				c.Condition()
				w.clusters.Release(key, who)
			}
		})
	}
	wg.Wait()
	operatortest.Eventually(t, "all clusters are dropped", func() error {
		if left := w.clusters.Health(); len(left) > 0 {
			return fmt.Errorf("left: %+v", left)
		}
		return nil
	})
	w.stop()
}
