package framework

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/utils/lru"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/internal/queue"
	"github.com/operatorkit/operatorkit/framework/internal/shadows"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/access"
	"github.com/operatorkit/operatorkit/internal/ledger"
	"github.com/operatorkit/operatorkit/internal/panics"
)

// Framework reconciles the objects of one primary source. It watches, queues, orders, retries,
// deletes safely and measures; its resources do the work. Make one with New and run it once.
type Framework struct {
	config     Config
	source     informer.Source
	push       *informer.Push
	finalizers informer.FinalizerStore
	// finalizer is the current finalizer, and formerFinalizers are the earlier ones.
	finalizer        string
	formerFinalizers []string
	// scope is the framework's scope, and scopes are the scopes of the resources of each set.
	scope  identity.Scope
	scopes map[*setPlanner][]identity.Scope
	// required are the policies added by Require.
	required []Policy
	// ledger counts for the limits of guards.
	ledger access.Ledger
	// guardReports are the fingerprints that were reported.
	guardReports *lru.Cache
	remover      informer.Remover
	live         informer.LiveReader
	takeover     *takeover

	queue      *queue.Queue[wakeup]
	retries    *queue.Retries[wakeup]
	tombstones tombstones
	// observers receive what happens. The metrics are one of them.
	observers observers
	metrics   *metrics
	// tracer is nil without spans.
	tracer        trace.Tracer
	reporter      *reporter
	reportedPlans reportedPlans
	unmatched     unmatched
	failures      failures
	fights        *fights
	// logged are the sorts of unusable events that have been logged.
	logged sync.Map
	// shadows is nil without shadow sets.
	shadows *shadows.Comparisons
	// shard is nil without replicas that share the objects.
	shard access.Shard

	loops      atomic.Uint64
	begun      atomic.Bool
	activities activities
}

// New returns a framework, or an error for which IsInvalidConfig holds and which lists every fault.
func New(config Config) (*Framework, error) {
	config.Watches, config.Guards = slices.Clone(config.Watches), slices.Clone(config.Guards)
	if err := config.setDefaults(); err != nil {
		return nil, err
	}
	if err := config.validate(); err != nil {
		return nil, err
	}
	f := &Framework{
		config: config, source: config.Source, takeover: newTakeover(),
		ledger: &memoryLedger{book: ledger.Book{}}, guardReports: lru.New(maxGuardReports),
	}
	if config.PlanOnly {
		// Planning acts on nothing.
		f.takeover.compared(1)
	}
	if f.source == nil {
		f.push = informer.NewPush(config.Name)
		f.source = f.push
	}
	f.finalizers, _ = f.source.(informer.FinalizerStore)
	if !config.DisableFinalizer {
		f.remover, _ = f.source.(informer.Remover)
	}
	f.live, _ = f.source.(informer.LiveReader)
	f.identify(config.Identity())
	if config.TracerProvider != nil {
		f.tracer = config.TracerProvider.Tracer(tracerName)
	}
	f.queue = queue.New[wakeup]()
	f.retries = queue.NewRetries(f.queue, config.BackOffFactory)
	f.reporter = &reporter{recorder: config.Recorder, guard: f.guard, seed: maphash.MakeSeed()}
	f.fights = newFights(f)
	f.shadows = newShadows(config)
	var err error
	f.metrics, err = newMetrics(f)
	if err != nil {
		return nil, fmt.Errorf("%w: Config: Registerer: %w", ErrInvalidConfig, err)
	}
	f.observers = f.newObservers()
	return f, nil
}

// Name returns the name of the framework.
func (f *Framework) Name() string { return f.config.Name }

// Sources returns the primary source and then the sources of the watches.
func (f *Framework) Sources() []informer.Source {
	sources := []informer.Source{f.source}
	for _, w := range f.config.Watches {
		if !slices.Contains(sources, w.Source) {
			sources = append(sources, w.Source)
		}
	}
	return sources
}

// Watches returns the watches. The caller may change the slice.
func (f *Framework) Watches() []Watch { return slices.Clone(f.config.Watches) }

// Enqueue reconciles an object soon, as after a change of it. A key without an object is ignored.
// It may be called before Run, too.
func (f *Framework) Enqueue(key informer.Key) {
	if f.config.Driven {
		return
	}
	f.queue.Add(key, queue.Fresh, byRequest(CauseEnqueue, nil))
}

