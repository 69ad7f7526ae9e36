package serviceprovider_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
)

// knowing is access that depends on the object and the config.
type knowing struct {
	*simpleAccess
	data func(context.Context, ctrl.Request) (string, error)

	mu   sync.Mutex
	seen []string
}

func (a *knowing) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	data, err := a.data(ctx, request)
	if err != nil {
		return ctrl.Result{}, err
	}
	a.mu.Lock()
	a.seen = append(a.seen, data)
	a.mu.Unlock()
	return a.simpleAccess.Reconcile(ctx, request)
}

func TestAccessIsAskedForWithDataOfTheObjectAndTheConfig(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{Version: "16"})
	var broken error
	access := &knowing{simpleAccess: w.access, data: serviceprovider.AccessData(func(obj *Postgres, config *ProviderConfig) (string, error) {
		data := fmt.Sprintf("%s of size %d with %s", obj.Name, obj.Spec.Size, config.Spec.Version)
		obj.Spec.Size, config.Spec.Version = -1, "changed" // both are copies
		return data, broken
	})}
	r, request := w.build(func(b *builder) { b.ClusterAccessReconciler(access) }), w.order("db", 3)
	settle(t, r, request)
	w.tells("db", "Ready/True/Ready")
	if len(access.seen) == 0 || access.seen[len(access.seen)-1] != "db of size 3 with 16" {
		t.Errorf("access was asked for with %q", access.seen)
	}
	if got := w.data(mcp, "db"); got["size"] != "3" || got["version"] != "16" {
		t.Errorf("what the data are computed from is not a copy: %v", got)
	}

	broken = errors.New("no such tier")
	if _, err := r.Reconcile(t.Context(), request); !errors.Is(err, broken) {
		t.Errorf("err = %v", err)
	}
	w.tells("db", "Progressing/False/ReconcileFailed", "no such tier")
	broken = nil
	access.seen = nil
	w.delete("db")
	settle(t, r, request)
	if w.has(onboarding, w.named("db")) || len(access.seen) == 0 {
		t.Errorf("the deletion was not finished, with %q", access.seen)
	}
	if _, err := access.data(t.Context(), request); !errors.Is(err, framework.ErrExecutionFailed) || !strings.Contains(err.Error(), "Postgres") {
		t.Errorf("outside of a reconciliation, err = %v", err)
	}
}

func TestOnlyObjectsInNamespacesThatThePredicateHoldsForAreServed(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	var asked atomic.Int64
	r := w.build(func(b *builder) {
		b.NamespacePredicate(func(namespace *metav1.PartialObjectMetadata) bool {
			asked.Add(1)
			return namespace.Labels["tier"] == "gold"
		})
	})
	label := func(tier string) {
		t.Helper()
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
		w.patch(onboarding, namespace, fmt.Sprintf(`{"metadata":{"labels":{"tier":%q}}}`, tier))
	}
	request := w.order("db", 3)
	settle(t, r, request)
	if p := w.get("db"); len(p.Finalizers) > 0 || told(p) != "//" || len(w.author.all()) > 0 {
		t.Errorf("an object elsewhere has the finalizers %q, says %s, and the author was called: %q", p.Finalizers, told(p), w.author.all())
	}

	asked.Store(0)
	w.run(r)
	operatortest.Eventually(t, "the provider has looked at the object", func() bool { return asked.Load() > 0 })
	label("gold")
	w.eventuallyTells("db", "Ready/True/Ready")
	label("silver")
	calls := len(w.author.all())
	w.patch(onboarding, w.named("db"), `{"spec":{"size":4}}`)
	settle(t, w.build(func(b *builder) {
		b.NamespacePredicate(func(*metav1.PartialObjectMetadata) bool { return false })
	}), request)
	if p := w.get("db"); p.ObservedGeneration == p.Generation || len(w.author.all()) != calls {
		t.Error("an object is served although its namespace is not any more")
	}
	w.delete("db")
	w.eventuallyGone("db")
	operatortest.Eventually(t, "it was cleaned up", func() bool { return !w.isThere(mcp, "db") })
}
