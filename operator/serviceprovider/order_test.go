package serviceprovider_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
)

func TestOrderIsCarriedOutInTheMCPAndTold(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{Version: "16", Poll: metav1.Duration{Duration: time.Hour}})
	r, request := w.build(), w.order("db", 3)

	if result := settle(t, r, request); result.RequeueAfter != time.Hour {
		t.Errorf("it is looked at again after %s, want the config's poll interval", result.RequeueAfter)
	}
	w.tells("db", "Ready/True/Ready")
	if !w.isThere(mcp, "db") || w.isThere(workload, "db") {
		t.Error("the object should be in the MCP and nowhere else")
	}
	p := w.get("db")
	if diff := cmp.Diff([]string{accessFinalizer, workFinalizer}, p.Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	if p.Endpoint != "db.example.com" {
		t.Errorf("what the author has put into the status is %q", p.Endpoint)
	}
}

func TestOrderReachesTheWorkloadClusterWhereItIsOn(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	var found clusterCtx
	w.author.createOrUpdate = func(ctx context.Context, obj *Postgres, config *ProviderConfig, clusters clusterCtx) (ctrl.Result, error) {
		found = clusters
		return deploy(ctx, obj, config, clusters)
	}
	settle(t, w.build(w.withWorkload), w.order("db", 3))
	w.tells("db", "Ready/True/Ready")
	if !w.isThere(mcp, "db") || !w.isThere(workload, "db") {
		t.Error("the object should be in the MCP and in the workload cluster")
	}
	want := [2]string{w.namespace + "/db-mcp", w.namespace + "/db-workload"}
	if got := [2]string{found.MCPAccessSecretKey.String(), found.WorkloadAccessSecretKey.String()}; got != want {
		t.Errorf("the Secrets with the kubeconfigs are %q, want %q", got, want)
	}
}

func TestOrderThatNobodySaysAnythingOfIsReadyWhenItAsksForNothing(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	result := ctrl.Result{RequeueAfter: time.Minute}
	w.author.createOrUpdate = func(context.Context, *Postgres, *ProviderConfig, clusterCtx) (ctrl.Result, error) { return result, nil }
	r, request := w.build(), w.order("db", 3)

	if got := settle(t, r, request); got != result {
		t.Errorf("the result is %v, want the author's %v", got, result)
	}
	w.tells("db", "Progressing/False/Progressing")
	result = ctrl.Result{}
	settle(t, r, request)
	w.tells("db", "Ready/True/Ready")
}

func TestOrderThatFailsIsToldAndIsAnError(t *testing.T) {
	broken := errors.New("out of disks")
	for name, test := range map[string]struct {
		fails authorFunc
		want  string
		part  string
		event string
	}{
		"without a word": {
			func(context.Context, *Postgres, *ProviderConfig, clusterCtx) (ctrl.Result, error) {
				return ctrl.Result{}, broken
			},
			"Progressing/False/ReconcileFailed", "CreateOrUpdate: out of disks", "out of disks",
		},
		"with a better word": {
			func(_ context.Context, obj *Postgres, _ *ProviderConfig, _ clusterCtx) (ctrl.Result, error) {
				serviceprovider.StatusProgressing(obj, "NoDisks", "waits for disks")
				return ctrl.Result{}, broken
			},
			"Progressing/False/NoDisks", "waits for disks", "out of disks",
		},
		"while it claims to be ready": {
			func(_ context.Context, obj *Postgres, _ *ProviderConfig, _ clusterCtx) (ctrl.Result, error) {
				serviceprovider.StatusReady(obj)
				return ctrl.Result{}, broken
			},
			"Progressing/False/ReconcileFailed", "out of disks", "out of disks",
		},
		"with a panic": {
			func(context.Context, *Postgres, *ProviderConfig, clusterCtx) (ctrl.Result, error) { panic(broken) },
			"Progressing/False/ReconcileFailed", "panic: value of type *errors.errorString in ", "panic: value of type *errors.errorString in ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.configure(ProviderConfigSpec{})
			w.author.createOrUpdate = test.fails
			r, request := w.build(), w.order("db", 3)
			for range 2 {
				_, err := r.Reconcile(t.Context(), request)
				if !errors.Is(err, broken) || !strings.Contains(err.Error(), "Postgres "+w.namespace+"/db") {
					t.Errorf("the error is %v; it should wrap the author's and name the object", err)
				}
				w.tells("db", test.want, test.part)
			}
			if !w.events.told("Warning", test.event) {
				t.Errorf("there is no event: %q", w.events.all)
			}

			w.author.createOrUpdate = deploy
			settle(t, r, request)
			w.tells("db", "Ready/True/Ready")
		})
	}
}

