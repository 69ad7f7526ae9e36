package operator

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/giantswarm/micrologger"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/internal/ring"
)

// idlePeriod is how often it is looked whether the work has ended in what is given up.
const idlePeriod = 5 * time.Millisecond

// handover gives up what the table says, so that the deletions of objects without a finalizer are processed once: by this replica if the
// next one can't know of them, and by that one if it is not told that they have been.
type handover struct {
	frameworks []*framework.Framework
	holder     *ring.Holder
	logger     micrologger.Logger
	// patience is for how long deletions that fail are waited for, and a source that lags.
	patience time.Duration
	// follow has everybody know what this replica owns now.
	follow func()

	// due has a value when there may be something to give up.
	due chan struct{}
	// calm is when this replica had nothing last that another one is to get.
	calm atomic.Pointer[time.Time]
}

func newHandover(frameworks []*framework.Framework, logger micrologger.Logger, patience time.Duration, follow func()) *handover {
	h := &handover{logger: logger, patience: patience, follow: follow, due: make(chan struct{}, 1)}
	for _, f := range frameworks {
		if f.HandsOver() {
			h.frameworks = append(h.frameworks, f)
		}
	}
	h.calm.Store(&time.Time{})
	return h
}

// heard takes note of a table.
func (h *handover) heard(t ring.Table, member string, now time.Time) {
	if !slices.ContainsFunc(t.Ranges, func(r ring.Range) bool { return r.Owner == member && r.Next != "" }) {
		h.calm.Store(&now)
	}
	select {
	case h.due <- struct{}{}:
	default:
	}
}

// run gives up what is due until ctx ends.
func (h *handover) run(ctx context.Context) {
	var finishing sync.WaitGroup
	defer finishing.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.due:
		}
		moves := h.holder.Leaving()
		if len(moves) == 0 {
			continue
		}
		// While this replica still works there.
		h.each(ctx, "a deletion may be missed, because it is not known whether the source has shown all of them", moves, (*framework.Framework).CatchUp)
		for _, m := range moves {
			h.holder.GiveUp(m)
		}
		h.follow()
		for _, m := range moves {
			finishing.Go(func() { h.finish(ctx, m) })
		}
	}
}

// finish ends the work in what was given up, and says so. It waits for nothing that goes on elsewhere.
func (h *handover) finish(ctx context.Context, m ring.Move) {
	h.each(ctx, "a deletion is left to who gets the object next", []ring.Move{m}, (*framework.Framework).FinishDeletions)
	since := h.calm.Load().Add(-h.patience)
	if len(h.frameworks) > 0 {
		idle := func(context.Context) (bool, error) { return h.holder.IdleIn(m.Span), nil }
		if err := wait.PollUntilContextCancel(ctx, idlePeriod, true, idle); err != nil {
			return
		}
	}
	var done []string
	for _, f := range h.frameworks {
		for _, d := range f.ProcessedDeletions(within([]ring.Move{m}), since) {
			done = append(done, handedOver(f.Name(), d))
		}
	}
	h.holder.Give(m, done)
}

// each waits for something in all frameworks at once, as long as there is patience, and logs what fails.
func (h *handover) each(
	ctx context.Context, message string, moves []ring.Move, await func(f *framework.Framework, ctx context.Context, of func(informer.Key) bool) error,
) {
	ctx, cancel := context.WithTimeout(ctx, h.patience)
	defer cancel()
	of := within(moves)
	var all sync.WaitGroup
	for _, f := range h.frameworks {
		all.Go(func() {
			if err := await(f, ctx, of); err != nil {
				h.logger.Log("level", "warning", "message", message, "error", err.Error())
			}
		})
	}
	all.Wait()
}

// noted takes over what former owners have done.
func (h *handover) noted(notes []ring.Note) {
	done := map[string][]framework.Deletion{}
	for _, n := range notes {
		for _, text := range n.Done {
			if name, d, ok := takenOver(text); ok {
				done[name] = append(done[name], d)
			}
		}
	}
	for _, f := range h.frameworks {
		f.PassOverDeletions(done[f.Name()])
	}
}

// handedOver writes a deletion that a framework has processed, and takenOver reads it.
func handedOver(name string, d framework.Deletion) string {
	return strings.Join([]string{string(d.UID), d.Key.Namespace, d.Key.Name, name}, " ")
}

func takenOver(text string) (name string, d framework.Deletion, ok bool) {
	parts := strings.SplitN(text, " ", 4)
	if len(parts) < 4 {
		return "", d, false
	}
	return parts[3], framework.Deletion{Key: informer.Key{Namespace: parts[1], Name: parts[2]}, UID: types.UID(parts[0])}, true
}

// within tells of which objects are in what is given up.
func within(moves []ring.Move) func(informer.Key) bool {
	spans := make([]ring.Span, 0, len(moves))
	for _, m := range moves {
		spans = append(spans, m.Span)
	}
	return func(key informer.Key) bool { return contains(spans, hashOf(key)) }
}
