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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
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

// newResources makes the resources of an operator.
type newResources func(c client.Client, l micrologger.Logger, stores ...objectresource.Store) ([]framework.Resource, error)

// alone makes the resources of an operator that has one.
func (make newChildren) alone(c client.Client, l micrologger.Logger, stores ...objectresource.Store) ([]framework.Resource, error) {
	r, err := make(c, l, stores...)
	return []framework.Resource{r}, err
}

// run runs an operator in a namespace: a framework for the primaries that watches their objects, and reads them from the
// sources it watches.
func run(ctx context.Context, cfg *rest.Config, namespace string, log io.Writer, i identity.Identity, make newResources, kinds ...client.Object) error {
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
	resources, err := make(c, logger, stores...)
	if err != nil {
		return err
	}
	set, err := framework.NewResourceSet(framework.ResourceSetConfig{
		Logger: logger, Handles: func(any) bool { return true }, Resources: resources,
	})
	if err != nil {
		return err
	}
	router, err := framework.NewResourceRouter(framework.ResourceRouterConfig{Logger: logger, ResourceSets: []*framework.ResourceSet{set}})
	if err != nil {
		return err
	}
	f, err := framework.New(framework.Config{
		Operator: i.Operator, FormerOperators: i.FormerOperators, Name: i.Framework, FormerNames: i.FormerFrameworks, Source: source, Watches: watches, Logger: logger, ResourceRouter: router, ShutdownTimeout: time.Second,
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
		Name: "children", Client: c, Logger: l, Stores: stores, Kinds: []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}},
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
			operatortest.BreakAtEveryWrite(t, operatortest.Scenario{
				Name:     name,
				Parallel: 4,
				Start: func(ctx context.Context, cfg *rest.Config, namespace string) error {
					return run(ctx, cfg, namespace, io.Discard, identity.Identity{Framework: "sites"}, tc.make.alone, tc.kinds...)
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

// taken is the label that the user puts on what stands under a former name, which does not survive a creation.
var taken = client.MatchingLabels{"example.com/taken": "over"}

// underFormerName creates a primary, with everything that an earlier version of the operator has made for it.
func underFormerName(was identity.Identity) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
		if err != nil {
			return err
		}
		r, err := newObjects(user, logger)
		if err != nil {
			return err
		}
		p := site(map[string]string{"one": "a", "two": "a", "gone": "a"})
		p.Namespace, p.Annotations = namespace, map[string]string{framework.PausedAnnotation: "true"}
		if err := user.Create(ctx, p); err != nil {
			return err
		}
		ctx = identity.NewContext(ctx, &identity.Scope{Identity: was})
		if err := framework.ProcessUpdate(ctx, p, []framework.Resource{r}); err != nil {
			return err
		}
		for _, name := range []string{"one", "two"} {
			named := metav1.ObjectMeta{Namespace: namespace, Name: name}
			for _, o := range []client.Object{&corev1.ConfigMap{ObjectMeta: named}, &corev1.Secret{ObjectMeta: named}} {
				patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"example.com/taken":"over"}}}`))
				if err := user.Patch(ctx, o, patch); err != nil {
					return err
				}
			}
		}
		// It goes on with another spec, so that the version to come desires less.
		return setWanted(`{"metadata":{"annotations":null},"data":{"one":"b","gone":null}}`)(ctx, user, namespace)
	}
}

func TestR16ATakeoverSurvivesACrashAtEveryWrite(t *testing.T) {
	was := identity.Identity{Operator: "o1", Framework: "f1"}
	newConfigs := func(c client.Client, l micrologger.Logger, store objectresource.Store) (framework.Resource, error) {
		return configmapresource.New(configmapresource.Config[primary]{
			Name: "configs", FormerNames: []string{"children"}, Client: c, Logger: l, Store: store,
			Desired: func(_ context.Context, p primary) ([]*corev1.ConfigMap, error) { return pointers(wanted(p)), nil },
		})
	}
	for name, tc := range map[string]struct {
		identity identity.Identity
		make     newResources
	}{
		"all names": {
			identity.Identity{Operator: "o2", FormerOperators: []string{"o1"}, Framework: "f2", FormerFrameworks: []string{"f1"}},
			func(c client.Client, l micrologger.Logger, stores ...objectresource.Store) ([]framework.Resource, error) {
				r, err := objectresource.New(config{
					Name: "pages", FormerNames: []string{"children"}, Client: c, Logger: l, Stores: stores,
					Desired: func(_ context.Context, p primary) ([]client.Object, error) { return objects(p), nil },
				})
				return []framework.Resource{r}, err
			},
		},
		"both parts": {was, func(c client.Client, l micrologger.Logger, stores ...objectresource.Store) ([]framework.Resource, error) {
			configs, err := newConfigs(c, l, stores[0])
			if err != nil {
				return nil, err
			}
			secrets, err := secretresource.New(secretresource.Config[primary]{
				Name: "secrets", FormerNames: []string{"children"}, Client: c, Logger: l, Store: stores[1],
				Desired: func(_ context.Context, p primary) ([]*corev1.Secret, error) { return pointers(wantedSecrets(p)), nil },
			})
			return []framework.Resource{configs, secrets}, err
		}},
		"a part": {was, func(c client.Client, l micrologger.Logger, stores ...objectresource.Store) ([]framework.Resource, error) {
			configs, err := newConfigs(c, l, stores[0])
			if err != nil {
				return nil, err
			}
			rest, err := objectresource.New(config{
				Name: "children", Client: c, Logger: l, Stores: stores,
				Desired: func(_ context.Context, p primary) ([]client.Object, error) {
					var secrets []client.Object
					for _, s := range pointers(wantedSecrets(p)) {
						secrets = append(secrets, s)
					}
					return secrets, nil
				},
			})
			return []framework.Resource{configs, rest}, err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kinds := []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}}
			operatortest.CrashAtEveryWrite(t, operatortest.Scenario{
				Name: "takeover of " + name, Parallel: 4,
				Start: func(ctx context.Context, cfg *rest.Config, namespace string) error {
					return run(ctx, cfg, namespace, io.Discard, tc.identity, tc.make, kinds...)
				},
				Phases: []operatortest.Phase{
					{
						Name: "take over", Do: underFormerName(was),
						Until: operatortest.All(childrenAre(kinds, "one=b", "two=a"), func(ctx context.Context, user client.Client, namespace string) error {
							for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.SecretList{}} {
								if err := user.List(ctx, list, client.InNamespace(namespace), taken); err != nil {
									return err
								}
								if n := meta.LenList(list); n != 2 {
									return fmt.Errorf("%d objects of a %T are those that were there before, want 2", n, list)
								}
							}
							return nil
						}),
					},
					{Name: "delete", Do: operatortest.Delete(site(nil)), Until: childrenAre(kinds)},
				},
				Objects: kinds, Normalize: objectresource.Normalize,
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
