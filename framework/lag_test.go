package framework_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// childOps make a ConfigMap for each name that stands in the primary's "children", with its "text". They find them by the name of the
// primary, and ask the API server for them.
type childOps struct{ *cluster }

type children map[string]string

func (childOps) Name() string { return "children" }

func (o childOps) GetCurrentState(ctx context.Context, obj *corev1.ConfigMap) (children, error) {
	list := &corev1.ConfigMapList{}
	err := o.List(ctx, list, client.InNamespace(o.namespace), client.MatchingLabels{"of": obj.Name})
	current := children{}
	for _, child := range list.Items {
		current[child.Name] = child.Data["text"]
	}
	return current, err
}

func (childOps) GetDesiredState(_ context.Context, obj *corev1.ConfigMap) (children, error) {
	desired := children{}
	for name := range strings.FieldsSeq(obj.Data["children"]) {
		desired[obj.Name+"-"+name] = obj.Data["text"]
	}
	return desired, nil
}

func (childOps) NewUpdatePatch(_ context.Context, _ *corev1.ConfigMap, current, desired children) (*framework.TypedPatch[children], error) {
	create, update, remove := children{}, children{}, maps.Clone(current)
	for name, text := range desired {
		delete(remove, name)
		if now, exists := current[name]; !exists {
			create[name] = text
		} else if now != text {
			update[name] = text
		}
	}
	patch := framework.NewTypedPatch[children]()
	if len(create) > 0 {
		patch.SetCreateChange(create)
	}
	if len(update) > 0 {
		patch.SetUpdateChange(update)
	}
	if len(remove) > 0 {
		patch.SetDeleteChange(remove)
	}
	return patch, nil
}

func (childOps) NewDeletePatch(_ context.Context, _ *corev1.ConfigMap, current, _ children) (*framework.TypedPatch[children], error) {
	patch := framework.NewTypedPatch[children]()
	if len(current) > 0 {
		patch.SetDeleteChange(current)
	}
	return patch, nil
}

func (o childOps) child(obj *corev1.ConfigMap, name, text string) *corev1.ConfigMap {
	child := o.object(name)
	child.Labels, child.Data = map[string]string{"of": obj.Name}, map[string]string{"text": text}
	return child
}

