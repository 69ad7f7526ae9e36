package objectresource_test

import (
	"context"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestR11AnObjectThatAListLacksIsNotSetBackForAnOlderPrimary(t *testing.T) {
	k := newKit(t)
	old := k.primary("home")
	p := old.DeepCopy()
	k.patch(p, `{"data":{"text":"new"}}`)
	source := k.source(&corev1.ConfigMap{}, func(*informer.KubernetesConfig) {})
	lacking := k.source(&corev1.ConfigMap{}, func(c *informer.KubernetesConfig) {
		c.LabelSelector = labels.SelectorFromSet(labels.Set{"listed": "no"})
	})
	r := k.resource(nil, stores(lacking), func(c *config) {
		c.Desired = func(_ context.Context, p primary) ([]client.Object, error) {
			child := k.meta("child")
			child.Data = map[string]string{"text": p.Data["text"]}
			return []client.Object{child}, nil
		}
	})
	reconcile := func(r framework.Resource, p primary) error {
		f, err := framework.New(framework.Config{Source: source, Driven: true, Logger: k.logger(), Resources: []framework.Resource{r}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.ReconcileObject(t.Context(), p)
		return err
	}
	create := sync.OnceFunc(func() {
		if err := reconcile(r, p); err != nil {
			t.Error(err)
		}
	})
	overtaken := framework.WrapSteps(r, func(ctx context.Context, info framework.StepInfo, next func(context.Context) error) error {
		if info.Step == framework.StepApplyCreateChange {
			create()
		}
		return next(ctx)
	})

	if err := reconcile(overtaken, old); !apierrors.IsConflict(err) {
		t.Errorf("a reconciliation of the older primary, during which the object appears, ends with %v, want a conflict", err)
	}
	if child, exists := k.configMap("child"); !exists || child.Data["text"] != "new" {
		t.Errorf("the object is %v, want the text of the newer primary", child.Data)
	}
}

func TestR11AnObjectThatAListLacksDoesNotOutliveItsPrimary(t *testing.T) {
	for name, wait := range map[string]bool{"its deletion is waited for": true, "it is not": false} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			p := k.primary("home")
			other := operatortest.Start(t).Namespace(t)
			child := func(name string) *corev1.ConfigMap {
				return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: name, Labels: map[string]string{"listed": name}}}
			}
			lacking := k.source(&corev1.ConfigMap{}, func(c *informer.KubernetesConfig) {
				c.Namespaces = []string{other}
				c.LabelSelector = labels.SelectorFromSet(labels.Set{"listed": "yes"})
			})
			r := k.resource(just(child("yes"), child("no")), stores(lacking), func(c *config) {
				c.WaitForDeletion, c.Namespaces = wait, func(primary) []string { return []string{other} }
			})
			k.update(r, p)
			k.until("the store has the one that is listed", func() bool { return lacking.Status().Objects == 1 })

			now := metav1.Now()
			p.DeletionTimestamp = &now
			k.until("the primary may go", func() bool { return !k.deletionOf(r, p) })
			for _, name := range []string{"yes", "no"} {
				if _, exists := read(k, child(name)); exists {
					t.Errorf("%s is still there, and the primary may go", name)
				}
			}
		})
	}
}
