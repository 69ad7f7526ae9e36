package operator

import (
	"errors"
	"fmt"
	"sync"

	"github.com/operatorkit/operatorkit/framework"
)

// parts are things that run side by side.
type parts struct {
	// failed is called each time a part fails.
	failed func()

	running sync.WaitGroup
	mu      sync.Mutex
	errs    []error
}

// run runs a part in a goroutine of its own. A panic is its failure.
func (p *parts) run(kind, name string, f func() error) {
	p.running.Go(func() {
		err := framework.Recovered(f)
		if err == nil {
			return
		}
		p.mu.Lock()
		p.errs = append(p.errs, fmt.Errorf("%s %q: %w", kind, name, err))
		p.mu.Unlock()
		p.failed()
	})
}

// wait waits until all parts have ended and returns their errors.
func (p *parts) wait() error {
	p.running.Wait()
	return errors.Join(p.errs...)
}
