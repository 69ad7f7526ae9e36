package objectresource_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// immutable makes a config map that can't be changed.
func immutable(c *corev1.ConfigMap) *corev1.ConfigMap {
	c.Immutable = ptr.To(true)
	return c
}

func replaceConfigMaps(c *config) { c.Replace = []client.Object{&corev1.ConfigMap{}} }

func TestAnObjectWhoseUpdateIsRefusedIsReplacedWhereThatIsWanted(t *testing.T) {
	k := newKit(t)
	p := k.primary("p")
	text := "hello"
	desired := func() []client.Object {
		page := immutable(k.meta("page"))
		page.Data = map[string]string{"text": text}
		return []client.Object{page}
	}
	cautious, r := k.resource(desired), k.resource(desired, replaceConfigMaps)
	k.update(r, p)
	before, _ := k.configMap("page")
	text = "bye"

	if _, err := k.tryPlan(cautious, p); err == nil || !strings.Contains(err.Error(), "Config.Replace") {
		t.Errorf("without the option it is no error that says what would help: %v", err)
	}
	changes := k.plan(r, p)
	k.wantPlan(r, p, "update ConfigMap page", `  data.text: "hello" -> "bye"`)
	if len(changes) != 1 || changes[0].Description != "replaced: deleted, without its dependents, and created anew" {
		t.Errorf("the plan does not show a replacement: %+v", changes)
	}

	k.update(r, p) // the old one is on its way out now
	operatortest.Eventually(t, "another object is in its place", func() error {
		k.update(r, p)
		after, exists := k.configMap("page")
		if !exists || after.UID == before.UID {
			return errors.New("not yet")
		}
		if after.Data["text"] != "bye" {
			return fmt.Errorf("it says %q", after.Data["text"])
		}
		return nil
	})
	k.wantPlan(r, p)
}

func TestAnObjectThatCouldNotBeCreatedAnewIsNotReplaced(t *testing.T) {
	k := newKit(t)
	p := k.primary("p")
	key := "text"
	r := k.resource(func() []client.Object {
		page := immutable(k.meta("page"))
		page.Data = map[string]string{key: "hello"}
		return []client.Object{page}
	}, replaceConfigMaps)
	k.update(r, p)
	before, _ := k.configMap("page")
	key = "no key of a config map"
	if err := framework.ProcessUpdate(t.Context(), p, []framework.Resource{r}); err == nil || !strings.Contains(err.Error(), key) {
		t.Errorf("got %v, want what the API server says of the key", err)
	}
	if after, exists := k.configMap("page"); !exists || after.UID != before.UID || after.DeletionTimestamp != nil {
		t.Error("the object is gone")
	}
}

func TestReplacementsSurviveACrashAtEveryWrite(t *testing.T) {
	alone := newChildren(func(c client.Client, l micrologger.Logger, stores ...objectresource.Store) (framework.Resource, error) {
		return objectresource.New(config{
			Name: "children", Client: c, Logger: l, Stores: stores, Replace: []client.Object{&corev1.ConfigMap{}},
			Desired: func(_ context.Context, p primary) ([]client.Object, error) {
				var out []client.Object
				for _, w := range pointers(wanted(p)) {
					out = append(out, immutable(w))
				}
				return out, nil
			},
		})
	}).alone
	kinds := []client.Object{&corev1.ConfigMap{}}
	operatortest.CrashAtEveryWrite(t, operatortest.Scenario{
		Name: "replacement", Parallel: 4,
		Start: func(ctx context.Context, cfg *rest.Config, namespace string) error {
			return run(ctx, cfg, namespace, io.Discard, identity.Identity{Operator: "objects", Framework: "primaries"}, alone, kinds...)
		},
		Phases: []operatortest.Phase{
			{Name: "create", Do: operatortest.Create(site(map[string]string{"one": "a", "two": "a"})), Until: childrenAre(kinds, "one=a", "two=a")},
			{Name: "replace", Do: func(ctx context.Context, user client.Client, namespace string) error {
				return errors.Join(addDependent(ctx, user, namespace, "one"), setWanted(`{"data":{"one":"b"}}`)(ctx, user, namespace))
			}, Until: operatortest.All(childrenAre(kinds, "one=b", "two=a"), isOrphan("of-one"))},
			{Name: "delete", Do: operatortest.Delete(site(nil)), Until: operatortest.All(childrenAre(kinds), isOrphan("of-one"))},
		},
		Objects: []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}}, Normalize: objectresource.Normalize,
	})
}

// addDependent gives a config map a Secret that depends on it.
func addDependent(ctx context.Context, user client.Client, namespace, name string) error {
	owner := &corev1.ConfigMap{}
	if err := user.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, owner); err != nil {
		return err
	}
	return user.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "of-" + name,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: owner.UID}},
	}})
}

// isOrphan wants a Secret that is there, and has no owner any more.
func isOrphan(name string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		s := &corev1.Secret{}
		if err := user.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, s); err != nil {
			return err
		}
		if len(s.OwnerReferences) > 0 {
			return fmt.Errorf("%s has the owners %+v", name, s.OwnerReferences)
		}
		return nil
	}
}
