package informer_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/plantest"
)

// history is a sequence of changes to two objects of a real API server. A source sees them late and
// wakes an author.
type history struct {
	*realServer
	t         *rapid.T
	namespace string
	source    *informer.Kubernetes
	author    *informer.Author
	stop      func()
	requests  []*sent
	// foreign has the changes by others, and writes without an answer.
	foreign []effect
	// doubtful is how many answers there were that do not prove that the author has made the
	// version.
	doubtful int
	// listings is how many listings there may have been beside the first one.
	listings int

	// mu guards what the events of the source change.
	mu    sync.Mutex
	clock int
	lives map[types.UID]life
	wakes []sight
}

// life is the known state of an object, as shown or answered.
type life struct {
	key            informer.Key
	first, version int64
	// ended is when it was known to be gone. deleted is true if the author has deleted it: earlier
	// changes by others can then no longer be read.
	ended   int
	deleted bool
}

// sight is the state that was read when the author was woken.
type sight struct {
	key     informer.Key
	uid     types.UID
	version int64
	when    int
}

// effect is what a request has changed.
type effect struct {
	key     informer.Key
	uid     types.UID
	version int64
	gone    bool
}

// sent is an executed request. Its answer is held back.
type sent struct {
	effect
	*ticket
	changed bool
	// doubtful is true if the request has no base.
	doubtful bool
	done     chan error
}

var errLost = errors.New("the answer is lost")

// foreignWrites and ownWrites are what others, and the author, may do.
var (
	foreignWrites = []string{"create", "patch", "status", "hold", "unhold", "delete"}
	ownWrites     = append(foreignWrites, "update", "apply", "locked patch", "locked nothing", "locked delete", "tested patch")
	// blindWrites have no base. For a write that creates an object, or leaves none, that does not
	// matter.
	blindWrites = []string{"patch", "hold", "unhold", "delete", "apply"}
)

// TestR11OnARealServerReadsAndWakesAreAsPromised interleaves own writes, writes of others, watches
// that are held back, cut or repeated, and restarts of the source.
func TestR11OnARealServerReadsAndWakesAreAsPromised(t *testing.T) {
	checks := flag.Lookup("rapid.checks").Value.String()
	t.Cleanup(func() { _ = flag.Set("rapid.checks", checks) })
	plantest.Checks(200)
	server := newRealServer(t)
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(server, t)
		defer h.end()
		keys := rapid.SampledFrom([]informer.Key{{Namespace: h.namespace, Name: "x"}, {Namespace: h.namespace, Name: "y"}})
		actions := map[string]func(*rapid.T){
			"": func(*rapid.T) { h.check() },
			"somebody writes": func(t *rapid.T) {
				h.somebodyWrites(keys.Draw(t, "key"), rapid.SampledFrom(foreignWrites).Draw(t, "write"))
			},
			"send": func(t *rapid.T) { h.send(keys.Draw(t, "key"), rapid.SampledFrom(ownWrites).Draw(t, "write")) },
			"write": func(t *rapid.T) {
				if r := h.send(keys.Draw(t, "key"), rapid.SampledFrom(ownWrites).Draw(t, "write")); r != nil {
					h.answer(r, false)
				}
			},
			"write nothing": func(t *rapid.T) {
				if r := h.send(keys.Draw(t, "key"), "nothing"); r != nil {
					h.answer(r, false)
				}
			},
			"answer": func(t *rapid.T) {
				if len(h.requests) == 0 {
					t.Skip()
				}
				h.answer(rapid.SampledFrom(h.requests).Draw(t, "request"), rapid.IntRange(0, 4).Draw(t, "lost") == 0)
			},
			"events are held":     func(*rapid.T) { h.lag.Hold(nil) },
			"events are repeated": func(*rapid.T) { h.lag.Repeat(nil) },
			"events catch up": func(*rapid.T) {
				h.lag.Release()
				h.catchUp()
			},
		}
		if rapid.Bool().Draw(t, "watches are cut") {
			actions["the watch is cut"] = func(*rapid.T) {
				h.listings++
				h.wire.set(true)
				h.wire.set(false)
			}
			actions["events are lost"] = func(*rapid.T) {
				h.listings++
				h.lag.Drop(nil)
			}
			actions["restart"] = func(t *rapid.T) {
				h.restart(func() {
					for range rapid.IntRange(0, 2).Draw(t, "writes meanwhile") {
						h.somebodyWrites(keys.Draw(t, "key"), rapid.SampledFrom(foreignWrites).Draw(t, "write"))
					}
				})
			}
		}
		t.Repeat(actions)
		h.conclude()
	})
}

