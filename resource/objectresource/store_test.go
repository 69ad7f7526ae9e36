package objectresource_test

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// source runs a source of the objects of one kind in the namespace.
func (k *kit) source(kind client.Object, change func(*informer.KubernetesConfig)) *informer.Kubernetes {
	k.t.Helper()
	c := operatortest.NewClient(k.t, operatortest.Start(k.t).RESTConfig(), nil)
	config := informer.KubernetesConfig{
		Client: c, Object: kind, Namespaces: []string{k.namespace}, Indexers: objectresource.OwnerIndexers(), Logger: k.logger(),
	}
	change(&config)
	s, err := informer.NewKubernetes(config)
	if err != nil {
		k.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	k.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			k.t.Error(err)
		}
	})
	if err := s.WaitForSync(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
	return s
}

func stores(s ...objectresource.Store) func(*config) {
	return func(c *config) { c.Kinds, c.Stores = nil, s }
}

// seen waits until a source has the newest version of an object.
func (k *kit) seen(s *informer.Kubernetes, o client.Object) {
	k.t.Helper()
	live, exists := read(k, o)
	k.until("the source has seen the object", func() bool {
		obj, stored, err := s.Get(client.ObjectKeyFromObject(o))
		return err == nil && stored == exists && (!stored || obj.(client.Object).GetResourceVersion() == live.GetResourceVersion())
	})
}

func TestTheCurrentStateOfAStoreTakesNoRequest(t *testing.T) {
	for name, kind := range map[string]client.Object{
		"typed": &appsv1.Deployment{},
		"unstructured": func() client.Object {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
			return u
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			p := k.primary("home")
			store := k.source(kind, func(*informer.KubernetesConfig) {})
			deployment := k.web()
			r := k.resource(func() []client.Object { return just(deployment)() }, stores(store))
			k.update(r, p)
			k.seen(store, k.web())

			k.faults.Cut()
			k.wantPlan(r, p)
			k.faults.Restore()
			deployment.Spec.Template.Spec.Containers[0].Env[0].Value = "slow"
			k.wantPlan(r, p, "update Deployment web", `  spec.template.spec.containers[name=web].env[name=MODE].value: "fast" -> "slow"`)
			k.update(r, p)
			k.wantPlan(r, p) // whether the store has seen it already or not
			k.deletionOf(r, p)
			if _, exists := read(k, k.web()); exists {
				t.Error("the object is still there")
			}
		})
	}
}

func TestAStoreThatIsNotSyncedIsPassedOver(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	k.update(k.resource(just(k.data("a", nil))), p)
	r := k.resource(just(), stores(&frozen{}))
	k.wantPlan(r, p, "delete ConfigMap a")
}

func TestAStaleStoreCausesNoWrite(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	child := k.data("a", map[string]string{"x": "1"})
	store := &frozen{synced: true}
	r := k.resource(func() []client.Object { return just(child)() }, stores(store))
	k.update(r, p)
	k.wantQuiet(r, p) // the store does not know the object yet

	created, _ := k.configMap("a")
	store.objects = []any{created}
	child.Data["x"] = "2"
	k.update(r, p)
	k.wantQuiet(r, p) // the store knows the old object

	k.patch(k.meta("a"), `{"data":{"x":"1"}}`)
	drifted, _ := k.configMap("a")
	store.objects = []any{drifted}
	k.wantPlan(r, p, "update ConfigMap a", `  data.x: "1" -> "2"`) // what a stale store made quiet is looked at again
}

func TestAStoreThatCannotBeUsedIsAnError(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	k.update(k.resource(just(k.data("a", nil))), p)
	for name, tc := range map[string]struct {
		change func(*informer.KubernetesConfig)
		want   string
	}{
		"no index":      {func(c *informer.KubernetesConfig) { c.Indexers = nil }, "give it the index of OwnerIndexers"},
		"metadata only": {func(c *informer.KubernetesConfig) { c.MetadataOnly = true }, "have it hold whole objects"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := k.tryPlan(k.resource(just(), stores(k.source(&corev1.ConfigMap{}, tc.change))), p)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !framework.IsPermanent(err) {
				t.Errorf("got %v, want a permanent error with %q", err, tc.want)
			}
		})
	}
}

// frozen is a store that is as fresh as the test makes it.
type frozen struct {
	synced  bool
	objects []any
}

func (f *frozen) GroupVersionKind() schema.GroupVersionKind {
	return corev1.SchemeGroupVersion.WithKind("ConfigMap")
}

func (f *frozen) ByIndex(_, value string) ([]any, error) {
	var found []any
	for _, o := range f.objects {
		if m, ok := o.(client.Object); ok && m.GetLabels()[objectresource.OwnerLabel] == value {
			found = append(found, m.DeepCopyObject())
		}
	}
	return found, nil
}

func (f *frozen) Status() informer.Status { return informer.Status{Synced: f.synced} }
