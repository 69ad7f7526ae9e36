package operatortest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// crashOperator runs a scenario's operator in one run: one life, and after a crash
// a second one.
type crashOperator struct {
	scenario  Scenario
	config    *rest.Config // that of the API server, without faults
	namespace string

	firstFaults *Faults // the first life's

	failed chan error // has one error when a life ended as it must not
	ended  chan struct{}
	cancel context.CancelFunc

	mu    sync.Mutex
	life  *life
	lives int
	crash *Write // the write at which the first life crashed
}

// life is the operator from a start to its end.
type life struct {
	faults *Faults
	up     bool // until its end begins
}

// progress changes whenever the operator does something that may lead to another
// state of its objects.
type progress struct {
	lives  int
	up     bool
	seen   bool // the API server has been asked something in this life
	writes int
	busy   bool // a write is under way
}

// startOperator starts the operator, which goes on until stop. It ends at its n-th
// write, unless n is 0.
func startOperator(ctx context.Context, scenario Scenario, config *rest.Config, namespace string, n int, moment Moment) *crashOperator {
	o := &crashOperator{
		scenario:    scenario,
		config:      config,
		namespace:   namespace,
		firstFaults: scenario.faults(),
		failed:      make(chan error, 1),
		ended:       make(chan struct{}),
	}
	ctx, o.cancel = context.WithCancel(ctx)

	crashed := make(chan struct{})
	if n > 0 {
		o.firstFaults.At(n, crashFault(moment, func(r Request) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.crash = &Write{Request: r}
			close(crashed)
		}))
	}
	go func() {
		defer close(o.ended)
		err := o.live(ctx, o.firstFaults, crashed)
		if err == nil && ctx.Err() == nil {
			err = o.live(ctx, scenario.faults(), nil)
		}
		if err != nil {
			o.failed <- err
		}
	}()
	return o
}

// stop ends the operator and waits until it has.
func (o *crashOperator) stop() {
	o.cancel()
	<-o.ended
}

// live is one life: it returns nil once Start has returned because of a crash or
// the end of ctx.
func (o *crashOperator) live(ctx context.Context, faults *Faults, crashed <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &life{faults: faults, up: true}
	o.mu.Lock()
	o.life = l
	o.lives++
	o.mu.Unlock()

	returned := make(chan error, 1)
	go func() { returned <- o.scenario.Start(ctx, faults.Wrap(o.config), o.namespace) }()

	select {
	case err := <-returned:
		if isClosed(crashed) || ctx.Err() != nil {
			return nil
		}
		if err == nil {
			err = errors.New("start returned nil")
		}
		return fmt.Errorf("the operator ended by itself: %w", err)
	case <-crashed:
	case <-ctx.Done():
	}

	faults.Cut()
	o.mu.Lock()
	l.up = false
	o.mu.Unlock()
	cancel()
	timer := time.NewTimer(o.scenario.Timeout)
	defer timer.Stop()
	select {
	case <-returned: //nolint:errcheck // an operator that was ended may return anything
		return nil
	case <-timer.C:
		return fmt.Errorf("start did not return within %s after its context had ended", o.scenario.Timeout)
	}
}

func (o *crashOperator) progress() progress {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.life == nil {
		return progress{}
	}
	p := progress{lives: o.lives, up: o.life.up}
	p.seen, p.writes, p.busy = o.life.faults.activity()
	return p
}

// crashedAt returns the write at which the operator crashed, or nil.
func (o *crashOperator) crashedAt() *Write {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.crash
}

// crashFault cuts the link for good, in the same moment in which the write is
// counted: of what arrives later nothing gets through, not even while the answer of
// a write that is carried out is awaited.
func crashFault(moment Moment, end func(Request)) Fault {
	if moment == Before {
		return Fault{text: "crash before", then: linkCut, do: func(x exchange) (*http.Response, error) {
			end(x.request)
			return nil, refused("the operator was ended before this write")
		}}
	}
	return Fault{text: "crash after", then: linkHeld, do: func(x exchange) (*http.Response, error) {
		err := carryOut(x)
		x.shut()
		end(x.request)
		if err != nil {
			return nil, err
		}
		return nil, lost("the operator was ended after this write")
	}}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
