package upgrade

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/giantswarm/micrologger"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/access"
	"github.com/operatorkit/operatorkit/internal/cut"
	"github.com/operatorkit/operatorkit/internal/panics"
	"github.com/operatorkit/operatorkit/operator/internal/record"
)

// Config configures a Controller. All fields without a comment about a default are required.
type Config struct {
	// Record is where the replicas share the state.
	Record record.Record[State]
	Build  Build
	Rules  Rules
	// MinReady is how long an object must be ready before it gives its place back, and
	// ProgressDeadline is how long that may take.
	MinReady, ProgressDeadline time.Duration
	// Ready reports whether an object is ready. It is called with copies. Default: IsReady.
	Ready func(obj any) bool
	// Canaries selects the objects that go first. Default: none.
	Canaries   labels.Selector
	Frameworks []*framework.Framework
	// Replica is the name of this replica.
	Replica string
	// Owns reports whether this replica reconciles an object. Default: all.
	Owns func(key informer.Key) bool
	// Live returns the names of the replicas at work. Default: this one.
	Live func() []string
	// Leads reports whether this replica begins and finishes upgrades. Default: always.
	Leads func() bool
	// Writes reports whether this replica may write now. Otherwise there are no rounds. Default:
	// always.
	Writes func() bool
	Logger micrologger.Logger
	// Failed is called when an object fails, and Halted when the upgrade halts. Default: none.
	Failed func(obj any, why string)
	Halted func(state State)
}

// Controller limits the changes of a replica to those that the state admits. It is safe for
// concurrent use.
type Controller struct {
	config Config
	// woken has a value when a round should follow at once.
	woken chan struct{}

	mu sync.Mutex
	// state is the last known state. It is nil before the first round, and fault says why.
	state *State
	fault error
	// seen are the objects that were reconciled by this process, with the result of the last time.
	// lastSeen is when the last one was added. waiting are the objects that wait for a place, and
	// admitted those that have one, or need none.
	seen     map[id]result
	lastSeen time.Time
	waiting  map[id]*waiting
	admitted map[id]*progress
}

// id identifies an object of the operator.
type id struct {
	framework string
	key       informer.Key
}

// result is the result of the last reconciliation of an object by this process.
type result struct {
	// first is when this process first tried to reconcile the object, and counts is true if it
	// need not be waited for any more.
	first  time.Time
	counts bool
	// succeeded is true if the resources have run, and idle if a policy holds something, without
	// an error.
	succeeded, idle bool
	err             string
}

// waiting is an object that waits for a place.
type waiting struct {
	object Object
	canary bool
	onHold bool
	hash   uint64
	// held is true from the moment at which the object was held until that reconciliation ends.
	held bool
	// would says what would be changed.
	would string
}

// progress is an object that this process may change.
type progress struct {
	uid types.UID
	// ready is when the object has become ready after a reconciliation that has succeeded.
	ready  time.Time
	failed string
	// once is true if the object needs no place, until its reconciliation succeeds.
	once bool
}

// New returns a controller, and makes it a policy of the frameworks.
func New(config Config) *Controller {
	if config.Ready == nil {
		config.Ready = IsReady
	}
	config.Ready = oneByOne(config.Ready)
	if config.Canaries == nil {
		config.Canaries = labels.Nothing()
	}
	config.Rules.Canaries = !config.Canaries.Empty() && config.Canaries.String() != labels.Nothing().String()
	if config.Owns == nil {
		config.Owns = func(informer.Key) bool { return true }
	}
	if config.Live == nil {
		config.Live = func() []string { return []string{config.Replica} }
	}
	if config.Leads == nil {
		config.Leads = func() bool { return true }
	}
	if config.Writes == nil {
		config.Writes = func() bool { return true }
	}
	c := &Controller{
		config: config, woken: make(chan struct{}, 1),
		seen: map[id]result{}, waiting: map[id]*waiting{}, admitted: map[id]*progress{},
	}
	for _, f := range config.Frameworks {
		f.Require(policy{c, f.Name()})
		access.EngineOf(f).OnEnd(func(e access.End) { c.ended(id{f.Name(), e.Key}, e) })
	}
	return c
}

// oneByOne calls a function for one object at a time. An object for which it panics is not ready.
func oneByOne(ready func(any) bool) func(any) bool {
	var mu sync.Mutex
	return func(obj any) (is bool) {
		mu.Lock()
		defer mu.Unlock()
		err := panics.Recovered(func() error { is = ready(obj); return nil })
		return err == nil && is
	}
}

// State returns the last known state, and false before there is one.
func (c *Controller) State() (State, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == nil {
		return State{}, false
	}
	return *c.state, true
}

// Held is an object of this replica that waits for a place.
type Held struct {
	Object
	Why string
}

