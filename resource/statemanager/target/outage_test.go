package target_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// refused returns how many requests were not sent because a cluster was known to be unreachable.
func (w *world) refused() float64 {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "operatorkit_target_requests_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			if m.GetLabel()[0].GetValue() == "refused" {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// TestOneOfThreeClustersIsKilledAndComesBack kills the control plane of one target cluster under its watch and its requests.
func TestOneOfThreeClustersIsKilledAndComesBack(t *testing.T) {
	w := newWorld(t, nil)
	remote := operatortest.Start(t, operatortest.Dedicated())
	far := w.connected(w.deploy("far", administrator(t, remote, "first")))
	near := []*target.Cluster{
		w.connected(w.deploy("one", administrator(t, w.kube, "one"))), w.connected(w.deploy("two", administrator(t, w.kube, "two"))),
	}
	admin := newClient(t, remote.RESTConfig())
	a, err := far.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if b, err := near[0].Identity(t.Context()); err != nil || a == b {
		t.Errorf("identities %q and %q, %v", a, b, err)
	}
	const namespace = "default"
	w.watch(far, user, configMaps(namespace))

	if err := remote.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	// Nobody sends a request: the end of the watch is enough to notice it.
	w.told("the loss is told", func(n target.Notice) bool { return n.Cluster == far.Key() && n.State == target.Unreachable })
	sent := w.counts.of(far.Key(), "configmaps")
	const requests = 50
	for i := range requests {
		key := client.ObjectKey{Namespace: namespace, Name: fmt.Sprint("x-", i)}
		u := unreachable(t, far.Client().Get(t.Context(), key, &corev1.ConfigMap{}))
		if u.State != target.Unreachable || u.NextTry.IsZero() {
			t.Fatalf("error = %+v", u)
		}
		for _, c := range near {
			if err := c.Client().Get(t.Context(), key, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
				t.Fatalf("%s: %v, want an answer", c.Key(), err)
			}
		}
	}
	if got := w.counts.of(far.Key(), "configmaps") - sent; got != 0 {
		t.Errorf("%d requests were sent to the cluster that is dead", got)
	}
	for _, c := range near {
		if got := w.counts.of(c.Key(), "/configmaps/x-"); got != requests {
			t.Errorf("%d requests were sent to %s, want %d", got, c.Key(), requests)
		}
		if c.Health().State != target.Connected {
			t.Errorf("%s is %+v", c.Key(), c.Health())
		}
	}

	w.forget()
	if err := remote.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.told("the return is told", func(n target.Notice) bool { return n.Cluster == far.Key() && n.State == target.Connected })
	if got := w.refused(); got != requests {
		t.Errorf("%v requests were refused, want the %d of this test: watches wait without asking", got, requests)
	}
	if err := admin.Create(t.Context(), configMap(namespace, "new", user)); err != nil {
		t.Fatal(err)
	}
	w.told("the watch goes on", changeOf("new"))
	if err := far.Client().Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "new"}, &corev1.ConfigMap{}); err != nil {
		t.Errorf("request after the return: %v", err)
	}

	// Another cluster has taken its place, on which nothing of all this is.
	w.forget()
	w.rotate("far", administrator(t, w.kube, "first"))
	w.told("what the other cluster does not have is told", changeOf("new"))
	operatortest.Eventually(t, "it is another cluster", func() bool {
		b, err := far.Identity(t.Context())
		return err == nil && b != "" && b != a
	})
}
