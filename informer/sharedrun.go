package informer

import (
	"context"
	"sync"
)

// sharedRun runs one piece of work for any number of concurrent callers, and again for later ones.
type sharedRun struct {
	mu      sync.Mutex
	callers int
	stop    context.CancelFunc
	// done is closed when the current or last work has ended, and nil before the first.
	done chan struct{}
}

func (r *sharedRun) run(ctx context.Context, work func(ctx context.Context)) {
	for !r.join(ctx, work) {
		select {
		case <-r.ending():
		case <-ctx.Done():
			return
		}
	}
	<-ctx.Done()
	r.leave()
}

// join adds a caller and starts the work for the first one. It returns false while the work of
// earlier callers is ending.
func (r *sharedRun) join(ctx context.Context, work func(ctx context.Context)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.callers == 0 && r.done != nil {
		select {
		case <-r.done:
		default:
			return false
		}
	}
	r.callers++
	if r.callers > 1 {
		return true
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	r.stop, r.done = stop, done
	go func() {
		defer close(done)
		work(ctx)
	}()
	return true
}

// running reports whether there is a caller.
func (r *sharedRun) running() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.callers > 0
}

func (r *sharedRun) ending() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.done
}

// leave removes a caller. The last one ends the work and waits for it.
func (r *sharedRun) leave() {
	r.mu.Lock()
	r.callers--
	if r.callers > 0 {
		r.mu.Unlock()
		return
	}
	r.stop()
	done := r.done
	r.mu.Unlock()
	<-done
}
