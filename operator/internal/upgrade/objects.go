package upgrade

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/access"
	"github.com/operatorkit/operatorkit/internal/cut"
	"github.com/operatorkit/operatorkit/internal/panics"
)

// id identifies an object of the operator.
type id struct {
	framework string
	key       informer.Key
}

// object is what this process knows about an object that it has tried to reconcile.
type object struct {
	// first is when it first tried, and seen is true if the object need not be waited for any more.
	first time.Time
	seen  bool
	// succeeded, idle and err are the result of the last reconciliation: the resources have run, or
	// a policy holds something, or an error.
	succeeded, idle bool
	err             string

	// held says what would be changed if the object had a place. It is empty if the object does not
	// wait for one. The candidate is set then, and onHold.
	held string
	Candidate
	onHold bool
	// rank sorts the objects that wait: canaries first, then by a hash.
	rank string
	// holding is true from the moment at which the object was held until that reconciliation ends.
	holding bool

	// free is true if the object needs no place, until its reconciliation succeeds.
	free bool
	// ready is when the object with a place has become ready after a reconciliation that has
	// succeeded. It is kept when the place was given back: the object needs none any more.
	ready time.Time
	// failed is the permanent error of an object that was admitted.
	failed string
}

// known returns what is known about an object.
func (c *Controller) known(of id) *object {
	o := c.objects[of]
	if o == nil {
		o = &object{first: time.Now()}
		c.objects[of] = o
	}
	return o
}

// isAdmitted reports whether an object has a place, or needs none.
func (c *Controller) isAdmitted(o *object, of id, obj any) bool {
	return o.free || !o.ready.IsZero() || c.isCurrent() && c.state.Has(objectOf(of, obj))
}

// isCurrent reports whether the state is about the build of this process.
func (c *Controller) isCurrent() bool { return c.state.To.ID == c.config.Build.ID }

// maxFailure limits the text of an error in the state, in bytes.
const maxFailure = 300

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return cut.Text(err.Error(), maxFailure)
}

// ended notes the end of a reconciliation.
func (c *Controller) ended(of id, e access.End) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case e.Skipped, c.isCurrent() && c.state.Phase == Finished:
		return
	case e.Gone:
		delete(c.objects, of)
		return
	}
	o := c.known(of)
	o.succeeded = e.Succeeded && !o.holding
	o.idle, o.err = e.Err == nil && !o.succeeded, textOf(e.Err)
	permanent := framework.IsPermanent(e.Err)
	switch {
	case o.holding:
		o.holding = false
	case e.Failed:
		c.failed(o, of, permanent)
	case e.Err == nil:
		o.held = ""
	}
	if o.succeeded {
		o.failed, o.free = "", false
	}
	o.seen = o.seen || e.Err == nil || o.held != "" || permanent
}

// failed notes that an object fails. Without a place it waits for one: the new build must not make
// more objects fail than the budget allows.
func (c *Controller) failed(o *object, of id, permanent bool) {
	_, obj := c.stored(of)
	switch {
	case obj == nil || metaOf(obj).GetDeletionTimestamp() != nil:
	case !c.isAdmitted(o, of, obj):
		c.wait(o, of, obj, "fail: "+o.err)
	case permanent:
		o.failed = "fails with a permanent error: " + o.err
	}
}

// wait notes that an object waits for a place.
func (c *Controller) wait(o *object, of id, obj any, would string) {
	o.Candidate = Candidate{Object: objectOf(of, obj), Canary: c.isCanary(of), Unready: !c.isReady(obj)}
	o.held, o.onHold = would, isAnnotated(obj, hold)
	o.rank = fmt.Sprintf("%t %x", !o.Canary, sha256.Sum256([]byte(o.String())))
}

// waiting returns the objects that wait for a place, in the order in which they get one.
func (c *Controller) waiting() []*object {
	var all []*object
	for _, o := range c.objects {
		if o.held != "" && !c.state.Has(o.Object) {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b *object) int { return cmp.Compare(a.rank, b.rank) })
	return all
}

