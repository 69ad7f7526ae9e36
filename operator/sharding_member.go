package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/operator/internal/slots"
)

const (
	// minRound is the shortest pause between two rounds of a member.
	minRound = 20 * time.Millisecond
	// parallelWrites is how many slots are written at once.
	parallelWrites = 16
)

// run takes part in the ring until ctx ends. Then it continues for at most patience, while this
// replica holds slots, can work, and there are others to take the slots. It returns nil then, and
// leave must be called. An error wraps ErrLeaseLost. Other failures are retried.
func (m *member) run(ctx context.Context, patience time.Duration) error {
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var watches sync.WaitGroup
	defer watches.Wait()
	defer stop()
	watches.Go(func() { m.watch(watching) })
	for ctx.Err() == nil {
		if err := m.round(ctx); err != nil {
			return err
		}
		m.pause(ctx)
	}
	m.leaving = true
	waiting, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	for m.hasHeirs(waiting) {
		if err := m.round(waiting); err != nil {
			return err
		}
		m.pause(waiting)
	}
	return nil
}

// hasHeirs reports whether the replica holds slots, and there are others to take them.
func (m *member) hasHeirs(ctx context.Context) bool {
	ring, said := m.view()
	if !m.works() || ring.Part(m.name).Held == (slots.Set{}) || ctx.Err() != nil {
		return false
	}
	for name, other := range said {
		if name != m.name && !other.Leaving {
			return true
		}
	}
	return false
}

// pause waits for the next round.
func (m *member) pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(minRound):
	}
	select {
	case <-ctx.Done():
	case <-m.woken:
	case <-time.After(m.retry - min(time.Since(m.tried), m.retry-minRound)):
	}
}

// round renews the Lease, deletes expired Leases, and writes slots. It returns an error only if the
// Lease is lost.
func (m *member) round(ctx context.Context) error {
	err := m.publish(ctx)
	if err == nil {
		err = m.expire(ctx)
	}
	if err == nil {
		err = m.move(ctx)
	}
	if errors.Is(err, ErrLeaseLost) {
		return err
	}
	if err != nil && ctx.Err() == nil {
		m.logger.Errorf(ctx, err, "sharing objects with other replicas failed, retrying")
	}
	return nil
}

// publish writes this replica's own Lease when the renewal is due or the statement has changed.
func (m *member) publish(ctx context.Context) error {
	says := m.state()
	says.Leaving = m.leaving
	due := m.lease == nil || time.Since(m.renewedAt) >= m.retry-minRound
	if !due {
		var before statement
		_ = json.Unmarshal([]byte(m.lease.Annotations[memberAnnotation]), &before)
		if before.Objects = says.Objects; before == says {
			return nil
		}
	}
	text, err := json.Marshal(says)
	if err != nil {
		return fmt.Errorf("write lease %s: %w", m.leaseName(), err)
	}
	now, seconds := metav1.NowMicro(), int32(m.duration/time.Second) //nolint:gosec // leases are short
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: m.leaseName(), Labels: m.labels()},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &m.name, LeaseDurationSeconds: &seconds, AcquireTime: &now},
	}
	if m.lease != nil {
		lease = m.lease.DeepCopy()
	}
	lease.Spec.RenewTime = &now
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, memberAnnotation, string(text))
	return m.renew(ctx, lease)
}

// renew creates or updates this replica's own Lease.
func (m *member) renew(ctx context.Context, lease *coordinationv1.Lease) error {
	start := time.Now()
	m.tried = start
	written, err := m.put(ctx, lease)
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err) && m.lease != nil:
		return m.adopt(ctx)
	case err != nil:
		return err
	}
	m.lease, m.renewedAt = written, start
	m.renewed(start)
	return nil
}

// put creates a Lease, or updates it if it has a version, and observes the answer.
func (m *member) put(ctx context.Context, lease *coordinationv1.Lease) (written *coordinationv1.Lease, err error) {
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	if lease.ResourceVersion == "" {
		written, err = m.leases.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		written, err = m.leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("write lease %s: %w", lease.Name, err)
	}
	m.observe(written, false)
	return written, nil
}

// adopt reads this replica's own Lease when the API server has another version: it was written by a
// request whose answer was lost, or edited by hand. A Lease that is gone was deleted because it had
// expired. The API server may report that as a conflict.
func (m *member) adopt(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	lease, err := m.leases.Get(ctx, m.leaseName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: lease %s of this replica is gone: it was not renewed within %s, or was deleted", ErrLeaseLost, m.leaseName(), m.duration)
	case err != nil:
		return fmt.Errorf("read lease %s: %w", m.leaseName(), err)
	case m.lease != nil && lease.UID != m.lease.UID, lease.Spec.HolderIdentity == nil, *lease.Spec.HolderIdentity != m.name:
		return fmt.Errorf("%w: lease %s is another replica's", ErrLeaseLost, lease.Name)
	}
	m.lease = lease
	m.wake()
	return nil
}

