package objectresource_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/configmapresource"
	"github.com/operatorkit/operatorkit/resource/objectresource"
	"github.com/operatorkit/operatorkit/resource/secretresource"
)

// primaries selects the primaries of the operators in this file: config maps, each entry of whose data is the name and the
// content of an object that it wants.
var primaries = labels.SelectorFromSet(labels.Set{"example.com/primary": "true"})

// newChildren makes the resource of an operator.
type newChildren func(c client.Client, l micrologger.Logger, stores ...objectresource.Store) (framework.Resource, error)

// run runs an operator in a namespace: a framework for the primaries that watches their objects, and reads them from the
// sources it watches.
func run(ctx context.Context, cfg *rest.Config, namespace string, log io.Writer, make newChildren, kinds ...client.Object) error {
	logger, err := micrologger.New(micrologger.Config{IOWriter: log})
	if err != nil {
		return err
	}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return err
	}
	source, err := informer.NewKubernetes(informer.KubernetesConfig{
		Name: "primaries", Client: c, Object: &corev1.ConfigMap{}, Logger: logger,
		Namespaces: []string{namespace}, LabelSelector: primaries,
	})
	if err != nil {
		return err
	}
	var stores []objectresource.Store
	var watches []framework.Watch
	for _, kind := range kinds {
		children, err := childrenSource(c, logger, kind, namespace)
		if err != nil {
			return err
		}
		stores = append(stores, children)
		watches = append(watches, framework.Watch{
			Source: children,
			Map:    objectresource.OwnerMap(corev1.SchemeGroupVersion.WithKind("ConfigMap").GroupKind()),
		})
	}
	resource, err := make(c, logger, stores...)
	if err != nil {
		return err
	}
	set, err := framework.NewResourceSet(framework.ResourceSetConfig{
		Logger: logger, Handles: func(any) bool { return true }, Resources: []framework.Resource{resource},
	})
	if err != nil {
		return err
	}
	router, err := framework.NewResourceRouter(framework.ResourceRouterConfig{Logger: logger, ResourceSets: []*framework.ResourceSet{set}})
	if err != nil {
		return err
	}
	f, err := framework.New(framework.Config{
		Name: "sites", Source: source, Watches: watches, Logger: logger, ResourceRouter: router, ShutdownTimeout: time.Second,
	})
	if err != nil {
		return err
	}
	return f.Run(ctx)
}

func childrenSource(c client.WithWatch, logger micrologger.Logger, kind client.Object, namespace string) (*informer.Kubernetes, error) {
	owned, err := labels.Parse(objectresource.OwnerLabel)
	if err != nil {
		return nil, err
	}
	return informer.NewKubernetes(informer.KubernetesConfig{
		Name: fmt.Sprintf("children %T", kind), Client: c, Object: kind, Logger: logger,
		Namespaces: []string{namespace}, LabelSelector: owned, Indexers: objectresource.OwnerIndexers(),
	})
}

// wanted lists what a primary wants, in the order of its names.
func wanted(p primary) []corev1.ConfigMap {
	var want []corev1.ConfigMap
	for _, name := range slices.Sorted(maps.Keys(p.Data)) {
		want = append(want, corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{p.Data[name]: "text of " + p.Data[name]},
		})
	}
	return want
}

// wantedSecrets is the same in Secrets given as text.
func wantedSecrets(p primary) []corev1.Secret {
	var want []corev1.Secret
	for _, w := range wanted(p) {
		want = append(want, corev1.Secret{ObjectMeta: w.ObjectMeta, StringData: w.Data})
	}
	return want
}

func pointers[T any](values []T) []*T {
	out := make([]*T, len(values))
	for i := range values {
		out[i] = &values[i]
	}
	return out
}

// objects are both.
func objects(p primary) []client.Object {
	var out []client.Object
	for _, w := range pointers(wanted(p)) {
		out = append(out, w)
	}
	for _, w := range pointers(wantedSecrets(p)) {
		out = append(out, w)
	}
	return out
}

