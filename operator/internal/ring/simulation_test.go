package ring_test

import (
	"container/heap"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/operatorkit/operatorkit/operator/internal/ring"
)

// The times of the simulation: those that operators have unless they are told others, and what an API server takes.
const (
	leaseDuration = 15 * time.Second
	retryPeriod   = 2 * time.Second
	latency       = 20 * time.Millisecond
	workTakes     = 200 * time.Millisecond
	listingTakes  = 500 * time.Millisecond
)

// maxAnnotations is how many bytes the annotations of an object can have.
const maxAnnotations = 256 << 10

// TestATenthOfAHundredReplicasIsLost tells how long primaries are without an owner, what moves, and what the API server writes.
func TestATenthOfAHundredReplicasIsLost(t *testing.T) {
	replicas, objects := 10, 10_000
	if !testing.Short() {
		replicas, objects = 100, 1_000_000
	}
	s := newSimulation(replicas, objects)
	s.until(func() bool { return s.owned() && s.table.Moving() == 0 && s.quiet(4*retryPeriod) })
	joined := s.now

	before := s.world.owners()
	s.writes = 0
	lost := s.kill(replicas / 10)
	killed := s.now
	s.until(s.owned)
	without := s.now - killed
	s.until(func() bool { return s.quiet(4 * retryPeriod) })
	moved := s.world.moved(before)
	writes := float64(s.writes) / (s.now - killed).Seconds()
	t.Logf("%d replicas share %d primaries after %s; %d replicas with %d primaries are lost: each has an owner after %s, "+
		"%d have another owner than before, %d ranges, %.1f writes a second, the table has %d generations",
		replicas, objects, joined, replicas/10, lost, without, moved, len(s.table.Ranges), writes, s.table.Generation)

	if limit := leaseDuration + 2*retryPeriod; without > limit {
		t.Errorf("primaries are without an owner for %s, which is longer than %s", without, limit)
	}
	if float64(moved) > 1.2*float64(lost) {
		t.Errorf("%d primaries had lost their owner, and %d have another one", lost, moved)
	}
	if limit := float64(replicas) / retryPeriod.Seconds() * 1.2; writes > limit {
		t.Errorf("%.1f writes a second are more than %.1f", writes, limit)
	}
	text, err := json.Marshal(s.table)
	if err != nil || len(text) > maxAnnotations/2 {
		t.Errorf("the table has %d bytes, and an object has room for %d (%v)", len(text), maxAnnotations, err)
	}
	if len(s.table.Ranges) > 10*replicas {
		t.Errorf("%d ranges are more than 10 for each replica", len(s.table.Ranges))
	}
}

// simulation is a ring with a clock of its own. Every replica renews its lease after each retry period and hears of tables by a watch;
// the first one leads.
type simulation struct {
	world  *world
	now    time.Duration
	events events
	random *rand.Rand

	table ring.Table
	// leases are what the API server holds, and seen what the leader has seen of them, and when it changed.
	leases map[string]lease
	seen   map[string]sight
	dead   map[string]bool
	writes int
	// changed is when the table was written last.
	changed time.Duration
	// deciding is set while the leader is about to look at the leases.
	deciding bool
}

type lease struct {
	renewed time.Duration
	member  ring.Member
}

// sight is which renewal the leader has seen last, and since when.
type sight struct{ renewed, at time.Duration }

