package operator

import (
	"context"
	"sync"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

// warm waits until all sources are synced. Sources that are not synced after SyncTimeout are
// logged. From then on it only waits until one framework has all the sources that it needs.
func (o *Operator) warm(ctx context.Context) {
	inTime, cancel := context.WithTimeout(ctx, o.config.SyncTimeout)
	defer cancel()
	var late []informer.Source
	for _, s := range o.sources {
		if s.WaitForSync(inTime) != nil {
			late = append(late, s)
		}
	}
	if len(late) == 0 || ctx.Err() != nil {
		return
	}
	for _, s := range late {
		fields := []any{"level", "error", "message", "source is not synced, what needs it waits", "operator", o.config.Name, "source", s.Name(), "after", o.config.SyncTimeout.String()}
		if err := s.Status().LastError; err != nil {
			fields = append(fields, "error", err.Error())
		}
		o.config.Logger.Log(fields...)
	}
	o.waitForOneFramework(ctx)
}

// waitForOneFramework waits until one framework has all of its sources synced.
func (o *Operator) waitForOneFramework(ctx context.Context) {
	ctx, found := context.WithCancel(ctx)
	defer found()
	var waiting sync.WaitGroup
	for _, f := range o.config.Frameworks {
		waiting.Go(func() {
			if synced(ctx, f) {
				found()
			}
		})
	}
	waiting.Wait()
}

// synced waits until all sources of a framework are synced. It returns false if ctx ends first.
func synced(ctx context.Context, f *framework.Framework) bool {
	for _, s := range f.Sources() {
		if s.WaitForSync(ctx) != nil {
			return false
		}
	}
	return true
}