// Held returns some of the objects of this replica that wait, in the order in which they get places.
func (c *Controller) Held(limit int) (held []Held) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range sorted(slices.Collect(maps.Values(c.waiting))) {
		if len(held) == limit {
			break
		}
		if c.state != nil && c.state.Has(w.object) {
			continue
		}
		why := "would " + w.would
		if w.onHold {
			why = "on hold by the annotation " + Annotation + ": " + why
		}
		held = append(held, Held{w.object, why})
	}
	return held
}

// The pauses between two rounds, and how long one may take.
const (
	roundPeriod  = time.Second
	idlePeriod   = 5 * time.Second
	minRound     = 50 * time.Millisecond
	roundTimeout = 30 * time.Second
)

// Run writes and follows the state until ctx ends.
func (c *Controller) Run(ctx context.Context) {
	for ctx.Err() == nil {
		pause := roundPeriod
		if state, known := c.State(); known && state.Phase != Running {
			pause = idlePeriod
		}
		select {
		case <-ctx.Done():
		case <-c.woken:
			time.Sleep(minRound)
		case <-time.After(pause):
		}
		c.Round(ctx)
	}
}

// Round does one round. An error is logged, and repeated by the next round.
func (c *Controller) Round(ctx context.Context) {
	if ctx.Err() != nil || !c.config.Writes() {
		return
	}
	limited, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	err := panics.Recovered(func() error { return c.round(limited) })
	c.mu.Lock()
	told := c.fault
	c.fault = err
	c.mu.Unlock()
	if err != nil && ctx.Err() == nil && (told == nil || told.Error() != err.Error()) {
		c.config.Logger.Log("level", "error", "message", "the state of the upgrade can't be read or written, retrying; objects that wait for it stay unchanged", "error", err.Error())
	}
}