// expire deletes the Leases of replicas that were observed unchanged for their whole duration. A
// renewal makes the deletion fail.
func (m *member) expire(ctx context.Context) error {
	m.mu.Lock()
	var expired []*coordinationv1.Lease
	for _, s := range m.known {
		if s.Labels[slotLabel] == "" && s.Name != m.leaseName() && time.Since(s.since) >= m.lastsFor(s.Lease) {
			expired = append(expired, s.Lease)
		}
	}
	m.mu.Unlock()
	for _, lease := range expired {
		if err := m.delete(ctx, lease, &lease.ResourceVersion); err != nil {
			return err
		}
	}
	return nil
}

func (m *member) lastsFor(lease *coordinationv1.Lease) time.Duration {
	if lease.Spec.LeaseDurationSeconds == nil {
		return m.duration
	}
	return max(m.duration, time.Duration(*lease.Spec.LeaseDurationSeconds)*time.Second)
}

// delete deletes the Lease of a replica. If version is not nil, only that version is deleted. A
// Lease that has changed or is gone is not an error.
func (m *member) delete(ctx context.Context, lease *coordinationv1.Lease, version *string) error {
	ctx, cancel := context.WithTimeout(ctx, m.timeout)
	defer cancel()
	err := m.leases.Delete(ctx, lease.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: version}})
	switch {
	case err == nil:
		m.observe(lease, true)
		if version != nil {
			m.logger.Log("level", "info", "message", "replica is gone: its lease was not renewed", "lease", lease.Name)
		}
		return nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil
	}
	return fmt.Errorf("delete lease %s: %w", lease.Name, err)
}

// move follows the ring, and writes the slots that this replica has to write. A refused write is
// not repeated: the watch shows the current state, and wakes the member.
func (m *member) move(ctx context.Context) error {
	m.mu.Lock()
	synced := m.synced
	m.mu.Unlock()
	ring, listed := m.follow()
	if !synced {
		return nil
	}
	var writing sync.WaitGroup
	var mu sync.Mutex
	var failed error
	written := 0
	turns := make(chan struct{}, parallelWrites)
	for _, w := range ring.Writes(m.name, listed, m.pass) {
		turns <- struct{}{}
		writing.Go(func() {
			defer func() { <-turns }()
			err := m.writeSlot(ctx, ring.Slots[w.Slot], w)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				written++
			case !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err):
				failed = err
			}
		})
	}
	writing.Wait()
	if written > 0 {
		m.follow()
	}
	return failed
}

// writeSlot writes a slot, unless its Lease has changed since the ring was read.
func (m *member) writeSlot(ctx context.Context, before slots.Slot, w slots.Write) error {
	m.mu.Lock()
	known, exists := m.known[m.slotName(w.Slot)]
	m.mu.Unlock()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: m.slotName(w.Slot), Labels: m.labels()}}
	lease.Labels[slotLabel] = strconv.Itoa(w.Slot)
	if exists && !known.deleted {
		if lease = known.DeepCopy(); lease.ResourceVersion != strconv.FormatUint(before.Written, 10) {
			return nil // It has changed since.
		}
	}
	lease.Spec.HolderIdentity = &w.To.Holder
	delete(lease.Annotations, nextAnnotation)
	delete(lease.Annotations, readyAnnotation)
	if w.To.Next != "" {
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, nextAnnotation, w.To.Next)
	}
	if w.To.Ready {
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, readyAnnotation, "true")
	}
	_, err := m.put(ctx, lease)
	return err
}

// leave keeps renewing until all work has ended, and then deletes this replica's own Lease. No new
// work may start. If ctx ends while work is still running, the Lease is left to expire. An error
// wraps ErrLeaseLost.
func (m *member) leave(ctx context.Context) error {
	for !m.holder.AllIdle() {
		if ctx.Err() != nil {
			return nil
		}
		if err := m.publish(ctx); errors.Is(err, ErrLeaseLost) {
			return err
		}
		m.pause(ctx)
	}
	if m.lease == nil {
		return nil
	}
	if err := m.delete(context.WithoutCancel(ctx), m.lease, nil); err != nil {
		m.logger.Errorf(ctx, err, "the lease of this replica can't be deleted, others take over when it expires")
	}
	return nil
}
