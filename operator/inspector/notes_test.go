package inspector_test

import (
	"context"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/inspector"
)

// queue is a resource that has nothing to change, and says why.
type queue struct{}

type position string

func (p position) Notes() []string { return []string{string(p)} }

func (queue) Name() string { return "queue" }

func (queue) GetCurrentState(context.Context, *corev1.ConfigMap) (position, error) { return "", nil }

func (queue) GetDesiredState(context.Context, *corev1.ConfigMap) (position, error) {
	return "home waits for <others>", nil
}

func (queue) NewUpdatePatch(context.Context, *corev1.ConfigMap, position, position) (*framework.TypedPatch[position], error) {
	return nil, nil
}

func (queue) NewDeletePatch(context.Context, *corev1.ConfigMap, position, position) (*framework.TypedPatch[position], error) {
	return nil, nil
}

func (queue) ApplyCreateChange(context.Context, *corev1.ConfigMap, position) error { return nil }

func (queue) ApplyUpdateChange(context.Context, *corev1.ConfigMap, position) error { return nil }

func (queue) ApplyDeleteChange(context.Context, *corev1.ConfigMap, position) error { return nil }

func TestPlanShowsWhatStaysAsItIsAndWhy(t *testing.T) {
	r, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[*corev1.ConfigMap, position]{
		Logger: quiet(t), Ops: queue{},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := start(t, inspector.Config{}, []*corev1.ConfigMap{site("home")}, r)
	w.reconciled(1)
	has(t, w.post("object", queryOf("home"), http.StatusOK), "home waits for &lt;others&gt;")
	has(t, w.post("api/v1/plan", queryOf("home"), http.StatusOK), `"notes":["home waits for`)
}
