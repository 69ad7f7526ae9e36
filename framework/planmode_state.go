package framework

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// ReasonPlanned is the reason of the events about objects that are only planned for.
const ReasonPlanned = "Planned"

// planned remembers what was told of the plans of objects that are only planned for.
type planned struct {
	mu    sync.Mutex
	plans map[informer.Key]toldPlan
	// known is len(plans), for those who only ask whether there is anything.
	known atomic.Int64
}

type toldPlan struct {
	print  [sha256.Size]byte
	counts plan.Counts
}

func newPlanned() *planned { return &planned{plans: map[informer.Key]toldPlan{}} }

// last returns the fingerprint of the plan that was told last of an object.
func (t *planned) last(key informer.Key) (print [sha256.Size]byte, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	told, known := t.plans[key]
	return told.print, known
}

func (t *planned) remember(key informer.Key, print [sha256.Size]byte, p *plan.Plan) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.plans[key] = toldPlan{print, p.Counts()}
	t.known.Store(int64(len(t.plans)))
}

// forget forgets an object that is not planned for any more.
func (t *planned) forget(key informer.Key) {
	if t.known.Load() == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.plans, key)
	t.known.Store(int64(len(t.plans)))
}

// count returns how many objects there are for which something would be created, updated or deleted, and nothing be done.
func (t *planned) count() (objects plan.Counts, nothing int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, told := range t.plans {
		objects = objects.Add(plan.Counts{
			Create: min(told.counts.Create, 1), Update: min(told.counts.Update, 1), Delete: min(told.counts.Delete, 1),
		})
		if !told.counts.Any() {
			nothing++
		}
	}
	return objects, nothing
}

// fingerprint is the same for plans that say the same, for whatever version of the object.
func fingerprint(p *plan.Plan) [sha256.Size]byte {
	same := *p
	same.Object.Version = ""
	data, err := json.Marshal(same)
	if err != nil {
		// Values of plans are JSON values. What an author's own Planner puts there may not be one.
		data = fmt.Appendf(nil, "%v", same)
	}
	return sha256.Sum256(data)
}

// planned writes an event that tells what would change: which objects, and which of their fields, but no values.
func (r *reporter) planned(obj any, p *plan.Plan) {
	if record := r.recordOn(obj); record != nil {
		record(corev1.EventTypeNormal, ReasonPlanned, clip(summary(p)))
	}
}

// summary tells a plan on one line.
func summary(p *plan.Plan) string {
	var parts []string
	for _, r := range p.Resources {
		if r.Opaque {
			parts = append(parts, fmt.Sprintf("resource %s can't tell", r.Name))
		}
		for _, c := range r.Changes {
			part := string(c.Action) + " " + c.Object.String()
			if c.Action == plan.Update && len(c.Fields) > 0 {
				part += " (" + paths(c.Fields) + ")"
			}
			parts = append(parts, part)
		}
	}
	line := p.Counts().String()
	if len(parts) > 0 {
		line += ": " + strings.Join(parts, "; ")
	}
	return line
}

func paths(fields []plan.FieldChange) string {
	var names []string
	for _, f := range fields {
		names = append(names, f.Path)
	}
	return strings.Join(names, ", ")
}
