package framework

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/operatorkit/operatorkit/framework/internal/queue"
	"github.com/operatorkit/operatorkit/informer"
)

// UpdateFunc takes an object that was created or changed from another informer. It only queues the
// object: the framework must be running, without its own Source. oldObj is ignored.
func (f *Framework) UpdateFunc(_, newObj any) {
	f.handOver("UpdateFunc with", newObj, func(p *informer.Push) error { return p.Update(newObj) })
}

// DeleteFunc takes an object that was deleted from another informer, also as a
// cache.DeletedFinalStateUnknown. It only queues the object, as UpdateFunc does.
func (f *Framework) DeleteFunc(obj any) {
	f.handOver("DeleteFunc with", obj, func(p *informer.Push) error { return p.Delete(obj) })
}

func (f *Framework) handOver(what string, obj any, put func(*informer.Push) error) {
	err := fmt.Errorf("%w: the framework has a Source of its own, which tells it of changes", ErrExecutionFailed)
	if f.push != nil {
		err = put(f.push)
	}
	if err != nil {
		f.unusable(fmt.Sprintf("%s a %T", what, obj), err)
	}
}

// ProcessEvents takes objects from the channels of an informer until ctx ends or all channels are
// closed. It only queues them: the framework must be running. Errors are logged and counted; they
// end nothing. A nil channel is never read. Unusable events, for example of an unknown type or
// without an object, are logged once for each sort. The last one is in the status of the source
// (Sources).
func (f *Framework) ProcessEvents(ctx context.Context, deleteChan, updateChan chan watch.Event, errChan chan error) {
	f.processEvents(ctx, deleteChan, updateChan, errChan, func() {})
}

// processEvents is ProcessEvents. It also calls arrived for each object.
func (f *Framework) processEvents(
	ctx context.Context,
	deleteChan, updateChan chan watch.Event,
	errChan chan error,
	arrived func(),
) {
	for deleteChan != nil || updateChan != nil || errChan != nil {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-deleteChan:
			if !ok {
				deleteChan = nil
				continue
			}
			arrived()
			f.DeleteFunc(e.Object)
		case e, ok := <-updateChan:
			if !ok {
				updateChan = nil
				continue
			}
			if e.Type == watch.Error {
				f.metrics.errors.Inc()
				f.log("error", "informer failed", "error", saidBy(e.Object))
				continue
			}
			arrived()
			take := func(p *informer.Push) error { return p.Take(e) }
			f.handOver(fmt.Sprintf("event %s with", e.Type), e.Object, take)
		case err, ok := <-errChan:
			if !ok {
				errChan = nil
				continue
			}
			f.metrics.errors.Inc()
			f.log("error", "informer failed", "error", fmt.Sprint(err))
		}
	}
}

// saidBy returns the message of an error event. Only a Status is safe to show.
func saidBy(obj runtime.Object) string {
	if status, ok := obj.(*metav1.Status); ok {
		return status.Message
	}
	return fmt.Sprintf("an event with a %T", obj)
}

// watchInformer reads Config.Informer until ctx ends. When its channels close it starts again, with
// backoff. An object that arrives resets the backoff.
func (f *Framework) watchInformer(ctx context.Context) {
	b := f.config.BackOffFactory()
	for ctx.Err() == nil {
		f.guard("watch the informer", func() {
			deleteChan, updateChan, errChan := f.config.Informer.Watch(ctx)
			f.processEvents(ctx, deleteChan, updateChan, errChan, b.Reset)
		})
		wait(ctx, b.NextBackOff())
	}
}

// wait waits for a pause of a BackOff, or until ctx ends.
func wait(ctx context.Context, pause time.Duration) {
	if pause == backoff.Stop {
		pause = queue.MaxRetryInterval
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// Boot is Run under the name that the framework's predecessors gave it.
func (f *Framework) Boot(ctx context.Context) error { return f.Run(ctx) }

// Start is Run under the name that a controller-runtime manager expects: a Framework is a
// manager.Runnable.
func (f *Framework) Start(ctx context.Context) error { return f.Run(ctx) }

// NeedLeaderElection makes a controller-runtime manager run the framework only on the leader.
func (f *Framework) NeedLeaderElection() bool { return true }

// DefaultResourceSetResourceFunc returns a function that returns the same resources for every
// object.
func DefaultResourceSetResourceFunc(rs []Resource) func(ctx context.Context, obj any) ([]Resource, error) {
	rs = slices.Clone(rs)
	return func(context.Context, any) ([]Resource, error) { return slices.Clone(rs), nil }
}
