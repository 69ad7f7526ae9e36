package serviceprovider_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/operatorkit/operatorkit/operator/serviceprovider"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
	clustersv1alpha1 "github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

func TestAccessIsWaitedForAsItsProviderAsks(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	w.access.ungranted = true
	r, request := w.build(), w.order("db", 3)
	result, err := r.Reconcile(t.Context(), request)
	if err != nil || result != (ctrl.Result{RequeueAfter: accessPause}) {
		t.Errorf("result %v, error %v; want to be called again after %s", result, err, accessPause)
	}
	w.tells("db", "Progressing/False/AccessPending", "the mcp cluster", "it was not looked at yet")
	if len(w.author.all()) != 0 {
		t.Errorf("the author was called: %q", w.author.all())
	}
	w.access.ungranted = false
	settle(t, r, request)
	w.tells("db", "Ready/True/Ready")
}

func TestAccessThatIsDeniedIsToldWithItsReason(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	w.access.ungranted = true
	r, request := w.build(), w.order("db", 3)
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKey{Namespace: w.namespace, Name: "db-mcp"}
	if err := say(t.Context(), planes[platform].user, key, clustersv1alpha1.PhaseDenied, "secrets are not allowed"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	w.tells("db", "Progressing/False/AccessDenied", "the mcp cluster", "Policy")
	if !w.events.told("Warning AccessDenied", "the mcp cluster", "Policy") {
		t.Errorf("there is no event: %q", w.events.all)
	}
}

// TestAccessOfOtherNamespacesIsNoReasonToReconcile: their objects are another version's, which has the same access requests.
func TestAccessOfOtherNamespacesIsNoReasonToReconcile(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	served, canary, request := w.build(), w.build(func(b *builder) { b.Namespaces("elsewhere") }), w.order("db", 3)
	settle(t, canary, request)
	if p := w.get("db"); len(p.Finalizers) > 0 || told(p) != "//" || len(w.author.all()) > 0 || w.accessOf(request, mcp) != nil {
		t.Errorf("an object elsewhere has the finalizers %q, says %s, access was asked for, or the author was called: %q", p.Finalizers, told(p), w.author.all())
	}
	settle(t, served, request)
	w.patch(onboarding, w.named("db"), `{"metadata":{"finalizers":null}}`)
	w.delete("db")
	settle(t, canary, request)
	if w.accessOf(request, mcp) == nil {
		t.Error("the access of an object elsewhere was taken away")
	}
	settle(t, served, request)
	if w.accessOf(request, mcp) != nil {
		t.Error("access is left")
	}
}

func TestAccessThatFailsIsAnErrorAndTold(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	broken := errors.New("no quota for access requests")
	w.access.fail = func() error { return broken }
	r, request := w.build(), w.order("db", 3)
	if _, err := r.Reconcile(t.Context(), request); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	w.tells("db", "Progressing/False/ReconcileFailed", "no quota")

	w.access.fail = func() error { panic("in the access provider") }
	if _, err := r.Reconcile(t.Context(), request); err == nil {
		t.Error("the panic of the access provider is no error")
	}
	w.tells("db", "Progressing/False/ReconcileFailed", "panic: value of type string in", "access_test.go")
	w.access.fail = nil
	settle(t, r, request)
	w.tells("db", "Ready/True/Ready")
}

func TestAccessIsWaitedForInAFixedOrder(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	w.access.ungranted = true
	r, request := w.build(w.withWorkload), w.order("db", 3)
	for range 5 {
		if _, err := r.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		w.tells("db", "Progressing/False/AccessPending", "the mcp cluster")
	}
	ar, err := w.access.request(t.Context(), request, mcp)
	if err != nil {
		t.Fatal(err)
	}
	if err := grant(t.Context(), planes[platform].user, ar, mcp); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	w.tells("db", "Progressing/False/AccessPending", "the workload cluster")
}

// telling is access that tells of its changes, and can wait an hour.
type telling struct {
	*simpleAccess
	changes chan event.GenericEvent
}

func (a telling) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	result, err := a.simpleAccess.Reconcile(ctx, request)
	if result.RequeueAfter > 0 {
		result.RequeueAfter = time.Hour
	}
	return result, err
}

func (a telling) Changes() source.Source {
	return source.Channel(a.changes, &handler.EnqueueRequestForObject{})
}

func TestAccessThatTellsOfItsChangesIsNotWaitedForInVain(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	w.access.ungranted = true
	access := telling{w.access, make(chan event.GenericEvent, 1)}
	w.run(w.build(func(b *builder) { b.ClusterAccessReconciler(access) }))
	request := w.order("db", 3)
	w.eventuallyTells("db", "Progressing/False/AccessPending")
	ar, err := w.access.request(t.Context(), request, mcp)
	if err != nil {
		t.Fatal(err)
	}
	if err := grant(t.Context(), planes[platform].user, ar, mcp); err != nil {
		t.Fatal(err)
	}
	access.changes <- event.GenericEvent{Object: w.named("db")}
	w.eventuallyTells("db", "Ready/True/Ready")
}