func TestOrderThatFailsAndWhoseStatusCantBeWrittenHasBothErrors(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	broken := errors.New("out of disks")
	w.author.createOrUpdate = func(context.Context, *Postgres, *ProviderConfig, clusterCtx) (ctrl.Result, error) {
		return ctrl.Result{}, broken
	}
	w.faults[onboarding].On(func(r operatortest.Request) bool { return r.Subresource == "status" }, operatortest.InternalError())
	_, err := w.build().Reconcile(t.Context(), w.order("db", 3))
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "write the status") {
		t.Errorf("the error is %v, want the author's and that of the status", err)
	}
}

func TestOrderWithAPermanentErrorIsNotTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	w.author.createOrUpdate = func(context.Context, *Postgres, *ProviderConfig, clusterCtx) (ctrl.Result, error) {
		return ctrl.Result{}, framework.Permanent(errors.New("size 3 is not for sale"))
	}
	_, err := w.build().Reconcile(t.Context(), w.order("db", 3))
	if !errors.Is(err, reconcile.TerminalError(nil)) {
		t.Errorf("the error is %v, want one that controllers do not retry", err)
	}
}

func TestObjectThatIsGoneIsNoError(t *testing.T) {
	w := newWorld(t)
	result, err := w.build().Reconcile(t.Context(), w.requestOf("db"))
	if err != nil || result != (ctrl.Result{}) || len(w.author.all()) != 0 {
		t.Errorf("result %v, error %v, calls %q; want nothing", result, err, w.author.all())
	}
}

func TestAuthorsWriteTheStatusOnly(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{Version: "16"})
	w.author.createOrUpdate = func(_ context.Context, obj *Postgres, config *ProviderConfig, _ clusterCtx) (ctrl.Result, error) {
		obj.Spec.Size, obj.Labels, obj.Finalizers = 99, map[string]string{"a": "b"}, nil
		config.Spec.Version = "changed"
		obj.Endpoint = "here"
		return ctrl.Result{}, nil
	}
	r, request := w.build(), w.order("db", 3)
	settle(t, r, request)
	p := w.get("db")
	if p.Spec.Size != 3 || len(p.Labels) != 0 || len(p.Finalizers) != 2 || p.Endpoint != "here" {
		t.Errorf("the object became %+v", p)
	}
	w.author.createOrUpdate = func(_ context.Context, _ *Postgres, config *ProviderConfig, _ clusterCtx) (ctrl.Result, error) {
		if config.Spec.Version != "16" {
			t.Errorf("the author gets a config with version %q", config.Spec.Version)
		}
		return ctrl.Result{}, nil
	}
	settle(t, r, request)
}

func TestClusterThatDoesNotAnswerIsNamed(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	w.access.through = w.throughFaults
	r, request := w.build(), w.order("db", 3)
	w.faults[mcp].Cut()
	if _, err := r.Reconcile(t.Context(), request); err == nil {
		t.Error("there is no error")
	}
	w.tells("db", "Progressing/False/ClusterUnreachable", `waits for the cluster "mcp" to answer`)
	w.faults[mcp].Restore()
	settle(t, r, request)
	w.tells("db", "Ready/True/Ready")
}

func TestClusterThatHangsHoldsAWorkerNoLongerThanTheTimeout(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	w.access.through = w.throughFaults
	rule := w.faults[mcp].On(func(r operatortest.Request) bool { return r.Verb == "patch" }, operatortest.TimeOut())
	r, request := w.build(func(b *builder) { b.Timeout(2 * time.Second) }), w.order("db", 3)
	var err error
	operatortest.Eventually(t, "the cluster is asked", func() bool { // what comes before may take all of the time
		_, err = r.Reconcile(t.Context(), request)
		return rule.Hits() > 0
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
	w.tells("db", "Progressing/False/ClusterUnreachable", `waits for the cluster "mcp"`)
}
