package serviceprovider_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
	clustersv1alpha1 "github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// ready is a world with a Postgres that is ready, in the MCP and the workload cluster.
func ready(t *testing.T) (*world, *reconciler, ctrl.Request) {
	t.Helper()
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	r, request := w.build(w.withWorkload), w.order("db", 3)
	settle(t, r, request)
	w.tells("db", "Ready/True/Ready")
	return w, r, request
}

// accessOf returns the access request for a cluster, or nil.
func (w *world) accessOf(request ctrl.Request, id string) *clustersv1alpha1.AccessRequest {
	w.t.Helper()
	ar := &clustersv1alpha1.AccessRequest{}
	ar.Namespace, ar.Name = w.namespace, request.Name+"-"+id
	if !w.has(platform, ar) {
		return nil
	}
	return ar
}

func TestDeletionLeavesNothingBehind(t *testing.T) {
	w, r, request := ready(t)
	w.delete("db")
	settle(t, r, request)
	if w.has(onboarding, w.named("db")) || w.isThere(mcp, "db") || w.isThere(workload, "db") {
		t.Error("something is left")
	}
	if w.accessOf(request, mcp) != nil || w.accessOf(request, workload) != nil {
		t.Error("access is left")
	}
}

func TestDeletionThatFailsIsToldAndTriedAgain(t *testing.T) {
	w, r, request := ready(t)
	broken := errors.New("disks are stuck")
	w.author.del = func(context.Context, *Postgres, *ProviderConfig, clusterCtx) (ctrl.Result, error) {
		return ctrl.Result{}, broken
	}
	w.delete("db")
	if _, err := r.Reconcile(t.Context(), request); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	w.tells("db", "Terminating/False/ReconcileFailed", "Delete: disks are stuck")

	w.author.del = func(_ context.Context, obj *Postgres, _ *ProviderConfig, _ clusterCtx) (ctrl.Result, error) {
		serviceprovider.StatusTerminatingWithReason(obj, "InUse", "by an app")
		return ctrl.Result{RequeueAfter: time.Hour}, nil
	}
	result, err := r.Reconcile(t.Context(), request)
	if err != nil || result.RequeueAfter != time.Hour {
		t.Errorf("result %v, error %v", result, err)
	}
	w.tells("db", "Terminating/False/InUse", "by an app")
	if w.accessOf(request, mcp) == nil {
		t.Error("access was taken away before the work was done")
	}
	w.author.del = undeploy
	settle(t, r, request)
	if w.has(onboarding, w.named("db")) || w.isThere(mcp, "db") {
		t.Error("something is left")
	}
}