func (o childOps) ApplyCreateChange(ctx context.Context, obj *corev1.ConfigMap, change children) error {
	for name, text := range change {
		if err := o.Create(ctx, o.child(obj, name, text)); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

func (o childOps) ApplyUpdateChange(ctx context.Context, obj *corev1.ConfigMap, change children) error {
	for name, text := range change {
		if err := o.Update(ctx, o.child(obj, name, text)); err != nil {
			return err
		}
	}
	return nil
}

func (o childOps) ApplyDeleteChange(ctx context.Context, obj *corev1.ConfigMap, change children) error {
	for name := range change {
		if err := client.IgnoreNotFound(o.Delete(ctx, o.child(obj, name, ""))); err != nil {
			return err
		}
	}
	return nil
}

// parent is a primary with children.
func (c *cluster) parent(name, text, children string) *corev1.ConfigMap {
	obj := c.object(name)
	obj.Data = map[string]string{"text": text, "children": children}
	return obj
}

// childrenOf tells the children of a primary, with their texts and what tells them from other ones of the same name.
func (c *cluster) childrenOf(name string) []string {
	c.t.Helper()
	list := &corev1.ConfigMapList{}
	if err := c.List(c.t.Context(), list, client.InNamespace(c.namespace), client.MatchingLabels{"of": name}); err != nil {
		c.t.Fatal(err)
	}
	var lines []string
	for _, child := range list.Items {
		lines = append(lines, fmt.Sprintf("%s %s %s %s", child.Name, child.Data["text"], child.UID, child.ResourceVersion))
	}
	slices.Sort(lines)
	return lines
}

func (c *cluster) hasChildren(name string, want ...string) func() error {
	return func() error {
		var got []string
		for _, line := range c.childrenOf(name) {
			got = append(got, strings.Join(strings.Fields(line)[:2], " "))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("children (-want +got):\n%s", diff)
		}
		return nil
	}
}

// process starts an operator with children, which reads its primaries from a source of its own, as another process would.
func (c *cluster) process(source informer.Source, config framework.Config) (observed *records, stop func()) {
	c.t.Helper()
	observed = &records{}
	resource, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[*corev1.ConfigMap, children]{Logger: quiet(c.t), Ops: childOps{c}})
	if err != nil {
		c.t.Fatal(err)
	}
	config.Source, config.Finalizer, config.Observer, config.BackOffFactory = source, finalizer, observed, quickly
	return observed, running(c.t, newFramework(c.t, config, resource))
}

func TestR11ANewLeaderWithAnOldCacheChangesNothingThatIsWanted(t *testing.T) {
	instance := operatortest.Start(t)
	for name, test := range map[string]struct {
		config framework.Config
		// meanwhile changes a primary with the children a and b after what the lagging server shows.
		meanwhile func(c *cluster)
		// lastSeen, if it is set, comes before that, and without an operator.
		lastSeen func(c *cluster)
		want     []string
	}{
		"an earlier state": {
			meanwhile: func(c *cluster) { c.merge("p", `{"data":{"text":"new","children":"a b c"}}`) },
			want:      []string{"p-a new", "p-b new", "p-c new"},
		},
		"an earlier state with the same children": {
			meanwhile: func(c *cluster) { c.merge("p", `{"data":{"text":"new"}}`) },
			want:      []string{"p-a new", "p-b new"},
		},
		"an earlier state that only creates": {
			meanwhile: func(c *cluster) { c.merge("p", `{"data":{"text":"new","children":""}}`) },
		},
		"an earlier life that only creates": {
			meanwhile: func(c *cluster) { c.replace(c.parent("p", "new", "")) },
		},
		"an earlier life": {
			meanwhile: func(c *cluster) { c.replace(c.parent("p", "new", "c d")) },
			want:      []string{"p-c new", "p-d new"},
		},
		"an earlier life that is being deleted": {
			lastSeen:  func(c *cluster) { c.delete("p") },
			meanwhile: func(c *cluster) { c.replace(c.parent("p", "new", "a c")) },
			want:      []string{"p-a new", "p-c new"},
		},
		"an earlier life without finalizers": {
			config:    framework.Config{DisableFinalizer: true},
			meanwhile: func(c *cluster) { c.replace(c.parent("p", "new", "a c")) },
			want:      []string{"p-a new", "p-c new"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, instance)
			lag := operatortest.NewLag()
			lagging := clusterOf(t, lag.Wrap(instance.RESTConfig()), c.namespace)
			_, stop := c.process(c.source(), test.config)
			c.create(c.parent("p", "old", "a b"))
			operatortest.Eventually(t, "the children are there", c.hasChildren("p", "p-a old", "p-b old"))
			stop()
			if test.lastSeen != nil {
				test.lastSeen(c)
			}
			source := warm(t, lagging, lag)

			_, stop = c.process(c.source(), test.config)
			test.meanwhile(c)
			operatortest.Eventually(t, "the children are as they are wanted", c.hasChildren("p", test.want...))
			stop()
			before := c.childrenOf("p")

			observed, stop := c.process(source, test.config)
			var told []*framework.Record
			operatortest.Eventually(t, "the earlier state was reconciled", func() bool {
				told = append(told, observed.taken()...)
				return len(told) > 0
			})
			if diff := cmp.Diff(before, c.childrenOf("p")); diff != "" {
				t.Errorf("children while the server lags (-before +after):\n%s", diff)
			}
			lag.Release()
			c.create(c.parent("marker", "x", "y"))
			operatortest.Eventually(t, "a later object is reconciled", c.hasChildren("marker", "marker-y x"))
			operatortest.Eventually(t, "the newest state is reconciled", func() bool {
				told = append(told, observed.taken()...)
				return slices.ContainsFunc(told, func(r *framework.Record) bool {
					return r.Object.Name == "p" && r.Outcome == framework.Succeeded && r.Object.UID == c.get("p").UID && r.Event == "update"
				})
			})
			stop()
			for _, r := range append(told, observed.taken()...) {
				if r.Outcome == framework.Failed {
					t.Errorf("a lagging server is an error of the object: %s", r.Error)
				}
			}
			if diff := cmp.Diff(before, c.childrenOf("p")); diff != "" {
				t.Errorf("children once the server has caught up (-before +after):\n%s", diff)
			}
		})
	}
}

func TestR11ANewLeaderWithAnOldCacheMakesNothingForAnObjectWhoseDeletionWasProcessed(t *testing.T) {
	instance := operatortest.Start(t)
	c := newCluster(t, instance)
	lag := operatortest.NewLag()
	lagging := clusterOf(t, lag.Wrap(instance.RESTConfig()), c.namespace)
	_, stop := c.process(c.source(), framework.Config{})
	c.create(c.parent("p", "old", "a"))
	operatortest.Eventually(t, "the child is there", c.hasChildren("p", "p-a old"))
	stop()
	source := warm(t, lagging, lag)
	_, stop = c.process(c.source(), framework.Config{})
	c.delete("p")
	operatortest.Eventually(t, "the object is gone", c.gone("p"))
	stop()

	observed, stop := c.process(source, framework.Config{})
	operatortest.Eventually(t, "the object that is gone was reconciled", func() bool { return len(observed.taken()) > 0 })
	stop() // before the server has caught up
	_, stop = c.process(c.source(), framework.Config{})
	c.create(c.parent("marker", "x", "y"))
	operatortest.Eventually(t, "a later process has reconciled what is there", c.hasChildren("marker", "marker-y x"))
	stop()
	if left := c.childrenOf("p"); len(left) > 0 {
		t.Errorf("there are %v for ever", left)
	}
}

// warm returns a source that has listed, and is told of nothing from now on, as the cache of a replica
// that waits for its turn beside a server that lags.
func warm(t *testing.T, c *cluster, lag *operatortest.Lag) informer.Source {
	t.Helper()
	source := c.source()
	go func() { _ = source.Run(t.Context()) }()
	if err := source.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	lag.Hold(nil)
	return source
}

// replace deletes the object of a name, waits until it is gone, and makes another one.
func (c *cluster) replace(obj *corev1.ConfigMap) {
	c.t.Helper()
	if err := client.IgnoreNotFound(c.Delete(c.t.Context(), c.object(obj.Name))); err != nil {
		c.t.Fatal(err)
	}
	operatortest.Eventually(c.t, "the earlier object is gone", c.gone(obj.Name))
	c.create(obj)
}