func newHistory(server *realServer, t *rapid.T) *history {
	h := &history{realServer: server, t: t, namespace: server.instance.Namespace(server.t), lives: map[types.UID]life{},
		author: &informer.Author{Framework: "f", Key: informer.Key{Name: "primary"}}}
	source, err := informer.NewKubernetes(informer.KubernetesConfig{
		Client: server.reader, Object: &policyv1.PodDisruptionBudget{}, Namespaces: []string{h.namespace}, Logger: server.logger,
	})
	if err != nil {
		t.Fatal(err)
	}
	h.source = source
	h.start()
	if err := source.WaitForSync(server.t.Context()); err != nil {
		t.Fatal(err)
	}
	source.Subscribe(h.handle)
	return h
}

func (h *history) start() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = h.source.Run(ctx)
	}()
	h.stop = func() {
		cancel()
		<-done
	}
}

// end leaves nothing behind.
func (h *history) end() {
	for _, r := range h.requests {
		r.release <- errLost
		<-r.done //nolint:errcheck // the end is waited for, whatever came of it
	}
	h.lag.Release()
	h.stop()
}

func (h *history) handle(e informer.Event) {
	if e.Key.Name == markerName {
		return
	}
	h.mu.Lock()
	if e.Old != nil {
		h.knows(e.Key, e.Old.(client.Object), false)
	}
	h.knows(e.Key, e.Object.(client.Object), e.Type == informer.Deleted)
	h.mu.Unlock()
	e.Wake("f", h.author.Key, func() {
		s := sight{key: e.Key}
		if obj, exists, _ := h.source.Get(e.Key); exists {
			s.uid, s.version = obj.(client.Object).GetUID(), numberOf(obj.(client.Object))
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.clock++
		s.when = h.clock
		h.wakes = append(h.wakes, s)
	})
}

// knows notes a state that was shown or answered. The caller holds mu.
func (h *history) knows(key informer.Key, obj client.Object, gone bool) {
	h.clock++
	l, known := h.lives[obj.GetUID()]
	if !known {
		l = life{key: key, first: numberOf(obj)}
	}
	l.first, l.version = min(l.first, numberOf(obj)), max(l.version, numberOf(obj))
	if gone && l.ended == 0 {
		l.ended = h.clock
	}
	h.lives[obj.GetUID()] = l
}

func (h *history) somebodyWrites(key informer.Key, write string) {
	c, changed := h.carryOut(key, func(old *policyv1.PodDisruptionBudget) { _ = h.perform(h.t.Context(), h.user, write, key, old) })
	if changed {
		h.foreign = append(h.foreign, c)
	}
}

// send makes the author write an object, unless it already does, and returns the request if it was
// executed.
func (h *history) send(key informer.Key, write string) *sent {
	if slices.ContainsFunc(h.requests, func(r *sent) bool { return r.key == key }) {
		return nil
	}
	// What is changed has been read.
	stored, _, err := h.source.Get(key)
	if err != nil {
		h.t.Fatal(err)
	}
	read, _ := stored.(*policyv1.PodDisruptionBudget)
	r := &sent{ticket: newTicket(), doubtful: slices.Contains(blindWrites, write), done: make(chan error, 1)}
	ctx := context.WithValue(r.in(h.t.Context()), informer.AuthorKey, h.author)
	arrived := false
	r.effect, r.changed = h.carryOut(key, func(*policyv1.PodDisruptionBudget) {
		go func() { r.done <- h.perform(ctx, h.operator, write, key, read) }()
		select {
		case <-r.arrived:
			arrived = true
		case <-r.done: //nolint:errcheck // the end is waited for, whatever came of it
		}
	})
	switch {
	case arrived:
		h.requests = append(h.requests, r)
		return r
	case r.changed:
		h.t.Fatalf("%s of %s was refused, and has changed it", write, key)
	}
	return nil
}

// answer has a request be answered, or the answer be lost.
func (h *history) answer(r *sent, lost bool) {
	h.requests = slices.DeleteFunc(h.requests, func(other *sent) bool { return other == r })
	if lost {
		r.release <- errLost
		if err := <-r.done; err == nil {
			h.t.Fatalf("a write of %s has an answer that is lost", r.key)
		}
		if r.changed {
			h.foreign = append(h.foreign, r.effect)
		}
		return
	}
	r.release <- nil
	if err := <-r.done; err != nil {
		h.t.Fatalf("write %s: %v", r.key, err)
	}
	if r.changed && r.doubtful && !r.gone {
		h.doubtful++
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	answer := &policyv1.PodDisruptionBudget{}
	answer.UID, answer.ResourceVersion = r.uid, strconv.FormatInt(r.version, 10)
	h.knows(r.key, answer, r.gone)
	if r.gone {
		l := h.lives[r.uid]
		l.deleted = true
		h.lives[r.uid] = l
	}
}

// carryOut returns the change made by a request.
func (h *history) carryOut(key informer.Key, do func(old *policyv1.PodDisruptionBudget)) (c effect, changed bool) {
	old := h.live(h.t, key)
	do(old.DeepCopy())
	now := h.live(h.t, key)
	c = effect{key: key, gone: now == nil}
	switch {
	case now != nil:
		c.uid, c.version = now.UID, numberOf(now)
		changed = old == nil || old.ResourceVersion != now.ResourceVersion
	case old != nil:
		c.uid, c.version = old.UID, numberOf(old)
		changed = true
	}
	return c, changed
}

// restart restarts the source, with a listing.
func (h *history) restart(meanwhile func()) {
	h.listings++
	h.stop()
	meanwhile()
	mark := h.mark(h.t, h.namespace)
	h.start()
	h.shows(mark)
}

// catchUp waits until the source was shown everything.
func (h *history) catchUp() { h.shows(h.mark(h.t, h.namespace)) }

func (h *history) shows(mark *policyv1.PodDisruptionBudget) {
	operatortest.Eventually(h.realServer.t, "the source has caught up", func() error {
		obj, exists, err := h.source.Get(client.ObjectKeyFromObject(mark))
		if err == nil && (!exists || numberOf(obj.(client.Object)) < numberOf(mark)) {
			err = fmt.Errorf("the source shows %v, %+v", obj, h.source.Status())
		}
		return err
	})
}

// known returns the known lives of a name.
func (h *history) known(key informer.Key) map[types.UID]life {
	h.mu.Lock()
	defer h.mu.Unlock()
	lives := map[types.UID]life{}
	for uid, l := range h.lives {
		if l.key == key {
			lives[uid] = l
		}
	}
	return lives
}

// check asserts that no read returns a state older than a shown or answered one.
func (h *history) check() {
	for _, name := range []string{"x", "y"} {
		key := informer.Key{Namespace: h.namespace, Name: name}
		before := h.known(key)
		stored, exists, _ := h.source.Get(key)
		if exists {
			obj := stored.(client.Object)
			switch l := before[obj.GetUID()]; {
			case l.ended > 0:
				h.t.Fatalf("%s is read with UID %s, which is known to be gone", key, obj.GetUID())
			case numberOf(obj) < l.version:
				h.t.Fatalf("%s is read at version %s, and known at %d", key, obj.GetResourceVersion(), l.version)
			}
			continue
		}
		h.source.Subscribe(func(informer.Event) {})() // What is being shown has been then.
		after := h.known(key)
		for uid, l := range before {
			overtaken := false
			for _, other := range after {
				overtaken = overtaken || other.first > l.version
			}
			if after[uid].ended == 0 && !overtaken {
				h.t.Fatalf("%s is not there, and known with UID %s at version %d", key, uid, l.version)
			}
		}
	}
}

// conclude lets everything end, and asserts the final state.
func (h *history) conclude() {
	for len(h.requests) > 0 {
		h.answer(h.requests[0], false)
		h.check()
	}
	h.lag.Release()
	h.catchUp()
	h.check()
	if h.listings > 0 {
		h.restart(func() {})
		h.check()
	}
	there, stored := map[string]string{}, map[string]string{}
	for _, obj := range h.all(h.t, h.namespace) {
		there[obj.Name] = string(obj.UID) + " " + obj.ResourceVersion
	}
	for _, obj := range h.source.List() {
		o := obj.(client.Object)
		stored[o.GetName()] = string(o.GetUID()) + " " + o.GetResourceVersion()
	}
	if diff := cmp.Diff(there, stored); diff != "" {
		h.t.Fatalf("objects (-there +stored):\n%s", diff)
	}
	if left := h.source.OpenWrites(); left != 0 {
		h.t.Fatalf("%d writes have not ended", left)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.foreign {
		if l, visible := h.lives[c.uid]; visible && !l.deleted && !slices.ContainsFunc(h.wakes, func(s sight) bool { return s.covers(c, l) }) {
			h.t.Fatalf("%+v was changed by somebody else, and no wake could read that: %+v", c, h.wakes)
		}
	}
	// A listing shows at most two things of a name: the end of one object, and another one.
	if reasons := len(h.foreign) + h.doubtful + 4*h.listings; len(h.wakes) > reasons {
		h.t.Fatalf("%d wakes for %d reasons", len(h.wakes), reasons)
	}
}

// covers reports whether a woken author could read a change, or a later one.
func (s sight) covers(c effect, l life) bool {
	switch {
	case s.key != c.key:
		return false
	case s.uid == "":
		return l.ended > 0 && l.ended <= s.when
	case s.uid == c.uid:
		return !c.gone && s.version >= c.version
	}
	return s.version > c.version
}
