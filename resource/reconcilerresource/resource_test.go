package reconcilerresource_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/reconcilerresource"
)

var object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "home"}}

func resources(t *testing.T, reconciler reconcile.Func) []framework.Resource {
	t.Helper()
	r, err := reconcilerresource.New(reconcilerresource.Config{Name: "legacy", Reconciler: reconciler})
	if err != nil {
		t.Fatal(err)
	}
	return []framework.Resource{r}
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	_, err := reconcilerresource.New(reconcilerresource.Config{})
	want := "invalid config: reconcilerresource.Config: Name must not be empty; Reconciler must not be nil"
	if !framework.IsInvalidConfig(err) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestTheReconcilerGetsTheKeyOfUpdatesAndDeletions(t *testing.T) {
	for name, process := range map[string]func(context.Context, any, []framework.Resource) error{
		"update": framework.ProcessUpdate, "delete": framework.ProcessDelete,
	} {
		t.Run(name, func(t *testing.T) {
			var got []reconcile.Request
			err := process(t.Context(), object, resources(t, func(_ context.Context, req reconcile.Request) (reconcile.Result, error) {
				got = append(got, req)
				return reconcile.Result{}, nil
			}))
			if err != nil {
				t.Fatal(err)
			}
			want := []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: "default", Name: "home"}}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResultsBecomeSignals(t *testing.T) {
	for name, tc := range map[string]struct {
		result     reconcile.Result
		process    func(context.Context, any, []framework.Resource) error
		after      time.Duration
		keptUpWith bool
	}{
		"nothing asked for":               {process: framework.ProcessUpdate},
		"a duration":                      {process: framework.ProcessUpdate, result: reconcile.Result{RequeueAfter: time.Minute}, after: time.Minute},
		"the deprecated flag":             {process: framework.ProcessUpdate, result: reconcile.Result{Requeue: true}, after: time.Second}, //nolint:staticcheck // reconcilers of today still set it
		"a finished deletion":             {process: framework.ProcessDelete},
		"a deletion that is not finished": {process: framework.ProcessDelete, result: reconcile.Result{RequeueAfter: time.Minute}, after: time.Minute, keptUpWith: true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := finalizerskeptcontext.NewContext(requeuecontext.NewContext(t.Context()))
			err := tc.process(ctx, object, resources(t, func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return tc.result, nil
			}))
			if err != nil {
				t.Fatal(err)
			}
			if after, _ := requeuecontext.After(ctx); after != tc.after {
				t.Errorf("next look after %s, want %s", after, tc.after)
			}
			if kept := finalizerskeptcontext.IsKept(ctx); kept != tc.keptUpWith {
				t.Errorf("finalizer kept: %t, want %t", kept, tc.keptUpWith)
			}
		})
	}
}

func TestTerminalErrorsArePermanent(t *testing.T) {
	cause := errors.New("cause")
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"terminal": {err: reconcile.TerminalError(cause), want: true},
		"other":    {err: cause, want: false},
	} {
		t.Run(name, func(t *testing.T) {
			err := framework.ProcessUpdate(t.Context(), object, resources(t, func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{RequeueAfter: time.Minute}, tc.err
			}))
			if framework.IsPermanent(err) != tc.want || !errors.Is(err, cause) {
				t.Errorf("got %v, want the cause, permanent: %t", err, tc.want)
			}
		})
	}
}

func TestAnObjectWithoutANameIsAPermanentError(t *testing.T) {
	err := framework.ProcessUpdate(t.Context(), 42, resources(t, func(context.Context, reconcile.Request) (reconcile.Result, error) {
		t.Error("called")
		return reconcile.Result{}, nil
	}))
	if !framework.IsPermanent(err) {
		t.Errorf("got %v, want a permanent error", err)
	}
}

func TestTheReconcilerLogsThroughTheGivenLogger(t *testing.T) {
	var out bytes.Buffer
	logger, err := micrologger.New(micrologger.Config{IOWriter: &out})
	if err != nil {
		t.Fatal(err)
	}
	r, err := reconcilerresource.New(reconcilerresource.Config{
		Name:   "legacy",
		Logger: logr.New(logger.AsSink(0)),
		Reconciler: reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
			ctrl.FromContext(ctx).Info("hello")
			return reconcile.Result{}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := framework.ProcessUpdate(t.Context(), object, []framework.Resource{r}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"hello"`, `"object":"default/home"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log has no %s: %s", want, out.String())
		}
	}
}
