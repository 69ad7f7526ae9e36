package members

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/internal/ring"
)

// minRound is the shortest pause between two rounds of a replica, over which what wakes it is gathered.
const minRound = 20 * time.Millisecond

// Replica is one of a ring. Make one with New and run it once.
type Replica struct {
	config Config
	holder *ring.Holder
	joined int64
	woken  chan struct{}

	// lease is that of the replica as it was written last, renewed when that was begun, and tried when it was tried last. They belong to Run.
	lease          *coordinationv1.Lease
	renewed, tried time.Time
	// seen is the resource version of the newest table.
	seen string
	// sights are the Leases of others as a leader has seen them.
	sights map[types.UID]sight
	// idle are the replicas without objects that a leader has told of.
	idle []string
	// leaving is set once the replica is about to end.
	leaving bool

	// followed are called after each table.
	followed []func()

	mu sync.Mutex
	// table is the newest one.
	table ring.Table
}

// New returns a replica, or an error that lists every fault. It sends no request.
func New(config Config) (*Replica, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	r := &Replica{config: config, joined: time.Now().UnixNano(), woken: make(chan struct{}, 1), sights: map[types.UID]sight{}}
	r.holder = ring.NewHolder(config.Member, r.wake)
	return r, nil
}

// Holder says what the replica may work on.
func (r *Replica) Holder() *ring.Holder { return r.holder }

// Table returns the newest table that the replica knows of.
func (r *Replica) Table() ring.Table {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.table
}

// PageOf asks where the page of a member is.
func (r *Replica) PageOf(ctx context.Context, member string) (Page, error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.RequestTimeout)
	defer cancel()
	lease, err := r.config.Leases.Get(ctx, leaseOf(r.config.Ring, member), metav1.GetOptions{})
	if err != nil {
		return Page{}, fmt.Errorf("read the lease of replica %s: %w", member, err)
	}
	told, err := toldBy(lease)
	return told.Page, err
}

// Weighed returns a table with what the replicas say now of where their objects are. By itself it has what was known when it was written.
func (r *Replica) Weighed(ctx context.Context, table ring.Table) (ring.Table, error) {
	leases, err := r.list(ctx)
	if err != nil {
		return table, err
	}
	members := map[string]ring.Member{}
	for i := range leases {
		// One that can't be understood says nothing.
		if told, err := toldBy(&leases[i]); err == nil {
			members[told.Name] = told.Member
		}
	}
	return table.Weighed(members), nil
}

// Wake has what the replica can confirm told at once.
func (r *Replica) Wake() { r.wake() }

// OnTable has f called after each table that the replica follows, in order, and before that is confirmed. It is called before Run.
func (r *Replica) OnTable(f func()) { r.followed = append(r.followed, f) }

// wake has Run look at once.
func (r *Replica) wake() {
	select {
	case r.woken <- struct{}{}:
	default:
	}
}

// Run is a member of the ring until ctx ends, and has then others take over what it has, while it works on: it returns when it has nothing
// any more, when nobody is there who could take it, when Config.Works says that it can't work, or after so much patience. It returns nil then,
// and Leave is to be called, and otherwise an error that wraps ErrLost. What else fails is tried again for ever.
func (r *Replica) Run(ctx context.Context, patience time.Duration) error {
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	var watches sync.WaitGroup
	defer watches.Wait()
	defer stopWatching()
	watches.Go(func() { r.watch(watching, metav1.ListOptions{FieldSelector: "metadata.name=" + r.config.Ring}, always) })
	watches.Go(func() { r.watch(watching, ofReplicas(r.config.Ring), r.config.Leads) })
	for ctx.Err() == nil {
		if err := r.round(ctx); err != nil {
			return err
		}
		r.pause(ctx)
	}
	r.leaving = true
	waiting, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	for r.hasHeirs(waiting) {
		if err := r.round(waiting); err != nil {
			return err
		}
		r.pause(waiting)
	}
	return nil
}

// hasHeirs tells whether the replica has something, and there are others to take it.
func (r *Replica) hasHeirs(ctx context.Context) bool {
	if !r.config.Works() || len(r.holder.Held()) == 0 || ctx.Err() != nil {
		return false
	}
	members, err := r.list(ctx)
	if err != nil {
		return true
	}
	for i := range members {
		if told, err := toldBy(&members[i]); err == nil && told.Name != r.config.Member && !told.Leaving {
			return true
		}
	}
	return false
}

// list returns the Leases of the replicas.
func (r *Replica) list(ctx context.Context) ([]coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.RequestTimeout)
	defer cancel()
	list, err := r.config.Leases.List(ctx, ofReplicas(r.config.Ring))
	if err != nil {
		return nil, fmt.Errorf("list the leases of replicas: %w", err)
	}
	return list.Items, nil
}

// pause waits for the next round.
func (r *Replica) pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(minRound):
	}
	select {
	case <-ctx.Done():
	case <-r.woken:
	case <-time.After(r.config.RetryPeriod - min(time.Since(r.tried), r.config.RetryPeriod-minRound)):
	}
}

// round renews the Lease, follows the table and confirms it, and leads if it is this replica's turn. Only the loss of the Lease is an
// error.
func (r *Replica) round(ctx context.Context) error {
	steps := []func(context.Context) error{r.publish, r.follow, r.publish}
	if r.config.Leads() {
		steps = append(steps, r.decide, r.follow)
	}
	for _, step := range steps {
		err := step(ctx)
		switch {
		case errors.Is(err, ErrLost):
			r.holder.Close()
			return err
		case err != nil && ctx.Err() == nil:
			r.config.Logger.Errorf(ctx, err, "sharing the work of replicas failed, trying again")
		}
	}
	return nil
}

