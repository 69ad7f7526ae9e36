package fetch

import (
	"context"
	"sync"
	"time"

	"github.com/operatorkit/operatorkit/internal/panics"
)

// flights lets callers that want the same thing at the same time share one call. Other than singleflight's, the call ends
// when nobody waits for it any more, and a panic in it is one of those who wait, and not the end of the process.
type flights[T any] struct {
	mu    sync.Mutex
	calls map[string]*flight[T]
}

type flight[T any] struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiting int
	value   T
	err     error
	// panicked is the panic of the call.
	panicked error
}

// do runs call, or waits for one that is under way with the same key. The context of the call has the values of the first
// caller's context, and ends at the time-out or when all callers have gone.
func (f *flights[T]) do(ctx context.Context, key string, timeout time.Duration, call func(context.Context) (T, error)) (T, error) {
	f.mu.Lock()
	if f.calls == nil {
		f.calls = map[string]*flight[T]{}
	}
	c, ok := f.calls[key]
	if !ok {
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		c = &flight[T]{done: make(chan struct{}), cancel: cancel}
		f.calls[key] = c
		go f.run(own, key, c, call)
	}
	c.waiting++
	f.mu.Unlock()

	select {
	case <-c.done:
		if c.panicked != nil {
			panic(c.panicked)
		}
		return c.value, c.err
	case <-ctx.Done():
		f.leave(key, c)
		var none T
		return none, &goneError{ctx.Err()}
	}
}

// goneError is that of a caller whose own context ended.
type goneError struct{ err error }

func (e *goneError) Error() string { return e.err.Error() }
func (e *goneError) Unwrap() error { return e.err }

func (f *flights[T]) run(ctx context.Context, key string, c *flight[T], call func(context.Context) (T, error)) {
	defer func() {
		f.mu.Lock()
		if f.calls[key] == c {
			delete(f.calls, key)
		}
		f.mu.Unlock()
		c.cancel()
		close(c.done)
	}()
	c.panicked = panics.Recovered(func() error {
		c.value, c.err = call(ctx)
		return nil
	})
}

// leave takes one caller off. The last one ends the call, and goes when it has ended: nothing goes on of which nobody knows. Who comes
// later begins a new call.
func (f *flights[T]) leave(key string, c *flight[T]) {
	if f.isLast(key, c) {
		c.cancel()
		<-c.done
	}
}

func (f *flights[T]) isLast(key string, c *flight[T]) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.waiting--
	if c.waiting > 0 {
		return false
	}
	if f.calls[key] == c {
		delete(f.calls, key)
	}
	return true
}
