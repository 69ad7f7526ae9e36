package members

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/operator/internal/ring"
)

// sight is a Lease in the version that a leader has seen last, and since when.
type sight struct {
	version string
	since   time.Time
}

// decide is what a leader does: it takes away Leases that have run out, and writes the table that follows.
func (r *Replica) decide(ctx context.Context) error {
	lease, t, err := r.readTable(ctx)
	if apierrors.IsNotFound(err) {
		return r.writeTable(ctx, nil, ring.Table{})
	}
	if err != nil {
		return err
	}
	// After the table: who is not there has ended, and is not about to begin by that table.
	members, gone, err := r.look(ctx)
	if err != nil {
		return err
	}
	next, changed := t.Step(string(lease.UID), members, gone)
	if !changed {
		// Who has just come has nothing, and is about to get something.
		if t.Moving() == 0 {
			r.tellIdle(t.Idle(members))
		}
		return nil
	}
	if err := r.writeTable(ctx, lease, next); err != nil {
		return err
	}
	r.config.Logger.Log("level", "info", "message", "work is shared out", "ring", r.config.Ring, "generation", next.Generation,
		"replicas", len(members), "ranges", len(next.Ranges), "moving", next.Moving())
	return nil
}

// tellIdle tells of replicas for which there is nothing, when these are others than before.
func (r *Replica) tellIdle(idle []string) {
	if slices.Equal(idle, r.idle) {
		return
	}
	r.idle = idle
	if len(idle) == 0 {
		r.config.Logger.Log("level", "info", "message", "every replica has objects", "ring", r.config.Ring)
		return
	}
	r.config.Logger.Log("level", "warning", "message", "replicas have no objects: as long as that lasts, there are fewer different ones to share out than replicas",
		"ring", r.config.Ring, "replicas", strings.Join(idle, ", "))
}

// writeTable writes a table in place of one, or creates the first. That another leader was first is no error: the next round looks again.
func (r *Replica) writeTable(ctx context.Context, former *coordinationv1.Lease, t ring.Table) error {
	ctx, cancel := context.WithTimeout(ctx, r.config.RequestTimeout)
	defer cancel()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: r.config.Ring}}
	if former != nil {
		lease = former.DeepCopy()
	}
	lease.Spec.HolderIdentity = &r.config.Member
	if err := annotate(lease, TableAnnotation, t); err != nil {
		return err
	}
	var err error
	if former == nil {
		_, err = r.config.Leases.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		_, err = r.config.Leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("write the table of lease %s: %w", r.config.Ring, err)
	}
	r.wake()
	return nil
}

// look returns the replicas that there are, and those whose Leases it has taken away.
func (r *Replica) look(ctx context.Context) (members, gone map[string]ring.Member, err error) {
	leases, err := r.list(ctx)
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	members, gone = map[string]ring.Member{}, map[string]ring.Member{}
	sights := map[types.UID]sight{}
	for i := range leases {
		lease := &leases[i]
		told, err := toldBy(lease)
		if err != nil {
			// It counts as a replica that confirms nothing.
			r.config.Logger.Errorf(ctx, err, "a replica can't be understood")
		}
		name := told.Name
		if lease.Spec.HolderIdentity != nil {
			name = *lease.Spec.HolderIdentity
		}
		s := r.sights[lease.UID]
		if s.version != lease.ResourceVersion {
			s = sight{lease.ResourceVersion, now}
		}
		sights[lease.UID] = s
		if name == r.config.Member || now.Sub(s.since) < duration(lease, r.config.LeaseDuration) {
			members[name] = told.Member
			continue
		}
		if ended, err := r.takeAway(ctx, lease); err != nil {
			return nil, nil, err
		} else if !ended {
			members[name] = told.Member
			continue
		}
		delete(sights, lease.UID)
		gone[name] = told.Member
	}
	r.sights = sights
	return members, gone, nil
}

// duration is that of a Lease, or what it is without one.
func duration(lease *coordinationv1.Lease, otherwise time.Duration) time.Duration {
	if lease.Spec.LeaseDurationSeconds == nil {
		return otherwise
	}
	return time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
}

// takeAway deletes a Lease as it was seen, and tells whether it is gone.
func (r *Replica) takeAway(ctx context.Context, lease *coordinationv1.Lease) (ended bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.RequestTimeout)
	defer cancel()
	err = r.config.Leases.Delete(ctx, lease.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion},
	})
	switch {
	case err == nil:
		r.config.Logger.Log("level", "info", "message", "replica is gone: its lease was not renewed", "lease", lease.Name)
		return true, nil
	case apierrors.IsNotFound(err):
		return true, nil
	case apierrors.IsConflict(err):
		return false, nil
	}
	return false, fmt.Errorf("delete lease %s, which has run out: %w", lease.Name, err)
}
