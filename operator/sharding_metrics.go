package operator

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/operatorkit/operatorkit/operator/internal/slots"
)

// shardCounts are the metrics of the part of the objects that a replica has.
type shardCounts struct {
	slots, objects, gained, lost atomic.Int64

	mu sync.Mutex
	// unowned is the total time up to since in which there were slots without a replica that may
	// start work. since is zero while there are none.
	unowned time.Duration
	since   time.Time
}

// follow records at a time whether each slot has a replica that may start work.
func (c *shardCounts) follow(complete bool, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.since.IsZero() {
		c.unowned += now.Sub(c.since)
	}
	c.since = time.Time{}
	if !complete {
		c.since = now
	}
}

// unownedSeconds returns the total time in which there were slots without a replica that may start
// work.
func (c *shardCounts) unownedSeconds(now time.Time) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	unowned := c.unowned
	if !c.since.IsZero() {
		unowned += now.Sub(c.since)
	}
	return unowned.Seconds()
}

// note records the slots of a replica before and after a change.
func (c *shardCounts) note(before, now slots.Set) {
	c.slots.Store(int64(now.Len()))
	if now.Without(before) != (slots.Set{}) {
		c.gained.Add(1)
	}
	if before.Without(now) != (slots.Set{}) {
		c.lost.Add(1)
	}
}

// register registers the metrics of a replica of an operator.
func (c *shardCounts) register(operator string, registerer prometheus.Registerer) error {
	labelled := prometheus.WrapRegistererWith(prometheus.Labels{"operator": operator}, registerer)
	value := func(v *atomic.Int64) func() float64 { return func() float64 { return float64(v.Load()) } }
	moves := func(direction string) prometheus.CounterOpts {
		return prometheus.CounterOpts{
			Name:        "operatorkit_operator_shard_moves_total",
			Help:        "Times that this replica has got a part of the objects, or has given one up, by direction: gained or lost.",
			ConstLabels: prometheus.Labels{"direction": direction},
		}
	}
	return errors.Join(
		labelled.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "operatorkit_operator_shard_slots", Help: "Slots in which this replica works, of the 256 that the replicas share.",
		}, value(&c.slots))),
		labelled.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "operatorkit_operator_shard_objects", Help: "Primary objects in the slots of this replica, of all frameworks.",
		}, value(&c.objects))),
		labelled.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "operatorkit_operator_shard_unowned_seconds_total",
			Help: "Time in which there were slots that no replica was allowed to begin work in, as far as this replica knows.",
		}, func() float64 { return c.unownedSeconds(time.Now()) })),
		labelled.Register(prometheus.NewCounterFunc(moves("gained"), value(&c.gained))),
		labelled.Register(prometheus.NewCounterFunc(moves("lost"), value(&c.lost))),
	)
}
