package serviceprovider

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// newDrainedInformer makes informers whose watches end when they are stopped. Those of metadata go through watch.Filter, whose
// goroutine stays for ever if an event is on its way when nobody reads any more. Their lists never ask for any version, which may be
// older than what was seen or done before.
func newDrainedInformer(lw toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	if original, ok := lw.(*toolscache.ListWatch); ok && original.WatchFuncWithContext != nil {
		drained := *original
		drained.WatchFuncWithContext = func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := original.WatchFuncWithContext(ctx, options)
			if err != nil {
				return nil, err
			}
			return drainedWatch{w}, nil
		}
		if list := original.ListWithContextFunc; list != nil {
			drained.ListWithContextFunc = func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				if options.ResourceVersion == "0" {
					options.ResourceVersion = ""
				}
				return list(ctx, options)
			}
		}
		lw = &drained
	}
	return toolscache.NewSharedIndexInformer(lw, example, resync, indexers)
}

// drainedWatch takes what is still on its way when it is stopped.
type drainedWatch struct{ watch.Interface }

func (w drainedWatch) Stop() {
	w.Interface.Stop()
	go func() {
		for range w.ResultChan() {
			continue // there is nothing to be done with an event that comes too late
		}
	}()
}
