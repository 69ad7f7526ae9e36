package deployment

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// shownAtOnce is how many operations a tally names.
const shownAtOnce = 3

// Tally counts what becomes of the operations of a plan. Its method Event is for Deployment.Progress. It is safe for concurrent use.
type Tally struct {
	names NameResolver
	total int

	mu sync.Mutex
	// of is what became of operations, and running are those under way, in the order in which they began.
	of      map[Operation]ProgressStatus
	running []Operation
	// far says of those that tell how far they are.
	far map[Operation]string
}

// NewTally returns a tally for a plan.
func NewTally(plan Plan) *Tally {
	return &Tally{
		names: orIDs(plan.names), total: len(leaves(plan.Operations)), of: map[Operation]ProgressStatus{}, far: map[Operation]string{},
	}
}

// Event counts an event.
func (t *Tally) Event(e ProgressEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.Status == ProgressGoing {
		if e.Total > 0 {
			t.far[e.Operation] = fmt.Sprintf(", %d %%", e.Current*100/e.Total)
		}
		return
	}
	t.of[e.Operation] = e.Status
	t.running = slices.DeleteFunc(t.running, func(o Operation) bool { return o == e.Operation })
	if e.Status == ProgressStarted {
		t.running = append(t.running, e.Operation)
	}
}

// String says how many operations are done, and what is going on: 4 of 12 operations done; replacing web-a1b2c by web-d3e4f on m2.
func (t *Tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	count := map[ProgressStatus]int{}
	for _, status := range t.of {
		count[status]++
	}
	text := fmt.Sprintf("%d of %d operations done", count[ProgressDone], t.total)
	if n := count[ProgressFailed]; n > 0 {
		text += fmt.Sprintf(", %d failed", n)
	}
	if n := count[ProgressReverted]; n > 0 {
		text += fmt.Sprintf(", %d undone", n)
	}
	var going []string
	for _, op := range t.running[:min(shownAtOnce, len(t.running))] {
		going = append(going, op.Describe().doing(t.names)+t.far[op])
	}
	if more := len(t.running) - len(going); more > 0 {
		going = append(going, fmt.Sprintf("and %d more", more))
	}
	if len(going) == 0 {
		return text
	}
	return text + "; " + strings.Join(going, ", ")
}
