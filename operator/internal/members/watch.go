package members

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

func always() bool { return true }

// watch wakes the replica when a Lease says something else than before, as long as it is its turn.
func (r *Replica) watch(ctx context.Context, options metav1.ListOptions, turn func() bool) {
	for ctx.Err() == nil {
		if turn() {
			r.watchOnce(ctx, options, turn)
		}
		select {
		case <-ctx.Done():
		case <-time.After(r.config.RetryPeriod):
		}
	}
}

// watchOnce is watch until the server ends it. What it misses the next round finds.
func (r *Replica) watchOnce(ctx context.Context, options metav1.ListOptions, turn func() bool) {
	w, err := r.config.Leases.Watch(ctx, options)
	if err != nil {
		return
	}
	defer w.Stop()
	said := map[types.UID]string{}
	for e := range w.ResultChan() {
		lease, ok := e.Object.(*coordinationv1.Lease)
		if !ok || !turn() {
			return
		}
		before, known := said[lease.UID]
		said[lease.UID] = says(lease)
		if !known || before != said[lease.UID] || e.Type == watch.Deleted {
			r.wake()
		}
	}
}

// says is what is worth a look at once: not that a Lease was renewed, nor what the objects of a replica weigh.
func says(lease *coordinationv1.Lease) string {
	told, err := toldBy(lease)
	if err != nil {
		return lease.Annotations[TableAnnotation]
	}
	return fmt.Sprint(told.Leaving, told.Confirmed)
}