func newObjects(c client.Client, l micrologger.Logger, stores ...objectresource.Store) (framework.Resource, error) {
	return objectresource.New(config{
		Name: "children", Client: c, Logger: l, Stores: stores,
		Desired: func(_ context.Context, p primary) ([]client.Object, error) { return objects(p), nil },
	})
}

func newConfigMaps(c client.Client, l micrologger.Logger, stores ...objectresource.Store) (framework.Resource, error) {
	return configmapresource.New(configmapresource.Config[primary]{
		Name: "children", Client: c, Logger: l, Store: stores[0],
		Desired: func(_ context.Context, p primary) ([]*corev1.ConfigMap, error) { return pointers(wanted(p)), nil },
	})
}

func newSecrets(c client.Client, l micrologger.Logger, stores ...objectresource.Store) (framework.Resource, error) {
	return secretresource.New(secretresource.Config[primary]{
		Name: "children", Client: c, Logger: l, Store: stores[0],
		Desired: func(_ context.Context, p primary) ([]*corev1.Secret, error) { return pointers(wantedSecrets(p)), nil },
	})
}

// site is the primary of the scenarios.
func site(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "home", Labels: map[string]string{"example.com/primary": "true"}}, Data: data,
	}
}

func TestCreateChangeAndDeleteSurviveACrashAtEveryWrite(t *testing.T) {
	for name, tc := range map[string]struct {
		make  newChildren
		kinds []client.Object
	}{
		"objectresource":    {newObjects, []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}}},
		"configmapresource": {newConfigMaps, []client.Object{&corev1.ConfigMap{}}},
		"secretresource":    {newSecrets, []client.Object{&corev1.Secret{}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			operatortest.CrashAtEveryWrite(t, operatortest.Scenario{
				Name:     name,
				Parallel: 4,
				Start: func(ctx context.Context, cfg *rest.Config, namespace string) error {
					return run(ctx, cfg, namespace, io.Discard, tc.make, tc.kinds...)
				},
				Phases: []operatortest.Phase{
					{
						Name:  "create",
						Do:    operatortest.Create(site(map[string]string{"one": "a", "two": "a"})),
						Until: childrenAre(tc.kinds, "one=a", "two=a"),
					},
					{
						Name:  "change",
						Do:    setWanted(`{"data":{"one":"b","two":null,"three":"b"}}`),
						Until: childrenAre(tc.kinds, "one=b", "three=b"),
					},
					{
						Name:  "delete",
						Do:    operatortest.Delete(site(nil)),
						Until: childrenAre(tc.kinds),
					},
				},
				Objects:   []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}},
				Normalize: objectresource.Normalize,
			})
		})
	}
}

func setWanted(patch string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		p := site(nil)
		p.Namespace = namespace
		return user.Patch(ctx, p, client.RawPatch("application/merge-patch+json", []byte(patch)))
	}
}

// childrenAre wants these children of each kind, as name=key, and the primary gone when there are none.
func childrenAre(kinds []client.Object, want ...string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		owned := client.HasLabels{objectresource.OwnerLabel}
		for _, kind := range kinds {
			var got []string
			add := func(name string, keys []string) { got = append(got, name+"="+strings.Join(keys, ",")) }
			switch kind.(type) {
			case *corev1.Secret:
				var list corev1.SecretList
				if err := user.List(ctx, &list, client.InNamespace(namespace), owned); err != nil {
					return err
				}
				for _, s := range list.Items {
					add(s.Name, slices.Sorted(maps.Keys(s.Data)))
				}
			default:
				var list corev1.ConfigMapList
				if err := user.List(ctx, &list, client.InNamespace(namespace), owned); err != nil {
					return err
				}
				for _, c := range list.Items {
					add(c.Name, slices.Sorted(maps.Keys(c.Data)))
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				return fmt.Errorf("the %T children are %v, want %v", kind, got, want)
			}
		}
		if len(want) > 0 {
			return nil
		}
		p := site(nil)
		err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: p.Name}, p)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = errors.New("the primary is still there")
		}
		return err
	}
}