// publish writes the Lease if what it says has changed, or when it is time to renew it.
func (r *Replica) publish(ctx context.Context) error {
	told := Told{Name: r.config.Member, Page: r.config.Page(), Member: ring.Member{
		Capacity: r.config.Capacity, Version: r.config.Version, Joined: r.joined, Leaving: r.leaving, Confirmed: r.holder.Confirmation(),
	}}
	told.Confirmed.Listed = ring.Intersection(r.holder.Awaited(), r.config.Listed())
	due := time.Since(r.renewed) >= r.config.RetryPeriod-minRound
	before := Told{}
	if r.lease != nil {
		var err error
		if before, err = toldBy(r.lease); err != nil {
			return err
		}
	}
	if told.Weights = before.Weights; due {
		told.Weights = r.config.Weigh(r.holder.Owned())
	}
	lease := r.renewal()
	if err := annotate(lease, MemberAnnotation, told); err != nil {
		return err
	}
	if r.lease != nil && !due && lease.Annotations[MemberAnnotation] == r.lease.Annotations[MemberAnnotation] {
		return nil
	}
	return r.write(ctx, lease)
}

// renewal is the Lease with the time of now.
func (r *Replica) renewal() *coordinationv1.Lease {
	now := metav1.NowMicro()
	if r.lease != nil {
		lease := r.lease.DeepCopy()
		lease.Spec.RenewTime = &now
		return lease
	}
	seconds := int32(r.config.LeaseDuration / time.Second) //nolint:gosec // leases are short
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: leaseOf(r.config.Ring, r.config.Member), Labels: map[string]string{RingLabel: short(r.config.Ring)}},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &r.config.Member, LeaseDurationSeconds: &seconds, AcquireTime: r.acquired(), RenewTime: &now,
		},
	}
}

// acquired tells the Lease of this replica from that of another process, to the microsecond that the API server keeps.
func (r *Replica) acquired() *metav1.MicroTime {
	return &metav1.MicroTime{Time: time.Unix(0, r.joined).Truncate(time.Microsecond)}
}

// write creates or updates the Lease. One that is gone was taken away, which the API server may call a conflict. One that is newer than
// what was written last is so by a write whose answer was lost, or by a hand that has left it there.
func (r *Replica) write(ctx context.Context, lease *coordinationv1.Lease) error {
	ctx, cancel := context.WithTimeout(ctx, r.config.RequestTimeout)
	defer cancel()
	start := time.Now()
	r.tried = start
	var written *coordinationv1.Lease
	var err error
	if r.lease == nil {
		written, err = r.config.Leases.Create(ctx, lease, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return r.adopt(ctx, lease)
		}
	} else {
		written, err = r.config.Leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err) && r.lease != nil:
		return r.adopt(ctx, lease)
	case err != nil:
		return fmt.Errorf("write lease %s: %w", lease.Name, err)
	}
	r.lease, r.renewed = written, start
	r.config.Renewed(start)
	return nil
}

// adopt finds the Lease as it is, to be written by the next try.
func (r *Replica) adopt(ctx context.Context, lease *coordinationv1.Lease) error {
	now, err := r.config.Leases.Get(ctx, lease.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: lease %s is gone: it was not renewed within %s, or was deleted", ErrLost, lease.Name, r.config.LeaseDuration)
	case err != nil:
		return fmt.Errorf("read lease %s: %w", lease.Name, err)
	case r.lease != nil && now.UID != r.lease.UID, !now.Spec.AcquireTime.Equal(r.acquired()):
		return fmt.Errorf("%w: lease %s is another one's", ErrLost, lease.Name)
	}
	r.lease = now
	r.wake()
	return nil
}

// follow reads the table.
func (r *Replica) follow(ctx context.Context) error {
	lease, t, err := r.readTable(ctx)
	if apierrors.IsNotFound(err) {
		return nil // what it allowed before holds until there is another one
	}
	if err != nil {
		return err
	}
	if lease.ResourceVersion == r.seen {
		return nil
	}
	if informer.IsOlder(lease.ResourceVersion, r.seen) {
		return fmt.Errorf("lease %s is of resource version %s, and %s was seen before: the API server lags", lease.Name, lease.ResourceVersion, r.seen)
	}
	r.seen = lease.ResourceVersion
	r.config.Noted(t.NotesTo(r.config.Member))
	r.holder.Apply(string(lease.UID), t)
	r.mu.Lock()
	r.table = t
	r.mu.Unlock()
	for _, f := range r.followed {
		f()
	}
	return nil
}

func (r *Replica) readTable(ctx context.Context) (*coordinationv1.Lease, ring.Table, error) {
	ctx, cancel := context.WithTimeout(ctx, r.config.RequestTimeout)
	defer cancel()
	lease, err := r.config.Leases.Get(ctx, r.config.Ring, metav1.GetOptions{})
	if err != nil {
		return nil, ring.Table{}, fmt.Errorf("read lease %s: %w", r.config.Ring, err)
	}
	t, err := tableOf(lease)
	return lease, t, err
}

// Leave gives up what the replica works on, goes on renewing until that has ended, and then deletes the Lease. One of a replica that
// still works when ctx ends runs out. An error wraps ErrLost. It is called after Run.
func (r *Replica) Leave(ctx context.Context) error {
	r.holder.Close()
	for !r.holder.Idle() {
		if ctx.Err() != nil {
			return nil
		}
		if err := r.publish(ctx); errors.Is(err, ErrLost) {
			return err
		}
		r.pause(ctx)
	}
	if r.lease == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.config.RequestTimeout)
	defer cancel()
	err := r.config.Leases.Delete(ctx, r.lease.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &r.lease.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		r.config.Logger.Errorf(ctx, err, "the lease of this replica can't be deleted, others take over when it ends")
	}
	return nil
}
