package serviceprovider_test

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/operatorkit/operatorkit/operator/serviceprovider"
)

func TestAnAuthorMayWriteTheStatusAndNothingOfTheRuntimeStaysInIt(t *testing.T) {
	w := newWorld(t)
	w.configure(ProviderConfigSpec{})
	own := w.cluster(onboarding).Client()
	say := func(*Postgres) {}
	w.author.createOrUpdate = func(ctx context.Context, obj *Postgres, _ *ProviderConfig, _ clusterCtx) (ctrl.Result, error) {
		obj.Endpoint = "half-way"
		if err := own.Status().Update(ctx, obj); err != nil {
			return ctrl.Result{}, fmt.Errorf("write the status: %w", err)
		}
		if seen := w.get("db"); seen.Endpoint != "half-way" {
			t.Errorf("the author has written endpoint %q", seen.Endpoint)
		}
		obj.Endpoint = "done"
		say(obj)
		return ctrl.Result{}, nil
	}
	r, request := w.build(), w.order("db", 1)
	for size := 1; size <= 4; size++ {
		w.patch(onboarding, w.named("db"), fmt.Sprintf(`{"spec":{"size":%d}}`, size))
		for name, c := range map[string]struct {
			say  func(*Postgres)
			want string
		}{
			"nothing is said": {func(*Postgres) {}, "Ready/True/Ready"},
			"it is not ready": {func(p *Postgres) { serviceprovider.StatusProgressing(p, "Slow", "in a while") }, "Progressing/False/Slow"},
		} {
			say = c.say
			for range 2 { // the second time what is said is there already
				if _, err := r.Reconcile(t.Context(), request); err != nil {
					t.Fatalf("size %d, %s: %v", size, name, err)
				}
				w.tells("db", c.want)
				p := w.get("db")
				ready := meta.FindStatusCondition(p.Conditions, serviceprovider.ServiceProviderConditionReady)
				if ready.ObservedGeneration != p.Generation || p.Endpoint != "done" {
					t.Errorf("size %d, %s: Ready is about generation %d of %d, the endpoint is %q", size, name, ready.ObservedGeneration, p.Generation, p.Endpoint)
				}
			}
		}
	}
}