func TestDeletionAsksForAccessAgainThatIsMissing(t *testing.T) {
	w, r, request := ready(t)
	for _, id := range []string{mcp, workload} {
		if err := planes[platform].user.Delete(t.Context(), w.accessOf(request, id)); err != nil {
			t.Fatal(err)
		}
	}
	w.delete("db")
	settle(t, r, request)
	if diff := cmp.Diff([]string{"CreateOrUpdate", "Delete"}, w.author.all()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if w.has(onboarding, w.named("db")) || w.isThere(mcp, "db") || w.isThere(workload, "db") || w.accessOf(request, mcp) != nil {
		t.Error("something is left")
	}
}

// TestDeletionKnowsAfterARestartWhatIsDone: once Delete has succeeded and access is going, nothing of that is undone.
func TestDeletionKnowsAfterARestartWhatIsDone(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	w.access.keeps = true
	r, request := w.build(), w.order("db", 3)
	settle(t, r, request)
	w.delete("db")
	result, err := r.Reconcile(t.Context(), request)
	if err != nil || result.RequeueAfter == 0 {
		t.Fatalf("result %v, error %v; want to wait for the access", result, err)
	}
	w.tells("db", "Terminating/False/AccessLeaving", "mcp")
	if diff := cmp.Diff([]string{accessFinalizer}, w.get("db").Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	r = w.build()
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"CreateOrUpdate", "Delete"}, w.author.all()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	w.patch(platform, w.accessOf(request, mcp), `{"metadata":{"finalizers":null}}`)
	settle(t, r, request)
	if w.has(onboarding, w.named("db")) {
		t.Error("the object is left")
	}
}

func TestDeletionDoesNotCallDeleteWhileAccessIsGoing(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	w.access.keeps = true
	r, request := w.build(), w.order("db", 3)
	settle(t, r, request)
	if err := planes[platform].user.Delete(t.Context(), w.accessOf(request, mcp)); err != nil {
		t.Fatal(err)
	}
	w.delete("db")
	for range 3 {
		if _, err := r.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	w.tells("db", "Terminating/False/AccessLeaving", "the mcp cluster", serviceprovider.LetGoAnnotation)
	if diff := cmp.Diff([]string{"CreateOrUpdate"}, w.author.all()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	w.access.keeps = false
	w.patch(platform, w.accessOf(request, mcp), `{"metadata":{"finalizers":null}}`)
	settle(t, r, request)
	if diff := cmp.Diff([]string{"CreateOrUpdate", "Delete"}, w.author.all()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if w.has(onboarding, w.named("db")) || w.isThere(mcp, "db") {
		t.Error("something is left")
	}
}

func TestDeletionOfAnObjectThatIsNotHeldIsNobodysBusiness(t *testing.T) {
	w := newWorld(t)
	r, request := w.build(), w.order("db", 3)
	w.patch(onboarding, w.named("db"), `{"metadata":{"finalizers":["services.example.com/other"]}}`)
	w.delete("db")
	settle(t, r, request)
	if writes := w.faults[onboarding].Writes(); len(w.author.all()) != 0 || len(writes) != 0 {
		t.Errorf("calls %q, writes %v", w.author.all(), writes)
	}
	w.patch(onboarding, w.named("db"), `{"metadata":{"finalizers":null}}`)
}

// TestAnObjectThatNeverGotAccessCanBeDeleted: nothing was done for it in a cluster, so there is nothing that Delete would have to undo.
func TestAnObjectThatNeverGotAccessCanBeDeleted(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	w.access.ungranted = true
	r, request := w.build(), w.order("db", 3)
	for range 3 {
		if result, err := r.Reconcile(t.Context(), request); err != nil || result.RequeueAfter == 0 {
			t.Fatalf("result %v, error %v; want to wait for the access", result, err)
		}
	}
	w.tells("db", "Progressing/False/AccessPending")
	if diff := cmp.Diff([]string{accessFinalizer}, w.get("db").Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	w.delete("db")
	settle(t, r, request)
	if w.has(onboarding, w.named("db")) || w.accessOf(request, mcp) != nil || len(w.author.all()) != 0 {
		t.Errorf("the object or its access is left, or the author was called: %q", w.author.all())
	}
}

func TestClusterThatIsGoneForGoodIsLetGo(t *testing.T) {
	w, r, request := ready(t)
	w.access.through = w.throughFaults
	w.faults[mcp].Cut()
	w.delete("db")
	if _, err := r.Reconcile(t.Context(), request); err == nil {
		t.Error("there is no error although the MCP does not answer")
	}
	w.tells("db", "Terminating/False/ClusterUnreachable", `"mcp"`)
	w.faults[workload].Cut()
	w.annotate("db", `"`+serviceprovider.LetGoAnnotation+`":"mcp, moon, workload"`)
	settle(t, r, request)
	if w.has(onboarding, w.named("db")) || w.accessOf(request, mcp) != nil || w.accessOf(request, workload) != nil {
		t.Error("the object or its access is left")
	}
	if !w.events.told("Warning ClusterLetGo", "mcp") || !w.events.told("InvalidAnnotation", "moon") {
		t.Errorf("events: %q", w.events.all)
	}
	if diff := cmp.Diff([]string{"CreateOrUpdate", "Delete"}, w.author.all()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// partial is an author that can clean up without some of the clusters.
type partial struct{ *author }

func (p partial) DeletePartially(ctx context.Context, obj *Postgres, config *ProviderConfig, clusters clusterCtx) (ctrl.Result, error) {
	p.note("DeletePartially", obj.Name)
	if clusters.MCPCluster != nil {
		return ctrl.Result{}, errors.New("there is a cluster that was let go")
	}
	clusters.MCPCluster = clusters.WorkloadCluster
	return undeploy(ctx, obj, config, clusters)
}

func TestOtherClustersAreCleanedUpWithoutTheOneThatIsGone(t *testing.T) {
	w, _, request := ready(t)
	r := w.build(w.withWorkload, func(b *builder) { b.Reconciler(partial{w.author}) })
	w.delete("db")
	// The request for the MCP can't be granted any more, and its granter has something left to clean up there.
	w.patch(platform, w.accessOf(request, mcp), `{"metadata":{"finalizers":["`+leavingFinalizer+`"]}}`)
	if err := planes[platform].user.Delete(t.Context(), w.accessOf(request, mcp)); err != nil {
		t.Fatal(err)
	}
	w.annotate("db", `"`+serviceprovider.LetGoAnnotation+`":"mcp"`)
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"CreateOrUpdate", "DeletePartially"}, w.author.all()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if w.isThere(workload, "db") || !w.isThere(mcp, "db") {
		t.Error("the workload cluster should have been cleaned up, and the MCP left alone")
	}
	if got := w.accessOf(request, mcp).Annotations[clustersv1alpha1.AbandonAnnotation]; got != "true" {
		t.Errorf("the request for access to the MCP is not abandoned: %q", got)
	}
	w.patch(platform, w.accessOf(request, mcp), `{"metadata":{"finalizers":null}}`)
	settle(t, r, request)
	if w.has(onboarding, w.named("db")) {
		t.Error("the object is left")
	}
}

func TestWithoutAPartialDeleterNothingIsLetGoWhileAnotherClusterIsThere(t *testing.T) {
	w, r, request := ready(t)
	w.access.through = w.throughFaults
	w.faults[mcp].Cut()
	w.annotate("db", `"`+serviceprovider.LetGoAnnotation+`":"mcp"`)
	w.delete("db")
	for range 3 {
		if result, err := r.Reconcile(t.Context(), request); err != nil || result.RequeueAfter == 0 {
			t.Fatalf("result %v, error %v; want to be called again", result, err)
		}
	}
	w.tells("db", "Terminating/False/ClustersLeft", "lets go of mcp", "clean up workload without it")
	if got := w.accessOf(request, mcp).Annotations[clustersv1alpha1.AbandonAnnotation]; got != "" || !w.isThere(workload, "db") {
		t.Errorf("access to the MCP is abandoned (%q), or the workload cluster was cleaned up, before anything can be finished", got)
	}

	// The platform says that nothing is to be cleaned up in the other one either.
	w.patch(platform, w.accessOf(request, workload), `{"metadata":{"annotations":{"`+clustersv1alpha1.AbandonAnnotation+`":"true"}}}`)
	w.annotate("db", `"`+serviceprovider.LetGoAnnotation+`":"mcp,workload"`)
	settle(t, r, request)
	if w.has(onboarding, w.named("db")) {
		t.Error("the object is left")
	}
	if diff := cmp.Diff([]string{"CreateOrUpdate"}, w.author.all()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestAClusterThatIsBackIsCleanedUpAlthoughItWasToBeLetGo(t *testing.T) {
	w, r, request := ready(t)
	w.access.through = w.throughFaults
	w.faults[mcp].Cut()
	w.annotate("db", `"`+serviceprovider.LetGoAnnotation+`":"mcp"`)
	w.delete("db")
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	w.faults[mcp].Restore()
	settle(t, r, request)
	if w.has(onboarding, w.named("db")) || w.isThere(mcp, "db") || w.isThere(workload, "db") {
		t.Error("something is left")
	}
}

// TestOnlyAClusterThatDoesNotAnswerCountsAsGone: whoever rules in a cluster can have it refuse credentials, and what goes wrong on our side says
// nothing of it.
func TestOnlyAClusterThatDoesNotAnswerCountsAsGone(t *testing.T) {
	unreachable := func(state target.State) error {
		return &target.UnreachableError{State: state, Cause: errors.New("as it is")}
	}
	for name, test := range map[string]struct {
		err  error
		lost bool
	}{
		"does not answer":         {unreachable(target.Unreachable), true},
		"no kubeconfig":           {unreachable(target.SecretMissing), true},
		"refuses the credentials": {unreachable(target.CredentialRefused), false},
		"is not run yet":          {target.ErrNotRunning, false},
		"was dropped":             {target.ErrReleased, false},
		"no time":                 {context.DeadlineExceeded, false},
		"cancelled":               {context.Canceled, false},
		"anything else":           {errors.New("no idea"), false},
	} {
		t.Run(name, func(t *testing.T) {
			w, _, request := ready(t)
			r := w.build(w.withWorkload, func(b *builder) { b.Reconciler(partial{w.author}) })
			w.access.through = func(id string, c *clusters.Cluster) (*clusters.Cluster, error) {
				if id == mcp {
					return nil, fmt.Errorf("reach it: %w", test.err)
				}
				return c, nil
			}
			w.annotate("db", `"`+serviceprovider.LetGoAnnotation+`":"mcp"`)
			w.delete("db")
			if _, err := r.Reconcile(t.Context(), request); test.lost != (err == nil) {
				t.Errorf("the error is %v", err)
			}
			want := []string{"CreateOrUpdate"}
			if test.lost {
				want = append(want, "DeletePartially")
			}
			if diff := cmp.Diff(want, w.author.all()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			w.access.through = nil
			settle(t, r, request)
			if w.has(onboarding, w.named("db")) || w.isThere(workload, "db") || !test.lost && w.isThere(mcp, "db") {
				t.Error("something is left")
			}
		})
	}
}

func TestDeletionIsOverWhenTheAnswerToTheLastWriteIsLost(t *testing.T) {
	w, r, request := ready(t)
	w.delete("db")
	w.faults[onboarding].On(func(r operatortest.Request) bool { return r.Verb == "patch" && r.Subresource == "" }, operatortest.FailAfter()).Times(1)
	if _, err := r.Reconcile(t.Context(), request); err == nil {
		t.Error("the lost answer is no error")
	}
	settle(t, r, request)
	if diff := cmp.Diff([]string{"CreateOrUpdate", "Delete"}, w.author.all()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestAClusterThatAnswersIsNotLetGo(t *testing.T) {
	w, r, request := ready(t)
	w.access.through = w.throughFaults
	w.annotate("db", `"`+serviceprovider.LetGoAnnotation+`":"mcp"`)
	w.delete("db")
	settle(t, r, request)
	if diff := cmp.Diff([]string{"CreateOrUpdate", "Delete"}, w.author.all()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if w.has(onboarding, w.named("db")) || w.isThere(mcp, "db") {
		t.Error("something is left")
	}
	if w.events.told("Warning ClusterLetGo", "mcp") || !w.events.told("Warning ClusterAnswers", "mcp") {
		t.Errorf("events: %q", w.events.all)
	}
}

func TestThePlatformCanLetAClusterGoThatAnswers(t *testing.T) {
	w, _, request := ready(t)
	r := w.build(w.withWorkload, func(b *builder) { b.Reconciler(partial{w.author}) })
	w.patch(platform, w.accessOf(request, mcp), `{"metadata":{"annotations":{"`+clustersv1alpha1.AbandonAnnotation+`":"true"}}}`)
	w.annotate("db", `"`+serviceprovider.LetGoAnnotation+`":"mcp"`)
	w.delete("db")
	settle(t, r, request)
	if diff := cmp.Diff([]string{"CreateOrUpdate", "DeletePartially"}, w.author.all()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if !w.isThere(mcp, "db") {
		t.Error("the MCP was cleaned up")
	}
}

func TestAFinalizerIsTakenOffWhateverElseIsWrittenMeanwhile(t *testing.T) {
	w, r, request := ready(t)
	w.delete("db")
	// Before each write of the runtime somebody else writes.
	var writes atomic.Int64
	w.faults[onboarding].On(func(r operatortest.Request) bool {
		if r.Verb == "patch" && r.Subresource == "" {
			w.annotate("db", fmt.Sprintf(`"example.com/counter":"%d"`, writes.Add(1)))
		}
		return false
	}, operatortest.FailBefore())
	settle(t, r, request)
	if w.has(onboarding, w.named("db")) {
		t.Error("the object is left")
	}
	if writes.Load() == 0 {
		t.Error("nothing was written meanwhile")
	}
}

func TestNoAccessIsLeftOfAnObjectWhoseFinalizersWereTakenOff(t *testing.T) {
	w, r, request := ready(t)
	w.patch(onboarding, w.named("db"), `{"metadata":{"finalizers":null}}`)
	w.delete("db")
	settle(t, r, request)
	if w.accessOf(request, mcp) != nil || w.accessOf(request, workload) != nil {
		t.Error("access is left")
	}
}

func TestNoAccessIsLeftOfAnObjectThatGoesDuringItsDeletion(t *testing.T) {
	w, r, request := ready(t)
	w.author.del = func(context.Context, *Postgres, *ProviderConfig, clusterCtx) (ctrl.Result, error) {
		w.patch(onboarding, w.named("db"), `{"metadata":{"finalizers":null}}`)
		return ctrl.Result{}, nil
	}
	w.delete("db")
	settle(t, r, request)
	settle(t, r, request) // the event of its end
	if w.has(onboarding, w.named("db")) || w.accessOf(request, mcp) != nil || w.accessOf(request, workload) != nil {
		t.Error("the object or its access is left")
	}
}
