package clusteraccess_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

var _ serviceprovider.KindAccessProvider = (*clusteraccess.Provider)(nil)

// The kinds of two APIs of one service provider.
var (
	postgreses = schema.GroupKind{Group: "services.example.com", Kind: "Postgres"}
	backups    = schema.GroupKind{Group: "services.example.com", Kind: "Backup"}
)

// serving is a provider for the objects of a kind.
func (w *world) serving(kind schema.GroupKind) *clusteraccess.Provider {
	w.t.Helper()
	p := w.newProvider(func(c *clusteraccess.ProviderConfig) { c.Workload = nil })
	if err := p.ServeKind(kind); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// requestsFor returns what a provider asked for.
func (w *world) requestsFor(p *clusteraccess.Provider, request reconcile.Request) (*v1alpha1.AccessRequest, *v1alpha1.ClusterRequest) {
	w.t.Helper()
	ar, err := p.MCPAccessRequest(w.t.Context(), request)
	if err != nil {
		w.t.Fatal(err)
	}
	cr, err := p.ClusterRequest(w.t.Context(), request, clusteraccess.MCP)
	if err != nil {
		w.t.Fatal(err)
	}
	return ar, cr
}

func TestR16APIsOfOneProviderLeaveEachOthersAccessAlone(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	databases, copies, request := w.serving(postgreses), w.serving(backups), object("db")
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer time.AfterFunc(2*time.Minute, queue.ShutDown).Stop() // else a change that nobody is told of is waited for without end
	defer queue.ShutDown()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := copies.Changes().Start(ctx, queue); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.done("access is granted for a Postgres", databases.Reconcile, request)
	ar, cr := w.requestsFor(databases, request)
	w.done("nothing is left of a Backup of that name, which is not there", copies.ReconcileDelete, request)
	if _, err := copies.MCPAccessRequest(t.Context(), request); !apierrors.IsNotFound(err) {
		t.Errorf("the access of the Postgres is that of the Backup: %v", err)
	}

	other := object("nightly")
	w.done("access is granted for a Backup", copies.Reconcile, other)
	if told, _ := queue.Get(); told != other {
		t.Errorf("the controller of Backups is told of %v", told)
	}
	w.done("access is granted for a Backup of the same name", copies.Reconcile, request)
	if theirs, _ := w.requestsFor(copies, request); theirs.UID == ar.UID {
		t.Error("two objects have one access")
	}
	w.done("access is taken away from the Backup", copies.ReconcileDelete, request)
	w.done("the Postgres keeps its access", databases.Reconcile, request)
	if kept, keptCluster := w.requestsFor(databases, request); kept.UID != ar.UID || keptCluster.UID != cr.UID {
		t.Errorf("the Postgres has other requests than before: %s and %s", kept.Name, keptCluster.Name)
	}
	w.done("access is taken away from the Postgres", databases.ReconcileDelete, request)
	w.done("access is taken away from the other Backup", copies.ReconcileDelete, other)
	w.wantNothingLeft()
}

// TestR16WhatTellsNoKindComesAfterWhatTellsOnesOwn: somebody has taken off the annotations of the access of an object of another kind.
func TestR16WhatTellsNoKindComesAfterWhatTellsOnesOwn(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	databases, copies, request := w.serving(postgreses), w.serving(backups), object("db")
	w.start()
	w.done("access is granted for a Postgres", databases.Reconcile, request)
	w.done("access is granted for a Backup", copies.Reconcile, request)
	database, databaseCluster := w.requestsFor(databases, request)
	backup, backupCluster := w.requestsFor(copies, request)
	for _, tt := range []struct {
		kind                 schema.GroupKind
		own, other           *v1alpha1.AccessRequest
		cluster, lostCluster *v1alpha1.ClusterRequest
		lost                 *clusteraccess.Provider
	}{
		{postgreses, database, backup, databaseCluster, backupCluster, copies}, // one of the two comes first in a list
		{backups, backup, database, backupCluster, databaseCluster, databases},
	} {
		for _, o := range []client.Object{tt.other.DeepCopy(), tt.lostCluster.DeepCopy()} {
			w.patch(o, `{"metadata":{"annotations":null}}`)
		}
		ar, cr := w.requestsFor(w.serving(tt.kind), request)
		if ar.UID != tt.own.UID || cr.UID != tt.cluster.UID {
			t.Errorf("a %s gets the access of another kind: %s and %s", tt.kind.Kind, ar.Name, cr.Name)
		}
		operatortest.Eventually(t, "the other one tells its kind again", func() error {
			_, err := tt.lost.Reconcile(t.Context(), request)
			for _, o := range []client.Object{tt.other.DeepCopy(), tt.lostCluster.DeepCopy()} {
				err = errors.Join(err, w.user.Get(t.Context(), client.ObjectKeyFromObject(o), o))
				if o.GetAnnotations()[clusteraccess.KindAnnotation] == "" {
					err = errors.Join(err, fmt.Errorf("%T %s does not", o, o.GetName()))
				}
			}
			return err
		})
	}
}

// TestWhatWasAskedForBeforeTheKindWasKnownIsTakenOver: an older version did not say it.
func TestWhatWasAskedForBeforeTheKindWasKnownIsTakenOver(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	older, request := w.newProvider(func(c *clusteraccess.ProviderConfig) { c.Workload = nil }), object("db")
	w.start()
	w.done("access is granted by an older version", older.Reconcile, request)
	ar, cr := w.requestsFor(older, request)
	newer := w.serving(postgreses)
	told := func(what string) {
		t.Helper()
		operatortest.Eventually(t, what, func() error {
			_, err := newer.Reconcile(t.Context(), request)
			taken, cluster := w.requestsFor(newer, request)
			kind := postgreses.String()
			if err == nil && (taken.Annotations[clusteraccess.KindAnnotation] != kind || cluster.Annotations[clusteraccess.KindAnnotation] != kind) {
				err = errors.New("it is not")
			}
			return err
		})
	}
	told("the kind is told")
	w.patch(ar, `{"metadata":{"annotations":null}}`)
	operatortest.Eventually(t, "the provider knows that somebody has taken the annotations off", func() bool {
		known, _ := w.requestsFor(newer, request)
		return len(known.Annotations) == 0
	})
	told("the kind is told again")
	taken, cluster := w.requestsFor(newer, request)
	if diff := cmp.Diff([]any{ar.UID, cr.UID, ar.Spec}, []any{taken.UID, cluster.UID, taken.Spec}); diff != "" {
		t.Errorf("the requests (-before +after):\n%s", diff)
	}
	w.done("the access stays", newer.Reconcile, request)
	w.patch(taken, `{"metadata":{"labels":null}}`)
	operatortest.Eventually(t, "requests with names of older versions that have lost their labels are told", func() error {
		if _, err := newer.ReconcileDelete(t.Context(), request); err == nil {
			return errors.New("they are not")
		}
		return nil
	})
	if err := w.user.Delete(t.Context(), taken); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	w.done("access is taken away", newer.ReconcileDelete, request)
	w.wantNothingLeft()
}

func TestAProviderServesOneKind(t *testing.T) {
	w := newWorld(t)
	p := w.serving(postgreses)
	if err := p.ServeKind(postgreses); err != nil {
		t.Error(err)
	}
	if err := p.ServeKind(backups); !framework.IsInvalidConfig(err) {
		t.Errorf("err = %v, want one that says that it serves another kind", err)
	}
}