// contribution returns what this replica knows.
func (c *Controller) contribution(now time.Time, share Share) Round {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := Round{
		Now: now, Replica: share.Replica, Build: c.config.Build, Live: share.Live, Finishes: share.Leads, Failed: map[Object]string{},
	}
	for _, f := range c.frameworks {
		if !f.Sources()[0].Status().Synced {
			r.Report.Unseen++ // Nobody knows how many objects there are.
		}
	}
	maps.DeleteFunc(c.objects, func(of id, _ *object) bool { return !share.Owns(of.key) })
	for _, of := range c.all(share) {
		r.Report.Objects++
		o, known := c.objects[of]
		unseen := !known || !o.seen && now.Sub(o.first) < c.config.ProgressDeadline
		held := known && o.held != "" && !o.onHold
		if unseen {
			r.Report.Unseen++
		}
		if held {
			r.Report.Held++
		}
		if (unseen || held) && c.isCanary(of) {
			r.Report.Canaries++
		}
	}
	for _, o := range c.waiting() {
		if o.onHold {
			r.Report.OnHold = append(r.Report.OnHold, o.String())
		} else {
			r.Waiting = append(r.Waiting, o.Candidate)
		}
	}
	r.Report.OnHold = r.Report.OnHold[:min(len(r.Report.OnHold), MaxOnHold)]
	for _, p := range c.state.Places {
		if share.Owns(p.key()) {
			c.judge(&r, p)
		}
	}
	return r
}

// judge finds out whether an object needs its place no more, or has failed.
func (c *Controller) judge(r *Round, p Place) {
	f, obj := c.stored(p.id())
	if f != nil && !f.Sources()[0].Status().Synced {
		return
	}
	m := metaOf(obj)
	if obj == nil || m.GetUID() != p.UID || m.GetDeletionTimestamp() != nil || isAnnotated(obj, hold) || access.EngineOf(f).LeavesAlone(obj) {
		r.Gone = append(r.Gone, p.Object)
		return
	}
	if p.Failed == "" && c.isCanary(p.id()) {
		r.Report.Canaries++
	}
	o := c.objects[p.id()]
	if o == nil {
		return // It was not reconciled yet.
	}
	switch {
	case (!o.succeeded || !c.isReady(obj)) && !fights(f, p.key()):
		o.ready = time.Time{}
	case o.ready.IsZero():
		o.ready = r.Now
	}
	// A new process has the time to reconcile it.
	late := o.ready.IsZero() && !o.idle && r.Now.Sub(p.Since) >= c.config.ProgressDeadline &&
		r.Now.Sub(o.first) >= min(c.config.ProgressDeadline, time.Minute)
	failed := o.failed
	if late && failed == "" {
		failed = strings.TrimSuffix(fmt.Sprintf("is not ready %s after it was admitted: %s", c.config.ProgressDeadline, o.err), ": ")
	}
	switch {
	case !o.ready.IsZero() && r.Now.Sub(o.ready) >= c.config.MinReady:
		r.Ready = append(r.Ready, p.Object)
	case p.Unready && late:
		// It was not ready before either. It may be changed without a place from now on.
		o.ready = r.Now
		r.Gone = append(r.Gone, p.Object)
	case !p.Unready && failed != "":
		r.Failed[p.Object] = failed
	}
}

// fights reports whether a change of an object is undone again and again. Then the object does not
// become ready, and keeps its place only as long as one that is.
func fights(f *framework.Framework, key informer.Key) bool {
	return slices.ContainsFunc(f.Fights(), func(fight framework.Fight) bool { return fight.Key == key })
}

// stored returns an object as its source holds it. It is nil if the source holds none, or if this
// build has no such framework any more.
func (c *Controller) stored(of id) (f *framework.Framework, obj any) {
	if f = c.frameworks[of.framework]; f == nil {
		return nil, nil
	}
	obj, exists, err := f.Sources()[0].Get(of.key)
	if err != nil || !exists {
		return f, nil
	}
	return f, obj
}

// isCanary reports whether an object is one of those that go first.
func (c *Controller) isCanary(of id) bool {
	if !c.config.Rules.Canaries {
		return false
	}
	_, obj := c.stored(of)
	return obj != nil && c.config.Canaries.Matches(labels.Set(metaOf(obj).GetLabels()))
}

// isReady asks whether an object is ready, for one object at a time: c.mu is held. An object for
// which the function panics is not ready.
func (c *Controller) isReady(obj any) (ready bool) {
	err := panics.Recovered(func() error { ready = c.config.Ready(informer.Copy(obj)); return nil })
	return err == nil && ready
}

func objectOf(of id, obj any) Object {
	return Object{Framework: of.framework, Namespace: of.key.Namespace, Name: of.key.Name, UID: metaOf(obj).GetUID()}
}

// metaOf returns the metadata of an object, which is empty if the object has none.
func metaOf(obj any) informer.Meta {
	if m, ok := obj.(informer.Meta); ok {
		return m
	}
	return &metav1.ObjectMeta{}
}
