package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/giantswarm/micrologger"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/internal/slots"
	"github.com/operatorkit/operatorkit/operator/logging"
)

// The labels and annotations of the Leases of replicas and slots.
const (
	// ringLabel identifies the ring by a hash, on all of its Leases. slotLabel is the number of a
	// slot.
	ringLabel = "operatorkit.io/shards"
	slotLabel = "operatorkit.io/slot"
	// nextAnnotation and readyAnnotation hold slots.Slot.Next and Ready.
	nextAnnotation  = "operatorkit.io/slot-next"
	readyAnnotation = "operatorkit.io/slot-ready"
	// memberAnnotation holds the statement of a replica.
	memberAnnotation = "operatorkit.io/shard-member"
)

const (
	// minRound is the shortest pause between two rounds of a member.
	minRound = 20 * time.Millisecond
	// parallelWrites is how many slots are written at once.
	parallelWrites = 16
)

// statement is what a replica publishes about itself in its Lease.
type statement struct {
	Version string    `json:"version,omitempty"`
	Able    bool      `json:"able,omitempty"`
	Leaving bool      `json:"leaving,omitempty"`
	Used    slots.Set `json:"used"`
	Objects int       `json:"objects"`
	Page    location  `json:"page,omitzero"`
}

// location is where the page of a replica is.
type location struct {
	// URL has the scheme and the host with the port. It is empty without a page.
	URL string `json:"url,omitempty"`
	// Host is the name of the machine or Pod if the page can only be reached from there. It is
	// empty if others can reach it.
	Host string `json:"host,omitempty"`
	// Certificate is the SHA-256 of the certificate in hexadecimal digits, with https.
	Certificate string `json:"certificate,omitempty"`
}

// memberConfig configures a member.
type memberConfig struct {
	leases coordinationv1client.LeaseInterface
	// ring is LeaderElection.Name. name is the identity of the replica, which no other process ever
	// had.
	ring, name string
	// duration is the LeaseDuration, retry is the RetryPeriod, and timeout is the maximum time of a
	// request.
	duration, retry, timeout time.Duration
	// state returns the statement of the replica, without Leaving.
	state func() statement
	// follow lets the replica work in the slots that it owns, and list the slots that it is to
	// hold. It returns the ring that it follows and the listed slots.
	follow func() (ring *slots.Ring, listed slots.Set)
	// renewed is called after each renewal with the time at which the renewal started.
	renewed func(start time.Time)
	// works reports whether the replica can work at all. A replica that can't work does not wait
	// until others have its slots.
	works  func() bool
	holder *slots.Holder
	// pass reports whether a slot that is being released can be passed to the next holder.
	pass   func(slot int) bool
	logger micrologger.Logger
}

// member is this replica among the replicas that share the objects. It renews its own Lease,
// watches the Leases of others, and writes the slots that it has to write (package slots).
type member struct {
	memberConfig
	woken chan struct{}

	// The following belong to run. lease is this replica's own Lease as last written. renewedAt is
	// when that write started, and tried is when the last attempt started.
	lease            *coordinationv1.Lease
	renewedAt, tried time.Time
	leaving          bool

	mu     sync.Mutex
	synced bool
	known  map[string]sight
}

// sight is the newest observed version of a Lease. since is when it was observed. deleted is true
// if the Lease of a slot is gone.
type sight struct {
	*coordinationv1.Lease
	since   time.Time
	deleted bool
}

func newMember(config memberConfig) *member {
	return &member{memberConfig: config, woken: make(chan struct{}, 1), known: map[string]sight{}}
}

// short returns 16 hexadecimal digits for a name of any length.
func short(name string) string { return fmt.Sprintf("%016x", slots.Hash(name)) }

func (m *member) leaseName() string         { return m.ring + shardsEnding + short(m.name) }
func (m *member) slotName(slot int) string  { return m.ring + slotEnding + strconv.Itoa(slot) }
func (m *member) labels() map[string]string { return map[string]string{ringLabel: short(m.ring)} }

// wake starts the next round of run without waiting for the retry period.
func (m *member) wake() {
	select {
	case m.woken <- struct{}{}:
	default:
	}
}

// observe records the state of a Lease, unless a newer one is known.
func (m *member) observe(lease *coordinationv1.Lease, deleted bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, known := m.known[lease.Name]
	if known && (informer.IsOlder(lease.ResourceVersion, before.ResourceVersion) || lease.ResourceVersion == before.ResourceVersion && !deleted) {
		return
	}
	m.known[lease.Name] = sight{lease, time.Now(), deleted}
	if deleted && lease.Labels[slotLabel] == "" {
		delete(m.known, lease.Name)
	}
	m.wake()
}

// watch observes the Leases of the ring until ctx ends.
func (m *member) watch(ctx context.Context) {
	selector := ringLabel + "=" + short(m.ring)
	observe := func(obj any, deleted bool) {
		if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = last.Obj
		}
		if lease, ok := obj.(*coordinationv1.Lease); ok {
			m.observe(lease, deleted)
		}
	}
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				options.LabelSelector, options.ResourceVersion = selector, "" // a quorum read
				return m.leases.List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				options.LabelSelector = selector
				return m.leases.Watch(ctx, options)
			},
		},
		ObjectType: &coordinationv1.Lease{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { observe(obj, false) },
			UpdateFunc: func(_, obj any) { observe(obj, false) },
			DeleteFunc: func(obj any) { observe(obj, true) },
		},
	})
	var waiting sync.WaitGroup
	defer waiting.Wait()
	waiting.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), controller.HasSynced) {
			m.mu.Lock()
			m.synced = true
			m.mu.Unlock()
			m.wake()
		}
	})
	controller.RunWithContext(klog.NewContext(ctx, logging.Logr(m.logger)))
}

// view returns the known state of the ring, and the statements of its replicas.
func (m *member) view() (ring *slots.Ring, said map[string]statement) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ring, said = &slots.Ring{Replicas: map[string]slots.Replica{}}, map[string]statement{}
	for _, s := range m.known {
		holder := ""
		if s.Spec.HolderIdentity != nil {
			holder = *s.Spec.HolderIdentity
		}
		if text := s.Labels[slotLabel]; text != "" {
			slot, err := strconv.Atoi(text)
			if err != nil || slot < 0 || slot >= slots.Count || s.deleted && time.Since(s.since) >= m.duration {
				continue
			}
			written, _ := strconv.ParseUint(s.ResourceVersion, 10, 64) // the order is a preference only
			ring.Slots[slot] = slots.Slot{
				Holder: holder, Next: s.Annotations[nextAnnotation], Ready: s.Annotations[readyAnnotation] != "", Written: written, Barred: s.deleted,
			}
			continue
		}
		var says statement
		// A replica with an unreadable statement exists, but gets nothing.
		_ = json.Unmarshal([]byte(s.Annotations[memberAnnotation]), &says)
		said[holder] = says
		ring.Replicas[holder] = slots.Replica{
			Version: says.Version, Joined: s.CreationTimestamp.Unix(), Able: says.Able, Leaving: says.Leaving, Used: says.Used,
		}
	}
	return ring, said
}

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
	if !m.works() || ring.Held(m.name) == (slots.Set{}) || ctx.Err() != nil {
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