// further is access to a further cluster, which is where the workload cluster is.
type further struct{ *simpleAccess }

func (a further) AdditionalCluster(ctx context.Context, request ctrl.Request, id string) (*clusters.Cluster, error) {
	return a.cluster(ctx, request, id)
}

func (a further) AdditionalAccessRequest(ctx context.Context, request ctrl.Request, id string) (*clustersv1alpha1.AccessRequest, error) {
	return a.request(ctx, request, id)
}

func TestAdditionalClustersAreThereByTheirID(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	w.access.ids = []string{mcp, "backup"}
	w.access.place = func(_, id string) string {
		if id == "backup" {
			return workload
		}
		return id
	}
	both := func(do authorFunc) authorFunc {
		return func(ctx context.Context, obj *Postgres, config *ProviderConfig, found clusterCtx) (ctrl.Result, error) {
			if got, want := found.Additional["backup"].AccessSecretKey.String(), w.namespace+"/db-backup"; got != want {
				t.Errorf("the Secret with the kubeconfig is %q, want %q", got, want)
			}
			found.WorkloadCluster = found.Additional["backup"].Cluster
			return do(ctx, obj, config, found)
		}
	}
	w.author.createOrUpdate, w.author.del = both(deploy), both(undeploy)
	r := w.build(func(b *builder) { b.ClusterAccessReconciler(further{w.access}).AdditionalClusters("backup") })
	request := w.order("db", 3)
	settle(t, r, request)
	w.tells("db", "Ready/True/Ready")
	if !w.isThere(mcp, "db") || !w.isThere(workload, "db") {
		t.Error("the object should be in the MCP and in the additional cluster")
	}
	w.delete("db")
	settle(t, r, request)
	if slices.ContainsFunc([]string{mcp, workload}, func(role string) bool { return w.isThere(role, "db") }) || w.has(onboarding, w.named("db")) {
		t.Error("something is left")
	}
	if _, err := w.builder().AdditionalClusters("backup").Build(); err == nil {
		t.Error("additional clusters are accepted without an AdditionalAccessProvider")
	}
}

func TestOperationIgnoreLeavesTheObjectAlone(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{Version: "15"})
	r, request := w.build(), w.order("db", 3)
	settle(t, r, request)
	before := w.get("db").ResourceVersion
	for _, annotation := range []string{serviceprovider.OperationAnnotation + `":"ignore"`, `operatorkit.io/paused":"true"`} {
		w.annotate("db", `"`+annotation)
		calls := len(w.author.all())
		settle(t, r, request)
		if len(w.author.all()) != calls {
			t.Errorf("with %s the author was called", annotation)
		}
		w.annotate("db", `"operatorkit.io/paused":null,"`+serviceprovider.OperationAnnotation+`":null`)
	}
	w.annotate("db", `"`+serviceprovider.OperationAnnotation+`":"ignore"`)
	w.delete("db")
	settle(t, r, request)
	if !w.has(onboarding, w.named("db")) || !w.isThere(mcp, "db") {
		t.Error("a deletion went on although the object is to be ignored")
	}
	w.annotate("db", `"`+serviceprovider.OperationAnnotation+`":null`)
	settle(t, r, request)
	if w.has(onboarding, w.named("db")) || before == "" {
		t.Error("the deletion did not go on without the annotation")
	}
}

func TestOperationReconcileIsDroppedAndDone(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	r, request := w.build(), w.order("db", 3)
	settle(t, r, request)
	w.annotate("db", `"`+serviceprovider.OperationAnnotation+`":"reconcile","a":"b"`)
	calls := len(w.author.all())
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	annotations := w.get("db").Annotations
	if _, still := annotations[serviceprovider.OperationAnnotation]; still || annotations["a"] != "b" || len(w.author.all()) != calls+1 {
		t.Errorf("annotations %q, %d calls", annotations, len(w.author.all())-calls)
	}
}

func TestOperationThatMeansNothingIsToldAndNothingElse(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	w.create(onboarding, newPostgres("db", 3))
	w.annotate("db", `"`+serviceprovider.OperationAnnotation+`":"explode"`)
	settle(t, w.build(), w.requestOf("db"))
	w.tells("db", "Ready/True/Ready")
	if !w.events.told("InvalidAnnotation", "explode") {
		t.Errorf("there is no event: %q", w.events.all)
	}
}
