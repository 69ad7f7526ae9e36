package ring_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/operator/internal/ring"
)

// How many histories make test-all goes through, and make test, of which rapid takes a fifth.
const (
	histories = "100000"
	sample    = "10000"
)

func TestNoTwoReplicasWorkOnOneHashAndEachGetsAnOwnerWhateverFails(t *testing.T) {
	set(t, "rapid.steps", "100")
	checks := histories
	if testing.Short() {
		checks = sample
	}
	set(t, "rapid.checks", checks)
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory()
		for range rapid.IntRange(1, 4).Draw(t, "replicas") {
			h.add()
		}
		for range rapid.IntRange(0, 8).Draw(t, "rounds") {
			h.sweep(t)
		}
		if rapid.IntRange(0, 2).Draw(t, "deleted") == 0 {
			h.deleteTable(t)
			h.round(t)
			h.add()
		}
		t.Repeat(map[string]func(*rapid.T){
			"":            func(t *rapid.T) { h.check(t) },
			"join":        h.join,
			"hear":        h.hear,
			"publish":     h.publish,
			"begin":       h.begin,
			"end":         h.end,
			"crash":       h.crash,
			"pause":       h.pause,
			"resume":      h.resume,
			"leave":       h.leave,
			"about":       h.aboutToLeave,
			"list up":     h.listAwaited,
			"give up":     h.giveUp,
			"resume work": h.resumeWork,
			"give":        h.give,
			"expire":      h.expire,
			"look":        h.look,
			"list":        h.list,
			"lie":         h.lie,
			"decide":      h.decide,
			"sweep":       h.sweep,
			"round":       h.round,
			"delete":      h.deleteTable,
		})
		h.recover(t)
	})
}

// set sets a flag of rapid for a test, unless the command line has.
func set(t *testing.T, name, value string) {
	t.Helper()
	f := flag.Lookup(name)
	if f.Value.String() != f.DefValue {
		return
	}
	if err := f.Value.Set(value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Value.Set(f.DefValue); err != nil {
			t.Error(err)
		}
	})
}

// process is a replica in a history, with the lease that it has on the API server.
type process struct {
	name   string
	holder *ring.Holder
	joined int64
	// heard is the place of the last table that it has heard of.
	heard int
	// told is what its lease says.
	told ring.Member
	// leased is whether the lease is there.
	leased bool
	// closed is whether its fence is closed: it writes nothing, whatever it works on.
	closed bool
	// dead is whether the process has ended.
	dead bool
	// work is what goes on.
	work []ring.Hash
	// leaving is whether it is about to end.
	leaving bool
	// listed is what it knows the objects of, of what it was to get by then.
	listed []ring.Span
	// moves are what it has given up and not confirmed.
	moves []ring.Move
}

// view is what a leader has read, perhaps long ago, and not written yet.
type view struct {
	life  string
	table ring.Table
	// members were read after the table.
	members map[string]ring.Member
}

// history is a world in which anything fails at any time. Its rules are those of the API server, of leases and of fences, and nothing else.
type history struct {
	processes []*process
	// life and table are in the API server, and shown is every table that was there, in order.
	life  int
	table ring.Table
	shown []view
	// views are those of leaders that are at work at the same time.
	views [2]*view
}

// places are the hashes in which there is work.
var places = []ring.Hash{0, 1, 1 << 20, 1<<20 + 1, 1 << 62, 1 << 63, 1<<63 + 1<<40, 3 << 62, ring.MaxHash - 1, ring.MaxHash}

func newHistory() *history {
	h := &history{}
	h.write(ring.Table{})
	return h
}

func (h *history) lifeName() string { return fmt.Sprint("life-", h.life) }

func (h *history) write(t ring.Table) {
	h.table = t
	h.shown = append(h.shown, view{life: h.lifeName(), table: t})
}

// any picks a process of which something is true.
func (h *history) any(t *rapid.T, what func(p *process) bool) *process {
	candidates := slices.DeleteFunc(slices.Clone(h.processes), func(p *process) bool { return !what(p) })
	if len(candidates) == 0 {
		t.Skip("there is none")
	}
	return rapid.SampledFrom(candidates).Draw(t, "process")
}

func alive(p *process) bool { return !p.dead }

func (h *history) join(t *rapid.T) {
	if len(h.processes) > 8 {
		t.Skip("there are enough")
	}
	h.add()
}

