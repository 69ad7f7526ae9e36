package clusteraccess_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

var _ serviceprovider.OnboardingAccessProvider = (*clusteraccess.Provider)(nil)

// installation is a provider of the same names as all others, for the objects in an onboarding cluster.
func (w *world) installation(onboarding *rest.Config) *clusteraccess.Provider {
	w.t.Helper()
	p := w.newProvider(func(c *clusteraccess.ProviderConfig) { c.Workload = nil })
	cluster, err := clusters.New("onboarding", onboarding, w.scheme)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := errors.Join(p.ServeKind(postgreses), p.ServeOnboarding(cluster)); err != nil {
		w.t.Fatal(err)
	}
	return p
}

func TestR16TwoInstallationsOfOneNameLeaveEachOthersAccessAlone(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	w.start()
	request, other := object("db"), object("other")
	first, second := w.installation(w.kube.RESTConfig()), w.installation(w.remote.RESTConfig())
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer time.AfterFunc(2*time.Minute, queue.ShutDown).Stop()
	defer queue.ShutDown()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.done("access is granted for an object of the second cluster", second.Reconcile, other) // from now on it knows its cluster
	if err := second.Changes().Start(ctx, queue); err != nil {
		t.Fatal(err)
	}
	w.done("access is granted for an object of the first cluster", first.Reconcile, request)
	ar, cr := w.requestsFor(first, request)
	w.done("nothing is left of an object of that name in the second cluster, which is not there", second.ReconcileDelete, request)
	if _, err := second.MCPAccessRequest(t.Context(), request); !apierrors.IsNotFound(err) {
		t.Errorf("the access of the first installation is that of the second one: %v", err)
	}
	w.done("access is taken away from the object of the second cluster", second.ReconcileDelete, other)
	for told := (reconcile.Request{}); told != other; { // whose end comes after what the first one did
		if told, _ = queue.Get(); told == request {
			t.Error("the second installation is told of the access of the first one")
		}
		queue.Done(told)
	}

	w.done("access is granted for an object of the same name in the second cluster", second.Reconcile, request)
	if theirs, _ := w.requestsFor(second, request); theirs.UID == ar.UID {
		t.Error("two objects have one access")
	}
	w.done("access is taken away from the one in the second cluster", second.ReconcileDelete, request)
	w.done("the one in the first cluster keeps its access", first.Reconcile, request)
	if kept, keptCluster := w.requestsFor(first, request); kept.UID != ar.UID || keptCluster.UID != cr.UID {
		t.Errorf("it has other requests than before: %s and %s", kept.Name, keptCluster.Name)
	}

	w.patch(ar.DeepCopy(), `{"metadata":{"annotations":null}}`)
	w.done("the second one takes nothing away that names no cluster", second.ReconcileDelete, request)
	w.done("the first one knows it by its name", first.ReconcileDelete, request)
	w.wantGone(ar)
	w.wantNothingLeft()
}

func TestWhatWasAskedForBeforeTheClusterWasNamedIsAdopted(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	w.start()
	request := object("db")
	older := w.serving(postgreses)
	w.done("access is granted by an older version", older.Reconcile, request)
	ar, cr := w.requestsFor(older, request)
	stranger := w.installation(w.remote.RESTConfig())
	w.done("another installation does not touch it", stranger.ReconcileDelete, request)
	newer := w.installation(w.kube.RESTConfig())
	operatortest.Eventually(t, "it is adopted", func() error {
		if _, err := newer.Reconcile(t.Context(), request); err != nil {
			return err
		}
		taken, err := newer.MCPAccessRequest(t.Context(), request)
		if err == nil && taken.UID != ar.UID {
			err = fmt.Errorf("it is %s", taken.Name)
		}
		return err
	})
	w.done("it keeps its access", newer.Reconcile, request)
	if taken, cluster := w.requestsFor(newer, request); taken.UID != ar.UID || cluster.UID != cr.UID {
		t.Errorf("it has other requests than before: %s and %s", taken.Name, cluster.Name)
	}
	w.done("access is taken away", newer.ReconcileDelete, request)
	w.wantGone(ar)
	w.wantNothingLeft()
}

func TestWithoutTheNameOfTheClusterNothingIsAskedForOrTakenAway(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	faults := operatortest.NewFaults()
	p := w.installation(faults.Wrap(w.kube.RESTConfig()))
	denied := faults.On(func(r operatortest.Request) bool {
		return r.Resource == "namespaces" && r.Name == metav1.NamespaceSystem
	}, operatortest.Answer(
		apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, metav1.NamespaceSystem, errors.New("no right"))))
	for what, do := range map[string]func(context.Context, reconcile.Request) (reconcile.Result, error){"Reconcile": p.Reconcile, "ReconcileDelete": p.ReconcileDelete} {
		if _, err := do(t.Context(), object("db")); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the right to get it") {
			t.Errorf("%s: got error %v, want one that names the right that is lacking", what, err)
		}
	}
	list := &v1alpha1.AccessRequestList{}
	if err := w.user.List(t.Context(), list, client.InNamespace(w.namespace)); err != nil || len(list.Items) > 0 {
		t.Errorf("%d requests were made: %v", len(list.Items), err)
	}
	denied.Remove()
	if _, err := p.Reconcile(t.Context(), object("db")); err != nil {
		t.Error(err)
	}
	elsewhere, err := clusters.New("elsewhere", w.remote.RESTConfig(), w.scheme)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.ServeOnboarding(elsewhere); !framework.IsInvalidConfig(err) {
		t.Errorf("err = %v, want one that says that it serves another cluster", err)
	}
}

func TestAGrantOfAFormerGenerationIsNotHandedOut(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	stop := w.start()
	request := object("db")
	p := w.newProvider(func(c *clusteraccess.ProviderConfig) { c.Workload = nil })
	w.done("access is granted", p.Reconcile, request)
	if _, err := p.MCPCluster(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	stop() // nobody looks at what is asked for now
	ar, _ := w.requestsFor(p, request)
	w.patch(ar, `{"spec":{"permissions":[]}}`)
	operatortest.Eventually(t, "the cluster is not handed out", func() error {
		if _, err := p.MCPCluster(t.Context(), request); err == nil || !strings.Contains(err.Error(), "is not granted") {
			return fmt.Errorf("err = %w", err)
		}
		return nil
	})
}

func TestARequestOfSomebodyElseWithANameOfOursHoldsUpNoDeletion(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	w.start()
	request := object("db")
	p := w.newProvider(func(c *clusteraccess.ProviderConfig) { c.Workload = nil })
	w.done("access is granted", p.Reconcile, request)
	ar, cr := w.requestsFor(p, request)
	w.done("access is taken away", p.ReconcileDelete, request)
	w.wantGone(ar)
	theirs := newAccess(ar.Name, "c")
	theirsToo := newRequest(cr.Name, "workload", nil)
	w.create(theirs, theirsToo)
	w.done("nothing is left of ours", p.ReconcileDelete, request)
	for _, o := range []client.Object{theirs, theirsToo} {
		if err := w.user.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil || o.GetDeletionTimestamp() != nil {
			t.Errorf("what is somebody else's was deleted: %v", err)
		}
	}
}
