package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/giantswarm/micrologger"
	coordinationv1 "k8s.io/api/coordination/v1"
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
func (m *member) wake() { notify(m.woken) }

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