// EnqueueAfter reconciles an object after d, whatever happens to it until then. Only the earliest
// request for an object counts, including those by resources (requeuecontext); the others are
// dropped.
func (f *Framework) EnqueueAfter(key informer.Key, d time.Duration) {
	if !f.config.Driven {
		f.retries.Ask(key, d, byRequest(CauseRequeue, nil))
	}
}

// Run reconciles until ctx ends. It returns nil once everything it started has ended:
// reconciliations in progress get Config.ShutdownTimeout to complete, then their context is
// cancelled. If something ignores that for Config.CancelTimeout, Run returns without it, with an
// error that names it and wraps ErrStillRunning. Run first ensures the CRD and waits for the
// sources to sync. It may be called once.
func (f *Framework) Run(ctx context.Context) error {
	if f.begun.Swap(true) {
		return fmt.Errorf("run framework %q: %w: it has been run before; make a new one", f.Name(), ErrExecutionFailed)
	}
	release, err := f.claim()
	if err != nil {
		return fmt.Errorf("run framework %q: %w", f.Name(), err)
	}
	defer release()
	defer f.retries.Stop()
	defer f.queue.ShutDown()
	if f.config.CRD != nil && !f.config.PlanOnly {
		err := panics.Recovered(func() error {
			backOff := backoff.WithContext(f.config.BackOffFactory(), ctx)
			return f.config.CRDClient.EnsureCreated(ctx, f.config.CRD, backOff)
		})
		if err != nil && ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("run framework %q: ensure CRD %s: %w", f.Name(), f.config.CRD.Name, err)
		}
	}
	if err := f.runSources(ctx); err != nil {
		return fmt.Errorf("run framework %q: %w", f.Name(), err)
	}
	return nil
}

// runSources runs the sources around the workers. The sources stop last, so that a reconciliation
// that ends late still reads a live store. Events of objects before the sources are synced wait in
// the queue.
func (f *Framework) runSources(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sourcesCtx, stopSources := context.WithCancel(context.WithoutCancel(ctx))
	unsubscribe, subscribed := func() {}, make(chan struct{})

	var running sync.WaitGroup
	run := func(what string, step func() error) {
		if err := panics.Recovered(step); err != nil {
			cancel(sourceError{fmt.Errorf("%s: %w", what, err)})
		}
	}
	sourceName := func(s informer.Source) string { return fmt.Sprintf("source %q", s.Name()) }
	running.Go(func() {
		defer close(subscribed)
		run(sourceName(f.source), func() error {
			// Existing objects become the backlog.
			unsubscribe = f.source.Subscribe(f.counted(f.source, f.handlePrimary))
			return nil
		})
	})
	for _, s := range f.Sources() {
		running.Go(func() {
			<-subscribed
			run(sourceName(s), func() error { return s.Run(sourcesCtx) })
		})
	}
	if f.config.Informer != nil {
		running.Go(func() { run("informer", func() error { f.watchInformer(sourcesCtx); return nil }) })
	}
	err := f.workWhenSynced(ctx)
	<-subscribed
	unsubscribe()
	stopSources()
	if !endedWithin(&running, f.config.CancelTimeout) {
		err = errors.Join(err, f.stillRunning("a source, or the Informer"))
	}
	var failure sourceError
	errors.As(context.Cause(ctx), &failure)
	return errors.Join(failure.error, err)
}

// workWhenSynced works once the sources are synced, unless ctx ends before.
func (f *Framework) workWhenSynced(ctx context.Context) error {
	for _, s := range f.Sources() {
		err := panics.Recovered(func() error { return s.WaitForSync(ctx) })
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("source %q: wait for its sync: %w", s.Name(), err)
		}
	}
	f.takeOver(ctx)
	f.log("info", "started", "workers", f.config.Workers)
	err := f.work(ctx)
	f.log("info", "stopped")
	return err
}

// subscribeWatched makes events of the watched sources enqueue keys, starting before the first
// reconciliation. Objects that these sources already hold are skipped: they concern objects of the
// backlog. Map functions get the identity of the framework, which lets them distinguish objects of
// others. They are called only when all sources are synced.
func (f *Framework) subscribeWatched(ctx context.Context) (unsubscribes []func()) {
	ctx = identity.NewContext(ctx, &f.scope)
	for _, w := range f.config.Watches {
		unsubscribes = append(unsubscribes, w.Source.Subscribe(f.counted(w.Source, func(e informer.Event) {
			if e.Type != informer.Added || !e.Backlog {
				f.handleWatched(ctx, w, e)
			}
		})))
	}
	return unsubscribes
}

