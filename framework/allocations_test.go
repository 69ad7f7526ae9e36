package framework

import (
	"context"
	"io"
	"testing"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework/internal/queue"
	"github.com/operatorkit/operatorkit/informer"
)

type idle struct{}

func (idle) Name() string                             { return "idle" }
func (idle) EnsureCreated(context.Context, any) error { return nil }
func (idle) EnsureDeleted(context.Context, any) error { return nil }

// settledOps find everything in order.
type settledOps struct{ name string }

func (o settledOps) Name() string                                                { return o.name }
func (settledOps) GetCurrentState(context.Context, any) (any, error)             { return nil, nil }
func (settledOps) GetDesiredState(context.Context, any) (any, error)             { return nil, nil }
func (settledOps) ApplyCreateChange(context.Context, any, any) error             { return nil }
func (settledOps) ApplyUpdateChange(context.Context, any, any) error             { return nil }
func (settledOps) ApplyDeleteChange(context.Context, any, any) error             { return nil }
func (settledOps) NewUpdatePatch(context.Context, any, any, any) (*Patch, error) { return nil, nil }
func (settledOps) NewDeletePatch(context.Context, any, any, any) (*Patch, error) { return nil, nil }

// dropping keeps no record.
type dropping struct{}

func (dropping) Observe(*Record) {}

// TestAReconciliationThatChangesNothingAllocatesLittle holds how many allocations it takes, from the queue to the end. The private
// copies of the object are among them, which take one each.
func TestAReconciliationThatChangesNothingAllocatesLittle(t *testing.T) {
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	crud := func(name string) Resource {
		r, err := NewCRUDResource(CRUDResourceConfig{Logger: logger, Ops: settledOps{name}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	key := informer.Key{Namespace: "default", Name: "a"}
	for name, tc := range map[string]struct {
		resources []Resource
		want      float64
		// recorded is how many more it takes to record what happened.
		recorded float64
	}{
		// The copy, and the reconciliation; the record, its resources, and its triggers.
		"a plain resource": {[]Resource{idle{}}, 2, 3},
		// For each the states, and the contexts of the steps; for each but the first the copy and the context of the resource; the
		// record, its resources and its triggers, which grow, and the steps of each.
		"three CRUD resources": {[]Resource{crud("first"), crud("second"), crud("third")}, 2 + 3*2 + 2*2, 14},
	} {
		t.Run(name, func(t *testing.T) {
			source := informer.NewPush("objects")
			if err := source.Update(obj.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			// What waits in the queue: the entry with its reasons, and its place in a list of its namespace.
			const queued = 5
			counts := map[Observer]float64{nil: queued + tc.want, dropping{}: queued + tc.want + tc.recorded}
			for observer, want := range counts {
				f, err := New(Config{Source: source, Resources: tc.resources, Logger: logger, Observer: observer})
				if err != nil {
					t.Fatal(err)
				}
				ctx, activity := f.activities.add(t.Context(), false)
				got := testing.AllocsPerRun(200, func() {
					f.queue.Add(key, queue.Fresh, reason{})
					e, _ := f.queue.Next()
					activity.begin(e.Key, 0)
					f.reconcileEntry(ctx, e, f.metrics.now())
					activity.end()
					f.queue.Done(e)
				})
				if got != want {
					t.Errorf("%v allocations with observer %v, want %v", got, observer, want)
				}
			}
			direct := testing.AllocsPerRun(200, func() {
				if err := ProcessUpdate(t.Context(), obj, tc.resources); err != nil {
					t.Fatal(err)
				}
			})
			if direct != tc.want {
				t.Errorf("%v allocations without a framework, want %v", direct, tc.want)
			}
		})
	}
}
