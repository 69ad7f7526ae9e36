package operator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/panics"
)

// parts run side by side.
type parts struct {
	// failed is called each time a part fails.
	failed func()

	running sync.WaitGroup
	mu      sync.Mutex
	errs    []error
	// names are the names of the running parts.
	names []string
}

// run runs a part in its own goroutine. A panic is a failure of the part.
func (p *parts) run(kind, name string, f func() error) {
	called := fmt.Sprintf("%s %q", kind, name)
	p.mu.Lock()
	p.names = append(p.names, called)
	p.mu.Unlock()
	p.running.Go(func() {
		err := panics.Recovered(f)
		p.ended(called, err)
		if err != nil {
			p.failed()
		}
	})
}

func (p *parts) ended(called string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.names, called)
	p.names = slices.Delete(p.names, i, i+1)
	if err != nil {
		p.errs = append(p.errs, fmt.Errorf("%s: %w", called, err))
	}
}

// wait waits until all parts have ended and returns their errors.
func (p *parts) wait() error {
	p.running.Wait()
	return errors.Join(p.errs...)
}

// waitFor is wait for parts that were asked to end. Parts that still run after d are named by an
// error that wraps framework.ErrStillRunning.
func (p *parts) waitFor(d time.Duration) error {
	ended := make(chan struct{})
	go func() {
		p.running.Wait()
		close(ended)
	}()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	errs := slices.Clone(p.errs)
	if len(p.names) > 0 {
		errs = append(errs, fmt.Errorf("%w %s after it was told to end: %s: return when the context ends",
			framework.ErrStillRunning, d, strings.Join(p.names, ", ")))
	}
	return errors.Join(errs...)
}