func (f *Framework) handlePrimary(e informer.Event) {
	f.metrics.ages.track(e)
	if e.Type == informer.Deleted && f.shadows != nil {
		f.shadows.Forget(e.Key)
	}
	if f.config.Driven {
		if e.Type == informer.Deleted {
			f.failures.Delete(e.Key)
		}
		return
	}
	_, behind := f.takeover.behind.Get(e.Key)
	if e.Type == informer.Deleted && !f.rememberEnd(e) {
		return
	}
	// The remains of a deleted object must be processed, whatever deleted it.
	f.enqueue(e, e.Key, f.source, informer.Key{}, f.config.OwnWrites || behind || e.Type == informer.Deleted)
}

// rememberEnd records the end of an object, and reports whether there is anything left to do.
func (f *Framework) rememberEnd(e informer.Event) bool {
	if !f.tracksDeletion(e.Key) {
		return false
	}
	left := f.tombstones.add(e.Key, tombstone{e.Object, f.takeover.endedBefore(e.Key, e.Object)})
	f.takeover.ended(e.Key, e.Object) // Until here, HasUnprocessed found the object there.
	return left
}

// enqueue adds the key unless the event was caused by its own write. watched is as in byEvent.
func (f *Framework) enqueue(
	e informer.Event, key informer.Key, source informer.Source, watched informer.Key, ownWrites bool,
) {
	lane, why := byEvent(source.Name(), e, watched)
	if ownWrites {
		f.queue.Add(key, lane, why)
		return
	}
	e.Wake(f, key, func() { f.queue.Add(key, lane, why) })
}

// handleWatched enqueues the primaries of a watched object, each once: the present and the former
// ones.
func (f *Framework) handleWatched(ctx context.Context, w Watch, e informer.Event) {
	keys := f.mapped(ctx, w, e, e.Object)
	if e.Old != nil {
		for _, key := range f.mapped(ctx, w, e, e.Old) {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	for _, key := range keys {
		f.enqueue(e, key, w.Source, e.Key, w.OwnWrites)
	}
}

// mapped calls the map function of a watch. A panic maps to nothing.
func (f *Framework) mapped(ctx context.Context, w Watch, e informer.Event, obj any) (keys []informer.Key) {
	f.guard("map to primary", func() {
		keys = slices.Clone(w.Map(ctx, obj))
	}, "source", w.Source.Name(), "object", describe(obj, e.Key))
	return keys
}

// work runs the workers, and feeds them, until ctx has ended and the last reconciliation has. The
// sources are synced. The error names everything that ignores the end of its context.
func (f *Framework) work(ctx context.Context) error {
	workCtx, cancelWork := context.WithCancel(context.WithoutCancel(ctx))
	defer cancelWork()
	for _, unsubscribe := range f.subscribeWatched(ctx) {
		defer unsubscribe()
	}
	var workers sync.WaitGroup
	for range f.config.Workers {
		busyCtx, activity := f.activities.add(workCtx, false)
		workers.Go(func() { f.worker(ctx, busyCtx, activity) })
	}
	workers.Go(func() { f.takeOverMore(ctx) })
	f.runShadows(ctx, &workers)
	<-ctx.Done()
	f.queue.ShutDown()
	timeout := max(f.config.ShutdownTimeout, 0)
	if errors.Is(context.Cause(ctx), ErrStopNow) {
		timeout = 0
	}
	if endedWithin(&workers, timeout) {
		return nil
	}
	cancelWork()
	if endedWithin(&workers, f.config.CancelTimeout) {
		return nil
	}
	var left []string
	for _, a := range f.Activities() {
		left = append(left, a.String())
	}
	return f.stillRunning(left...)
}

// worker takes keys from the queue until the queue is shut down. It starts nothing once ctx has
// ended, and works with busyCtx.
func (f *Framework) worker(ctx, busyCtx context.Context, activity *activity) {
	for {
		e, ok := f.queue.Next()
		if !ok {
			return
		}
		if ctx.Err() == nil { // otherwise the queue is about to be shut down
			f.carryOut(busyCtx, e, activity)
		}
	}
}

// carryOut reconciles one object. It always returns the key to the queue.
func (f *Framework) carryOut(ctx context.Context, e *waiting, activity *activity) {
	defer f.queue.Done(e)
	defer activity.end()
	waited := time.Since(e.Since)
	f.metrics.waits.Observe(waited.Seconds())
	activity.begin(e.Key, f.metrics.now())
	if f.tracer != nil {
		activity.because(e, waited)
	}
	if f.shard == nil {
		f.reconcileEntry(ctx, e)
	} else {
		f.reconcileShared(ctx, e)
	}
}
