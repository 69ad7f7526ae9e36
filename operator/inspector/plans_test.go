package inspector_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// planned is a resource whose plan for the site "slow" ends with its request.
type planned struct {
	plain
	began chan struct{}
}

func (p *planned) Plan(ctx context.Context, _ plan.Event, obj any) ([]plan.Change, error) {
	if obj.(*corev1.ConfigMap).Name == "slow" {
		p.began <- struct{}{}
		<-ctx.Done()
	}
	return nil, ctx.Err()
}

func TestSlowPlanDelaysNoOtherPage(t *testing.T) {
	p := &planned{plain{"p", func(context.Context, *corev1.ConfigMap) error { return nil }}, make(chan struct{}, 10)}
	w := start(t, inspector.Config{}, []*corev1.ConfigMap{site("home"), site("slow")}, p)
	w.reconciled(2)
	var planning sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 2 { // as many as go on at once
		planning.Go(func() {
			if answer, err := w.client.Do(w.request(http.MethodPost, "api/v1/plan", queryOf("slow")).WithContext(ctx)); err == nil {
				answer.Body.Close()
			}
		})
		<-p.began
	}
	for _, path := range []string{"", "objects", objectPath("home"), objectPath("slow"), "api/v1/overview", "api/v1/objects", "api/v1/" + objectPath("slow")} {
		w.get(path, http.StatusOK)
	}
	has(t, w.post("api/v1/plan", queryOf("home"), http.StatusTooManyRequests), "other plans are being made: try again in a moment")
	cancel()
	planning.Wait()
	operatortest.Eventually(t, "plans are made again", func() bool {
		answer, err := w.client.PostForm(w.url+"/inspector/api/v1/plan", queryOf("home"))
		if err != nil {
			return false
		}
		defer func() { _ = answer.Body.Close() }()
		return answer.StatusCode == http.StatusOK
	})
}