func (h *history) add() {
	p := &process{name: fmt.Sprint("p", len(h.processes)), joined: int64(len(h.processes)), heard: len(h.shown) - 1, leased: true}
	p.holder = ring.NewHolder(p.name, nil)
	p.told = h.tell(p)
	h.processes = append(h.processes, p)
}

func (h *history) tell(p *process) ring.Member {
	confirmed := p.holder.Confirmation()
	confirmed.Listed = ring.Intersection(p.holder.Awaited(), p.listed)
	return ring.Member{
		Capacity: 1 + int(p.joined)%2, Version: fmt.Sprint(p.joined / 3), Joined: p.joined, Leaving: p.leaving,
		Confirmed: confirmed, Weights: weights(places, p.holder.Owned()),
	}
}

// aboutToLeave is a process that is told to end.
func (h *history) aboutToLeave(t *rapid.T) { h.any(t, alive).leaving = true }

// listAwaited is a process that has listed what it is to get.
func (h *history) listAwaited(t *rapid.T) {
	p := h.any(t, alive)
	p.listed = p.holder.Awaited()
}

// giveUp is a process that begins to give up what it is told to.
func (h *history) giveUp(t *rapid.T) {
	p := h.any(t, func(p *process) bool { return !p.dead && len(p.holder.Leaving()) > 0 })
	m := p.holder.Leaving()[0]
	p.holder.GiveUp(m)
	p.moves = append(p.moves, m)
}

// resumeWork is a process that works once more in what it has given up.
func (h *history) resumeWork(t *rapid.T) {
	p := h.any(t, func(p *process) bool { return !p.dead && !p.closed && len(p.moves) > 0 })
	if place := rapid.SampledFrom(places).Draw(t, "place"); p.holder.Resume(place) {
		p.work = append(p.work, place)
	}
}

// give is a process that says what it has given up, perhaps while it works there.
func (h *history) give(t *rapid.T) {
	p := h.any(t, func(p *process) bool { return !p.dead && len(p.moves) > 0 })
	p.holder.Give(p.moves[0], []string{"done"})
	p.moves = p.moves[1:]
}

// hear shows a process a later table than it has seen, which need not be the newest.
func (h *history) hear(t *rapid.T) {
	p := h.any(t, func(p *process) bool { return !p.dead && p.heard < len(h.shown)-1 })
	h.show(p, rapid.IntRange(p.heard+1, len(h.shown)-1).Draw(t, "table"))
}

func (h *history) show(p *process, table int) {
	p.heard = table
	p.holder.Apply(h.shown[table].life, h.shown[table].table)
}

// publish renews the lease of a process, which opens its fence too, unless the lease is gone. Who finds it gone is lost.
func (h *history) publish(t *rapid.T) {
	p := h.any(t, alive)
	if !p.leased {
		p.closed, p.dead = true, true
		return
	}
	p.told, p.closed = h.tell(p), false
}

func (h *history) begin(t *rapid.T) {
	p := h.any(t, func(p *process) bool { return !p.dead && !p.closed && len(p.holder.Owned()) > 0 })
	if place := rapid.SampledFrom(places).Draw(t, "place"); p.holder.Begin(place) {
		p.work = append(p.work, place)
	}
}

func (h *history) end(t *rapid.T) {
	p := h.any(t, func(p *process) bool { return !p.dead && len(p.work) > 0 })
	i := rapid.IntRange(0, len(p.work)-1).Draw(t, "work")
	p.holder.End(p.work[i])
	p.work = slices.Delete(p.work, i, i+1)
}

func (h *history) crash(t *rapid.T) { h.any(t, alive).dead = true }

// pause is also what a cut link does to a replica: its fence closes by itself, and what it was about to do waits.
func (h *history) pause(t *rapid.T) { h.any(t, alive).closed = true }

// resume goes on with a fence that is closed: it opens by a renewal only.
func (h *history) resume(t *rapid.T) {
	p := h.any(t, func(p *process) bool { return !p.dead && p.closed && p.leased })
	p.told, p.closed = h.tell(p), false
}

// leave is the clean way: everything ends, and then the lease is given up.
func (h *history) leave(t *rapid.T) {
	p := h.any(t, func(p *process) bool { return !p.dead && len(p.work) == 0 })
	p.holder.Close()
	p.leased, p.dead = false, true
}

