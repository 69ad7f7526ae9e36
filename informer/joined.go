package informer

import (
	"context"
	"sync"
)

// joined runs one piece of work for any number of concurrent callers, and again for later ones.
type joined struct {
	mu      sync.Mutex
	callers int
	stop    context.CancelFunc
	// done is closed when the current or last work has ended, and nil before the first.
	done chan struct{}
}

func (j *joined) run(ctx context.Context, work func(ctx context.Context)) {
	for !j.join(ctx, work) {
		select {
		case <-j.ending():
		case <-ctx.Done():
			return
		}
	}
	<-ctx.Done()
	j.leave()
}

// join adds a caller and starts the work for the first one. It is false while the work of earlier callers is ending.
func (j *joined) join(ctx context.Context, work func(ctx context.Context)) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.callers == 0 && j.done != nil {
		select {
		case <-j.done:
		default:
			return false
		}
	}
	j.callers++
	if j.callers > 1 {
		return true
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	j.stop, j.done = stop, done
	go func() {
		defer close(done)
		work(ctx)
	}()
	return true
}

func (j *joined) ending() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.done
}

// leave ends the work with its last caller, and then waits for it.
func (j *joined) leave() {
	j.mu.Lock()
	j.callers--
	if j.callers > 0 {
		j.mu.Unlock()
		return
	}
	j.stop()
	done := j.done
	j.mu.Unlock()
	<-done
}
