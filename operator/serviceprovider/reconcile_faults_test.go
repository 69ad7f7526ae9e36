package serviceprovider_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
)

func TestWithoutAClusterThatIsGrantedTheAuthorIsNotCalled(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	w.access.through = func(string, *clusters.Cluster) (*clusters.Cluster, error) { return nil, nil }
	r, request := w.build(), w.order("db", 3)
	if _, err := r.Reconcile(t.Context(), request); err == nil {
		t.Error("there is no error")
	}
	w.tells("db", "Progressing/False/ReconcileFailed", "the mcp cluster", "gives none")
	if calls := w.author.all(); len(calls) > 0 {
		t.Errorf("calls: %q", calls)
	}
}

func TestAGrantIsUsedForWhatIsAskedForNow(t *testing.T) {
	w, r, request := ready(t)
	w.patch(platform, w.accessOf(request, mcp), `{"spec":{"tokenLifetime":"20m"}}`)
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	w.tells("db", "Progressing/False/AccessPending", "was not looked at yet")
	if diff := cmp.Diff([]string{"CreateOrUpdate"}, w.author.all()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestTheStatusTellsThatNoFinalizerCanBeAdded(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	r, request := w.build(), w.order("db", 3)
	w.faults[onboarding].On(func(r operatortest.Request) bool { return r.Verb == "patch" && r.Subresource == "" }, operatortest.InternalError())
	if _, err := r.Reconcile(t.Context(), request); err == nil {
		t.Error("there is no error")
	}
	w.tells("db", "Progressing/False/ReconcileFailed", "add finalizers")
}

func TestTheStatusIsWrittenAlsoWhenTheProcessIsBeingStopped(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	ctx, stop := context.WithCancel(t.Context())
	w.author.createOrUpdate = func(context.Context, *Postgres, *ProviderConfig, clusterCtx) (ctrl.Result, error) {
		stop()
		return ctrl.Result{}, errors.New("interrupted")
	}
	r, request := w.build(), w.order("db", 3)
	for ctx.Err() == nil {
		if _, err := r.Reconcile(ctx, request); err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
	}
	w.tells("db", "Progressing/False/ReconcileFailed", "interrupted")
}