// expire is a leader that takes the lease of a process away which was not renewed for so long that its fence has closed.
func (h *history) expire(t *rapid.T) {
	h.any(t, func(p *process) bool { return p.leased && (p.dead || p.closed) }).leased = false
}

// look is a leader that reads the table.
func (h *history) look(t *rapid.T) {
	h.views[rapid.IntRange(0, 1).Draw(t, "leader")] = &view{life: h.lifeName(), table: h.table}
}

// list is a leader that reads the leases, after the table.
func (h *history) list(t *rapid.T) {
	v := h.views[rapid.IntRange(0, 1).Draw(t, "leader")]
	if v == nil {
		t.Skip("it has not read the table")
	}
	v.members = h.leased()
}

func (h *history) leased() map[string]ring.Member {
	members := map[string]ring.Member{}
	for _, p := range h.processes {
		if p.leased {
			members[p.name] = p.told
		}
	}
	return members
}

// lie is a replica that tells nonsense of where its objects are.
func (h *history) lie(t *rapid.T) {
	p := h.any(t, alive)
	p.told.Weights = nil
	for range rapid.IntRange(1, 4).Draw(t, "buckets") {
		place := rapid.SampledFrom(places)
		p.told.Weights = append(p.told.Weights, ring.Bucket{
			Span: ring.Span{First: place.Draw(t, "first"), Last: place.Draw(t, "last")}, Objects: rapid.IntRange(-5, 1000).Draw(t, "objects"),
		})
	}
}

// decide is a leader that writes what it has computed from what it read then: compare-and-swap.
func (h *history) decide(t *rapid.T) {
	v := h.views[rapid.IntRange(0, 1).Draw(t, "leader")]
	if v == nil || v.members == nil {
		t.Skip("it has not read all")
	}
	next, changed := v.table.Step(v.life, v.members, nil)
	if changed && v.life == h.lifeName() && v.table.Generation == h.table.Generation {
		h.write(next)
	}
}

// sweep is a round in which nothing fails.
func (h *history) sweep(t *rapid.T) {
	for _, p := range h.processes {
		if !p.dead && p.leased {
			h.show(p, len(h.shown)-1)
			p.listed = p.holder.Awaited()
			for _, m := range p.holder.Leaving() {
				p.holder.GiveUp(m)
				p.moves = append(p.moves, m)
			}
			for _, m := range p.moves {
				p.holder.Give(m, nil)
			}
			p.moves = nil
			p.told, p.closed = h.tell(p), false
		}
	}
	h.round(t)
}

// round is a leader that reads and decides at once, while the others hear of nothing.
func (h *history) round(*rapid.T) {
	if next, changed := h.table.Step(h.lifeName(), h.leased(), nil); changed {
		h.write(next)
	}
}

// deleteTable is somebody who deletes the object that holds the table, and a leader that makes it anew.
func (h *history) deleteTable(t *rapid.T) {
	if h.life > 2 {
		t.Skip("it was deleted often enough")
	}
	h.life++
	h.write(ring.Table{})
}

// check is the promise: of the processes whose fences are open, no two work, or may begin to work, on the same hash.
func (h *history) check(t *rapid.T) {
	if err := h.table.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, place := range places {
		var workers []string
		for _, p := range h.processes {
			if !p.dead && !p.closed && (p.holder.Owns(place) || slices.Contains(p.work, place)) {
				workers = append(workers, p.name)
			}
		}
		if len(workers) > 1 {
			t.Fatalf("%s is worked on by %q\ntable: %+v", place, workers, h.table)
		}
	}
}

// recover ends the failures, and then each place has an owner that lives, and nothing moves any more.
func (h *history) recover(t *rapid.T) {
	for _, p := range h.processes {
		p.leased = p.leased && !p.dead
		p.dead = !p.leased
		for _, place := range p.work {
			p.holder.End(place)
		}
		p.work = nil
	}
	h.add()
	generation := int64(-1)
	for rounds := 0; generation != h.table.Generation; rounds++ {
		if rounds > 200 {
			t.Fatalf("the table changes for ever: %+v", h.table)
		}
		generation = h.table.Generation
		h.sweep(t)
		h.check(t)
	}
	members := h.leased()
	for _, place := range places {
		if _, owned := members[h.table.Find(place).Owner]; !owned || h.table.Moving() > 0 {
			t.Fatalf("%s has no owner of %q: %+v", place, slices.Sorted(maps.Keys(members)), h.table)
		}
	}
}
