package main

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

const emptyWorkers = 2

// emptyReconciliations measures what the queue and a worker cost. Controller-runtime's reconciler gets a key;
// operatorkit's resource gets a copy of an object of the store.
func emptyReconciliations(ctx context.Context, e *environment) ([]line, error) {
	s, err := e.compare(ctx, "empty",
		contender{controllerRuntime, e.keys, e.emptyWithControllerRuntime},
		contender{operatorKit, e.keys, e.emptyWithOperatorKit},
	)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("empty reconciliation of %d keys, each: ", e.keys)
	return []line{
		compareLine(what+"time", inMicroseconds, s, nanoseconds).ratioAtMost(0.25),
		compareLine(what+"processor time", inMicroseconds, s, processor),
		compareLine(what+"allocations", counted, s, allocations).atMost(3),
		compareLine(what+"memory", inBytes, s, memory),
	}, nil
}

func (e *environment) emptyWithControllerRuntime(ctx context.Context, b *testing.B) error {
	requests := make([]reconcile.Request, e.keys)
	for i := range requests {
		requests[i].NamespacedName = emptyKey(i)
	}
	done := newCountdown(e.keys)
	c, err := controller.NewTypedUnmanaged("empty", controller.Options{
		SkipNameValidation:      new(true),
		MaxConcurrentReconciles: emptyWorkers,
		Logger:                  controllerRuntimeLogger(),
		Reconciler: reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			done.one()
			return reconcile.Result{}, nil
		}),
	})
	if err != nil {
		return err
	}
	err = c.Watch(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		for _, r := range requests {
			queue.Add(r)
		}
		return nil
	}))
	if err != nil {
		return err
	}
	return timed(ctx, b, c.Start, done)
}

func (e *environment) emptyWithOperatorKit(ctx context.Context, b *testing.B) error {
	return e.empty(ctx, b, false)
}

// empty is operatorkit's part of the row, with an inspector if it is to be inspected.
func (e *environment) empty(ctx context.Context, b *testing.B, inspected bool) error {
	objects := informer.NewPush("empty")
	for i := range e.keys {
		key := emptyKey(i)
		err := objects.Update(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
		if err != nil {
			return err
		}
	}
	done := newCountdown(e.keys)
	f, err := newInspectedFramework(framework.Config{Source: objects, Workers: emptyWorkers}, inspected, countingResource{done})
	if err != nil {
		return err
	}
	return timed(ctx, b, f.Run, done)
}

func emptyKey(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: "object-" + strconv.Itoa(i)}
}

// countingResource does nothing and counts how often.
type countingResource struct{ done *countdown }

func (countingResource) Name() string { return "nothing" }

func (r countingResource) EnsureCreated(context.Context, any) error {
	r.done.one()
	return nil
}

func (countingResource) EnsureDeleted(context.Context, any) error { return nil }
