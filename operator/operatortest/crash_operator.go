package operatortest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// crashOperator runs a scenario's operator in one run: one life, and after each crash another one.
type crashOperator struct {
	start     func(ctx context.Context, cfg *rest.Config, namespace string) error
	timeout   time.Duration
	newFaults func() *Faults
	config    *rest.Config // that of the API server, without faults
	namespace string
	plan      []runPoint
	lags      *lags // nil when nothing lags in any run
	tenant    func() error

	again  chan struct{} // ends a life in good order
	failed chan error    // has one error when a life ended as it must not
	ended  chan struct{}
	cancel context.CancelFunc

	firstFaults *Faults // the first life's

	mu    sync.Mutex
	life  *life
	lives int
	met   []Point // the mishaps so far
}

// life is the operator from a start to its end.
type life struct {
	faults *Faults
	lag    *Lag // nil when nothing lags in any run
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
	behind bool // the API server lags behind
}

// newCrashOperator returns an operator that meets the mishaps of a plan.
func newCrashOperator(scenario Scenario, config *rest.Config, namespace string, plan []runPoint) *crashOperator {
	return &crashOperator{
		start: scenario.Start, timeout: scenario.Timeout, newFaults: scenario.faults, config: config, namespace: namespace, plan: plan,
		firstFaults: scenario.faults(),
		again:       make(chan struct{}),
		failed:      make(chan error, 1),
		ended:       make(chan struct{}),
	}
}

// run starts the operator, which goes on until stop.
func (o *crashOperator) run(ctx context.Context) {
	ctx, o.cancel = context.WithCancel(ctx)
	go func() {
		defer close(o.ended)
		faults := o.firstFaults
		for life := 1; ctx.Err() == nil; life++ {
			lag := o.lags.next()
			if err := o.live(ctx, faults, lag, o.meet(faults, lag, life)); err != nil {
				o.failed <- err
				return
			}
			faults = o.newFaults()
		}
	}()
}

// meet sets the mishaps of a life, and returns what is closed when one of them is a crash.
func (o *crashOperator) meet(faults *Faults, lag *Lag, life int) <-chan struct{} {
	crashed := make(chan struct{})
	for _, point := range o.plan {
		if point.life != life {
			continue
		}
		faults.At(point.n, point.mishap.fault(func(r Request) {
			detail := o.lags.meet(point, lag)
			if point.mishap == TenantMeddles {
				if err := o.tenant(); err != nil {
					detail = err.Error()
				}
			}
			o.mu.Lock()
			defer o.mu.Unlock()
			o.met = append(o.met, Point{Mishap: point.mishap, Life: life, Write: Write{Request: r}, Detail: detail})
			if point.mishap.isCrash() {
				close(crashed)
			}
		}))
	}
	return crashed
}

// restart has the operator end in good order, and live again.
func (o *crashOperator) restart(ctx context.Context) {
	select {
	case o.again <- struct{}{}:
	case <-o.ended:
	case <-ctx.Done():
	}
}

// writes returns those of the present life.
func (o *crashOperator) writes() []Write {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.life.faults.Writes()
}

// stop ends the operator and waits until it has.
func (o *crashOperator) stop() {
	o.cancel()
	<-o.ended
}

// live is one life: it returns nil once Start has returned because of a crash, a restart or
// the end of ctx.
func (o *crashOperator) live(ctx context.Context, faults *Faults, lag *Lag, crashed <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	config := o.config
	if lag != nil {
		config = lag.Wrap(config)
	}
	l := &life{faults: faults, lag: lag, up: true}
	o.mu.Lock()
	o.life = l
	o.lives++
	o.mu.Unlock()

	returned := make(chan error, 1)
	go func() {
		returned <- o.start(context.WithValue(ctx, faultsKey{}, faults), faults.Wrap(config), o.namespace)
	}()

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
		faults.Cut()
	case <-ctx.Done():
		faults.Cut()
	case <-o.again:
	}

	o.mu.Lock()
	l.up = false
	o.mu.Unlock()
	cancel()
	timer := time.NewTimer(o.timeout)
	defer timer.Stop()
	select {
	case <-returned: //nolint:errcheck // an operator that was ended may return anything
		return nil
	case <-timer.C:
		return fmt.Errorf("start did not return within %s after its context had ended", o.timeout)
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
	p.behind = o.life.lag != nil && o.life.lag.Lags()
	return p
}

// mishaps returns what the operator has met so far.
func (o *crashOperator) mishaps() []Point {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.met)
}

// faultsKey is the key of the faults of a life in the context of its start.
type faultsKey struct{}

// TransportOf returns a round tripper that sends through the faults of the run whose [Scenario.Start] was given ctx, and then next:
// the requests to other systems count there as those to the API server do, and end with them in a crash. With any other
// context it is next.
func TransportOf(ctx context.Context, next http.RoundTripper) http.RoundTripper {
	if faults, ok := ctx.Value(faultsKey{}).(*Faults); ok {
		return faults.Transport(next)
	}
	return next
}

// fault is what makes the mishap happen; met is called when it does.
//
// A crash cuts the link for good, in the same moment in which the write is counted: of what arrives later nothing gets
// through, not even while the answer of a write that is carried out is awaited.
func (m Mishap) fault(met func(Request)) Fault {
	switch m {
	case CrashBefore:
		return Fault{text: m.String(), then: linkCut, do: func(x exchange) (*http.Response, error) {
			met(x.request)
			return nil, refused("the operator was ended before this write")
		}}
	case CrashAfter, RestartBehind, RestartInThePast, RestartWarm:
		return Fault{text: m.String(), then: linkHeld, do: func(x exchange) (*http.Response, error) {
			err := carryOut(x)
			x.shut()
			met(x.request)
			if err != nil {
				return nil, err
			}
			return nil, lost("the operator was ended after this write")
		}}
	case EventsHeld, EventsReordered, EventsDropped, EventsRepeated, WatchesRefused:
		return Fault{text: m.String(), do: func(x exchange) (*http.Response, error) {
			met(x.request)
			return x.send(x.ctx)
		}}
	}
	if m == TenantMeddles {
		return Fault{text: m.String(), do: func(x exchange) (*http.Response, error) {
			defer met(x.request)
			return x.send(x.ctx)
		}}
	}
	answer := m.answer()
	return Fault{text: answer.text, do: func(x exchange) (*http.Response, error) {
		defer met(x.request)
		return answer.do(x)
	}}
}

// answer is the wrong one that the operator gets.
func (m Mishap) answer() Fault {
	switch m {
	case AnswerNotFound:
		return LieNotFound()
	case AnswerConflict:
		return LieConflict()
	case AnswerInternalError:
		return LieInternalError()
	}
	return FailAfter()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