type event struct {
	at time.Duration
	do func()
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func newSimulation(replicas, objects int) *simulation {
	s := &simulation{
		world: newWorld(objects), random: rand.New(rand.NewPCG(1, 2)), //nolint:gosec // a simulation is the same each time
		leases: map[string]lease{}, seen: map[string]sight{}, dead: map[string]bool{},
	}
	for i := range replicas {
		name := fmt.Sprintf("replica-%03d", i)
		s.world.join(name, "v1", 1)
		s.after(time.Duration(s.random.Int64N(int64(retryPeriod))), func() { s.renewForever(name) })
	}
	s.after(retryPeriod, s.lead)
	return s
}

func (s *simulation) after(d time.Duration, do func()) { heap.Push(&s.events, event{s.now + d, do}) }

func (s *simulation) until(done func() bool) {
	for checked := time.Duration(-1); ; {
		if s.now-checked >= latency {
			if checked = s.now; done() {
				return
			}
		}
		next := heap.Pop(&s.events).(event)
		s.now = next.at
		next.do()
	}
}

func (s *simulation) renewForever(name string) {
	if s.dead[name] {
		return
	}
	if l, leased := s.leases[name]; !leased || s.now-l.renewed >= retryPeriod {
		s.renew(name)
	}
	s.after(s.leases[name].renewed+retryPeriod-s.now, func() { s.renewForever(name) })
}

func (s *simulation) renew(name string) {
	if s.dead[name] {
		return
	}
	s.writes++
	s.leases[name] = lease{s.now, s.world.members[name].member(s.world.hashes)}
	s.wake()
}

// wake has the leader look at what it has heard of by its watch.
func (s *simulation) wake() {
	if s.deciding {
		return
	}
	s.deciding = true
	s.after(latency, s.decide)
}

func (s *simulation) lead() {
	s.wake()
	s.after(retryPeriod, s.lead)
}

// decide is a round of the leader: leases that it has seen unchanged for too long are taken away, and the table is written anew.
func (s *simulation) decide() {
	s.deciding = false
	members, gone := map[string]ring.Member{}, map[string]ring.Member{}
	for name, l := range s.leases {
		if seen, known := s.seen[name]; !known || l.renewed != seen.renewed {
			s.seen[name] = sight{l.renewed, s.now}
		}
		if s.now-s.seen[name].at < leaseDuration {
			members[name] = l.member
			continue
		}
		s.writes++
		delete(s.leases, name)
		gone[name] = l.member
	}
	next, changed := s.table.Step("life", members, gone)
	if !changed {
		return
	}
	s.writes++
	s.table, s.world.table, s.changed = next, next, s.now
	for _, name := range slices.Sorted(maps.Keys(s.world.members)) {
		s.after(latency, func() { s.hear(name, next) })
	}
}

// hear has a replica follow a table. When it is to give something up, it says so once its work there has ended,
// and when it is to get something, once it has listed that.
func (s *simulation) hear(name string, t ring.Table) {
	if s.dead[name] {
		return
	}
	holder := s.world.members[name].holder
	awaited := holder.Awaited()
	holder.Apply("life", t)
	if moves := holder.Leaving(); len(moves) > 0 {
		for _, m := range moves {
			holder.GiveUp(m)
		}
		s.after(workTakes, func() {
			for _, m := range moves {
				holder.Give(m, nil)
			}
			s.renew(name)
		})
	}
	if !slices.Equal(awaited, holder.Awaited()) || len(t.Barrier) > 0 {
		s.after(listingTakes, func() { s.renew(name) })
	}
}

// kill ends some replicas that don't lead, and returns how many primaries they own.
func (s *simulation) kill(replicas int) (lost int) {
	for i := range replicas {
		name := fmt.Sprintf("replica-%03d", 5*i+3)
		s.dead[name] = true
		lost += int(s.world.share(name)*float64(len(s.world.hashes)) + 0.5)
	}
	return lost
}

// owned tells whether every part of the space has an owner that lives and knows of it.
func (s *simulation) owned() bool {
	for i, r := range s.table.Ranges {
		owner, exists := s.world.members[r.Owner]
		if !exists || s.dead[r.Owner] || r.Next != "" || !owner.holder.Owns(s.table.Span(i).First) {
			return false
		}
	}
	return len(s.table.Ranges) > 0
}

// quiet tells whether the table has not changed for some time.
func (s *simulation) quiet(d time.Duration) bool { return s.now-s.changed >= d }