func (c *Controller) round(ctx context.Context) error {
	now := time.Now()
	contribution := c.contribution(now)
	leads := c.config.Leads()
	known, _ := c.State()
	var before State
	state, err := c.config.Record.Change(ctx, func(s *State) error {
		restored := leads && s.Phase == "" && known.Phase != ""
		if restored {
			// Somebody has deleted the ConfigMap.
			*s = known
			s.Places, s.Reports = slices.Clone(known.Places), maps.Clone(known.Reports)
		}
		if s.Phase == Running && known.Phase != Running {
			contribution.Failed = nil // It is resumed, and everything is tried again.
		}
		before = *s
		before.Places = slices.Clone(s.Places)
		begun := leads && s.Begin(c.config.Build, now)
		if !s.Apply(c.config.Rules, contribution) && !begun && !restored {
			return record.ErrUnchanged
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.follow(before, state, now)
	return nil
}

// contribution returns what this replica knows.
func (c *Controller) contribution(now time.Time) Round {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := Round{
		Now: now, Replica: c.config.Replica, Build: c.config.Build, Live: c.config.Live(), Finishes: c.config.Leads(),
		Failed: map[Object]string{},
	}
	if c.state == nil || c.state.Phase == Finished {
		// The objects count from the next round on.
		r.Report.Unseen = 1
		return r
	}
	for of := range c.seen {
		if !c.config.Owns(of.key) {
			delete(c.seen, of)
		}
	}
	for _, of := range c.all() {
		r.Report.Objects++
		if last, seen := c.seen[of]; !seen || !last.counts && r.Now.Sub(last.first) < c.config.ProgressDeadline {
			r.Report.Unseen++
			r.Report.Canaries += c.canaries(of)
		}
	}
	c.places(&r)
	c.candidates(&r)
	return r
}

// canaries returns 1 if the object is a canary, and 0 otherwise.
func (c *Controller) canaries(of id) int {
	if !c.config.Rules.Canaries {
		return 0
	}
	if obj, exists := c.object(of); exists && c.isCanary(obj) {
		return 1
	}
	return 0
}

func (c *Controller) isCanary(obj any) bool {
	m, ok := obj.(informer.Meta)
	return ok && c.config.Rules.Canaries && c.config.Canaries.Matches(labels.Set(m.GetLabels()))
}

// places finds out which objects of this replica need their places no more, and which have failed.
func (c *Controller) places(r *Round) {
	for _, p := range c.state.Places {
		f := c.framework(p.Framework)
		if f == nil {
			// The operator has no such framework any more: nothing changes the object.
			r.Gone = append(r.Gone, p.Object)
			continue
		}
		if !c.config.Owns(p.key()) {
			continue
		}
		obj, exists, err := f.Sources()[0].Get(p.key())
		switch {
		case err != nil, !f.Sources()[0].Status().Synced:
		case !exists, uidOf(obj) != p.UID, beingDeleted(obj), annotated(obj, hold), access.EngineOf(f).LeavesAlone(obj):
			r.Gone = append(r.Gone, p.Object)
		default:
			c.place(r, p, obj)
		}
	}
}

// place finds out whether an object with a place is ready, or has failed.
func (c *Controller) place(r *Round, p Place, obj any) {
	of := c.admitted[p.id()]
	if of == nil || of.uid != p.UID {
		of = &progress{uid: p.UID}
		c.admitted[p.id()] = of
	}
	last := c.seen[p.id()]
	if (!last.succeeded || !c.config.Ready(obj)) && !c.fights(p) {
		of.ready = time.Time{}
	} else if of.ready.IsZero() {
		of.ready = r.Now
	}
	grace := min(c.config.ProgressDeadline, time.Minute)
	failed := of.failed
	if p.Unready {
		failed = ""
	}
	late := r.Now.Sub(p.Since) >= c.config.ProgressDeadline && !last.first.IsZero() && r.Now.Sub(last.first) >= grace
	if failed == "" && late && of.ready.IsZero() && !last.idle {
		failed = fmt.Sprintf("is not ready %s after it was admitted", c.config.ProgressDeadline)
		if last.err != "" {
			failed += ": " + last.err
		}
	}
	switch {
	case !of.ready.IsZero() && r.Now.Sub(of.ready) >= c.config.MinReady:
		r.Ready = append(r.Ready, p.Object)
		return
	case failed != "" && p.Unready:
		// It was not ready before either. It may be changed without a place from now on.
		of.ready = r.Now
		r.Gone = append(r.Gone, p.Object)
		return
	case failed != "":
		r.Failed[p.Object] = failed
	}
	if p.Failed == "" && c.isCanary(obj) {
		r.Report.Canaries++
	}
}

// fights reports whether a change of an object is undone again and again. Then the object does not
// become ready, and keeps its place only as long as one that is.
func (c *Controller) fights(p Place) bool {
	return slices.ContainsFunc(c.framework(p.Framework).Fights(), func(f framework.Fight) bool { return f.Key == p.key() })
}

// quiet is how long no object is reconciled for the first time before places are given although
// some objects were not reconciled yet.
const quiet = 10 * time.Second

// candidates adds the objects that wait.
func (c *Controller) candidates(r *Round) {
	var all []*waiting
	for of, w := range c.waiting {
		if !c.config.Owns(of.key) {
			delete(c.waiting, of)
			continue
		}
		if w.onHold {
			if len(r.Report.OnHold) < MaxOnHold {
				r.Report.OnHold = append(r.Report.OnHold, w.object.String())
			}
			continue
		}
		r.Report.Held++
		if w.canary {
			r.Report.Canaries++
		}
		if !c.state.Has(w.object) {
			all = append(all, w)
		}
	}
	if r.Report.Unseen > 0 && r.Now.Sub(c.lastSeen) < quiet {
		return
	}
	for _, w := range sorted(all) {
		r.Waiting = append(r.Waiting, Candidate{w.object, w.canary, func() bool { return c.isUnready(w.object) }})
	}
}

// isUnready reports whether an object that is about to get a place is not ready.
func (c *Controller) isUnready(o Object) bool {
	obj, exists := c.object(o.id())
	return exists && !c.config.Ready(obj)
}

// sorted sorts objects that wait: canaries first.
func sorted(all []*waiting) []*waiting {
	slices.SortFunc(all, func(a, b *waiting) int {
		switch {
		case a.canary == b.canary:
			return cmp.Compare(a.hash, b.hash)
		case a.canary:
			return -1
		}
		return 1
	})
	return all
}

// follow makes the state that was read or written the one that counts, and reconciles the objects
// that it admits.
func (c *Controller) follow(before, now State, at time.Time) {
	c.mu.Lock()
	known := c.state
	c.state = &now
	ours := now.To.ID == c.config.Build.ID
	var wake []id
	another := known == nil || known.To.ID != now.To.ID || !known.Since.Equal(now.Since)
	if another {
		c.lastSeen = at
	}
	if known != nil && another {
		// The upgrade has started while this process was working: it has reconciled everything
		// before that.
		c.seen, c.admitted = map[id]result{}, map[id]*progress{}
		if ours {
			wake = c.all()
		}
	}
	if ours && known != nil && known.Phase != Running && now.Phase == Running {
		// The upgrade is resumed: what has failed is tried again.
		for of, p := range c.admitted {
			p.failed = ""
			wake = append(wake, of)
		}
	}
	for of, w := range c.waiting {
		if ours && (now.Phase == Finished || now.Has(w.object)) {
			wake = append(wake, of)
			delete(c.waiting, of)
			c.admitted[of] = &progress{uid: w.object.UID}
		}
	}
	if ours && now.Phase == Finished {
		clear(c.waiting)
		clear(c.seen)
		clear(c.admitted)
	}
	c.mu.Unlock()
	for _, of := range wake {
		c.framework(of.framework).Enqueue(of.key)
	}
	c.report(before, now)
}

// all returns the objects of this replica.
func (c *Controller) all() (all []id) {
	for _, f := range c.config.Frameworks {
		for _, key := range f.Keys() {
			if c.config.Owns(key) {
				all = append(all, id{f.Name(), key})
			}
		}
	}
	return all
}

// report logs and reports what has changed.
func (c *Controller) report(before, now State) {
	c.reportFailures(before, now)
	if before.Phase == now.Phase && before.To == now.To {
		return
	}
	level := "info"
	if now.Phase == Halted {
		level = "error"
	}
	fields := []any{"level", level, "message", "upgrade " + string(now.Phase), "from", now.From.String(), "to", now.To.String(), "done", now.Done}
	if now.Reason != "" {
		fields = append(fields, "reason", now.Reason)
	}
	c.config.Logger.Log(fields...)
	if now.Phase == Halted && c.config.Halted != nil {
		c.config.Halted(now)
	}
}

// reportFailures reports the objects of this replica that have failed since.
func (c *Controller) reportFailures(before, now State) {
	for _, p := range now.Places {
		i := before.place(p.Object)
		f := c.framework(p.Framework)
		if p.Failed == "" || i >= 0 && before.Places[i].Failed != "" || f == nil || c.config.Failed == nil || !c.config.Owns(p.key()) {
			continue
		}
		if obj, exists := c.object(p.id()); exists {
			c.config.Failed(obj, p.Failed)
		}
	}
}

// ended notes the end of a reconciliation.
func (c *Controller) ended(of id, e access.End) {
	if e.Skipped {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != nil && c.state.Phase == Finished && c.state.To.ID == c.config.Build.ID {
		return
	}
	if e.Gone {
		delete(c.seen, of)
		delete(c.admitted, of)
		delete(c.waiting, of)
		return
	}
	w := c.waiting[of]
	held := w != nil && w.held
	switch {
	case held:
		w.held = false
	case e.Failed:
		c.failed(of, e)
	case e.Err == nil:
		delete(c.waiting, of)
	}
	last, seen := c.seen[of]
	if !seen {
		last.first, c.lastSeen = time.Now(), time.Now()
	}
	last.counts = last.counts || e.Err == nil || c.waiting[of] != nil || framework.IsPermanent(e.Err)
	last.succeeded = !held && (e.Succeeded || e.Canceled)
	last.idle = e.Err == nil && !last.succeeded
	last.err = textOf(e.Err)
	c.seen[of] = last
	p := c.admitted[of]
	switch {
	case p == nil:
	case last.succeeded && p.once:
		delete(c.admitted, of)
	case last.succeeded:
		p.failed = ""
	case framework.IsPermanent(e.Err):
		p.failed = "fails with a permanent error: " + last.err
	}
	if !seen || p != nil {
		c.wake()
	}
}

// maxFailure limits the text of an error in the state, in bytes.
const maxFailure = 300

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return cut.Text(err.Error(), maxFailure)
}

// wait notes that an object waits for a place.
func (c *Controller) wait(of id, obj any, would string) {
	o := Object{Framework: of.framework, Namespace: of.key.Namespace, Name: of.key.Name, UID: uidOf(obj)}
	c.waiting[of] = &waiting{object: o, canary: c.isCanary(obj), onHold: annotated(obj, hold), hash: hashOf(o), would: would}
	c.wake()
}

// failed notes that an object fails. Without a place it waits for one: the new build must not make
// more objects fail than the budget allows.
func (c *Controller) failed(of id, e access.End) {
	if p := c.admitted[of]; p != nil {
		return
	}
	if obj, exists := c.object(of); exists && !beingDeleted(obj) {
		c.wait(of, obj, "fail: "+textOf(e.Err))
	}
}

func (c *Controller) wake() {
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

func (c *Controller) framework(name string) *framework.Framework {
	for _, f := range c.config.Frameworks {
		if f.Name() == name {
			return f
		}
	}
	return nil
}

// object returns an object as its source holds it, if it does.
func (c *Controller) object(of id) (obj any, exists bool) {
	obj, exists, err := c.framework(of.framework).Sources()[0].Get(of.key)
	return obj, err == nil && exists
}

// hashOf spreads the objects over the order.
func hashOf(o Object) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(o.String()))
	return h.Sum64()
}

func beingDeleted(obj any) bool {
	m, ok := obj.(informer.Meta)
	return ok && m.GetDeletionTimestamp() != nil
}

func uidOf(obj any) types.UID {
	if m, ok := obj.(informer.Meta); ok {
		return m.GetUID()
	}
	return ""
}
