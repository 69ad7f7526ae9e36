package natscontroller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/util/flowcontrol"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/internal/panics"
)

var _ IController = (*ControllerRuntime[natsinformer.Entity])(nil)

// ControllerRuntime runs a controller whose primaries are entries in a bucket of NATS. Make one with NewControllerRuntime,
// embed it in a struct with methods of IController if there are any, and run it once, by Start or by Run. All methods are
// safe for concurrent use, except SetCustomController.
type ControllerRuntime[T natsinformer.Entity] struct {
	config  Config[T]
	primary *primary[T]
	custom  IController
	events  *events
	metrics *metrics
	// removals holds Config.Garbage.Rate over all searches.
	removals flowcontrol.RateLimiter
	// framework is the one that runs, and before Start one that only plans.
	framework atomic.Pointer[framework.Framework]
	// collecting is the context of the search for garbage that is under way.
	collecting atomic.Pointer[context.Context]
	begun      atomic.Bool
	// secondaries are the sources of the secondaries as the framework sees them, and handled the events of these that are being handled, by
	// the objects in them.
	secondaries map[informer.Source]*secondarySource
	handled     sync.Map
	// refusals are the names of what stands in the way of primaries, by their keys, until the event about it is written.
	refusals sync.Map
}

// NewControllerRuntime returns a controller, or an error for which framework.IsInvalidConfig holds and which names the
// faults. It sends no request.
func NewControllerRuntime[T natsinformer.Entity](config Config[T]) (*ControllerRuntime[T], error) {
	config.setDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	c := &ControllerRuntime[T]{config: config, primary: newPrimary(config.Primary), metrics: newMetrics(config.Name)}
	config.Primary.KeepDeleted()
	c.secondaries = map[informer.Source]*secondarySource{}
	for _, s := range config.Secondaries {
		c.secondaries[s.source] = &secondarySource{s.source, &c.handled}
	}
	c.custom = c
	c.removals = flowcontrol.NewTokenBucketRateLimiter(config.Garbage.Rate, 1)
	if err := c.rehearse(); err != nil {
		return nil, err
	}
	c.events = newEvents(c.Identity(), config.Events, c.metrics, config.Logger)
	if err := config.Registry.Register(c.metrics); err != nil {
		return nil, fmt.Errorf("%w: natscontroller.Config: Registry: %w", framework.ErrInvalidConfig, err)
	}
	return c, nil
}

// SetCustomController has the methods of a struct that embeds the ControllerRuntime called in place of its own. It must be
// called before Start or Run, which return an error if it is nil.
func (c *ControllerRuntime[T]) SetCustomController(customController IController) {
	c.custom = customController
}

// hasCustom tells whether there is somebody to call.
func (c *ControllerRuntime[T]) hasCustom() bool { return !faults.IsNil(c.custom) }

// Identity returns whose the marks are that the controller and its resources leave.
func (c *ControllerRuntime[T]) Identity() identity.Identity { return c.framework.Load().Identity() }

// Run is Start until stopCh is closed, with threadiness as the number of workers; 0 stands for Config.Workers. What Start
// returns goes to errCh, and to the log if nobody receives it before stopCh is closed.
func (c *ControllerRuntime[T]) Run(threadiness int, stopCh <-chan struct{}, errCh chan<- error) {
	if threadiness == 0 {
		threadiness = c.config.Workers
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() {
		select {
		case <-stopCh:
			cancel()
		case <-ctx.Done():
		}
	})
	err := c.start(ctx, threadiness)
	if err == nil {
		return
	}
	select {
	case errCh <- err:
		return
	default:
	}
	select {
	case errCh <- err:
	case <-stopCh:
		c.log("error", "controller failed", "error", err.Error())
	}
}

// Start runs the controller until ctx ends and returns nil then, once everything it started has ended. Otherwise it returns
// the errors of all parts that failed. Clean is called at the end in any case. It may be called once.
func (c *ControllerRuntime[T]) Start(ctx context.Context) error {
	return c.start(ctx, c.config.Workers)
}

func (c *ControllerRuntime[T]) start(ctx context.Context, workers int) (err error) {
	if c.begun.Swap(true) {
		return fmt.Errorf("run controller %q: %w: it has been run before; make a new one", c.config.Name, framework.ErrExecutionFailed)
	}
	if !c.hasCustom() {
		return fmt.Errorf("run controller %q: %w: SetCustomController was given nil", c.config.Name, framework.ErrInvalidConfig)
	}
	defer func() {
		cleaned := panics.Recovered(func() error {
			c.custom.Clean()
			return nil
		})
		if cleaned != nil {
			err = errors.Join(err, fmt.Errorf("run controller %q: clean: %w", c.config.Name, cleaned))
		}
	}()
	f, o, err := c.assemble(workers, c.config.Registry, c.config.LeaderElection, c.config.RESTConfig)
	if err != nil {
		return err
	}
	c.framework.Store(f)
	c.handOver(f)

	var writing sync.WaitGroup
	defer writing.Wait()
	eventsCtx, stopEvents := context.WithCancel(context.WithoutCancel(ctx))
	defer stopEvents()
	writing.Go(func() { c.events.run(eventsCtx) })
	return o.Run(ctx)
}

// Plan returns what the resources would change for a primary, and changes nothing. What SyncHandler would change is not
// known. The error is one for which apierrors.IsNotFound holds when there is no such primary. The sources must be synced.
func (c *ControllerRuntime[T]) Plan(ctx context.Context, key string) (*plan.Plan, error) {
	return c.framework.Load().Plan(ctx, informer.Key{Name: key})
}

// SyncHandler implements IController. It does nothing.
func (c *ControllerRuntime[T]) SyncHandler(string) error { return nil }

// HandleSecondary implements IController. It enqueues the primary that obj names as its owner, unless the reconciliation of that one has
// made the change. Called at another time than by the ControllerRuntime, it enqueues the owner in any case.
func (c *ControllerRuntime[T]) HandleSecondary(obj any) {
	key := c.ownerKey(obj)
	if key == "" {
		return
	}
	enqueue := func() { c.EnqueueKey(key, OperationSecondary) }
	if e, ok := c.handled.Load(obj); ok {
		e.(*handledEvent).wake(c.framework.Load(), informer.Key{Name: key}, enqueue)
		return
	}
	enqueue()
}

// Clean implements IController. It does nothing.
func (c *ControllerRuntime[T]) Clean() {}

func (c *ControllerRuntime[T]) log(level, message string, fields ...any) {
	c.config.Logger.Log(append([]any{"level", level, "message", message, "controller", c.config.Name}, fields...)...)
}
