package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/giantswarm/micrologger"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/internal/liblog"
)

// The defaults of a LeaderElectionConfig, which are those of Kubernetes' own components.
const (
	DefaultLeaseDuration = 15 * time.Second
	DefaultRenewDeadline = 10 * time.Second
	DefaultRetryPeriod   = 2 * time.Second
)

// ErrLeaseLost is in the chain of Run's error if the lease could not be renewed in time.
var ErrLeaseLost = errors.New("leader election: lease lost")

// LeaderElectionConfig configures the election of the one replica that works. It uses a Lease of
// coordination.k8s.io, and needs the verbs get, create and update for it, unless another Lock is
// set.
type LeaderElectionConfig struct {
	// Enabled turns it on. Default: off, for operators with one replica.
	Enabled bool
	// Lock stores the lease elsewhere than in Kubernetes; natslease stores it in a NATS bucket. It
	// belongs to the operator, and has its own name and identity. Default: a Lease of Kubernetes.
	Lock resourcelock.Interface
	// Fence is open while this replica holds the lease for certain. A fence belongs to one
	// operator. Default: the fence of Config.RESTConfig, such as that of Dependencies. If
	// RESTConfig has one, Fence can't be another.
	Fence *Fence
	// Namespace is the namespace of the lease. Required when Enabled, unless Lock is set.
	Namespace string
	// Name is the name of the lease, a DNS name. Replicas with the same name elect one of them.
	// Default: the name of the operator, as converted by identity.LeaseName.
	Name string
	// Identity distinguishes replicas. Default: the host's name and a random part.
	Identity string
	// LeaseDuration is how long others wait after the last renewal before they acquire the lease,
	// in whole seconds. Default: DefaultLeaseDuration (15 s).
	LeaseDuration time.Duration
	// RenewDeadline is how long the leader tries to renew before it gives up. It must be less than
	// LeaseDuration. Default: DefaultRenewDeadline (10 s).
	RenewDeadline time.Duration
	// RetryPeriod is the pause between two tries to get or renew the lease. It must be less than
	// RenewDeadline by at least a fifth. Default: DefaultRetryPeriod (2 s).
	RetryPeriod time.Duration
}

func (c *LeaderElectionConfig) setDefaults(operator string) {
	if c.Name == "" && c.Lock == nil {
		c.Name = identity.LeaseName(operator)
	}
	if c.Identity == "" && c.Lock == nil {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown-host"
		}
		c.Identity = host + "_" + string(uuid.NewUUID())
	}
	if c.LeaseDuration == 0 {
		c.LeaseDuration = DefaultLeaseDuration
	}
	if c.RenewDeadline == 0 {
		c.RenewDeadline = DefaultRenewDeadline
	}
	if c.RetryPeriod == 0 {
		c.RetryPeriod = DefaultRetryPeriod
	}
}

// validity is how long a renewal of the lease counts. The remainder of LeaseDuration allows for
// clocks of different speed: that of this replica and that of the next leader.
func (c *LeaderElectionConfig) validity() time.Duration {
	return c.LeaseDuration - (c.LeaseDuration-c.RenewDeadline)/2
}

// onKubernetes reports whether the election needs a connection to Kubernetes.
func (c *LeaderElectionConfig) onKubernetes() bool { return c.Enabled && c.Lock == nil }

func (c *LeaderElectionConfig) validate(wrong *faults.List) {
	if !c.Enabled {
		return
	}
	wrong.If(c.Namespace == "" && c.Lock == nil, "LeaderElection.Namespace must not be empty")
	if msgs := validation.IsDNS1123Subdomain(c.Name); c.Lock == nil && len(msgs) > 0 {
		wrong.Add("LeaderElection.Name %q can't be that of a Lease: %s", c.Name, strings.Join(msgs, ", "))
	}
	wrong.If(c.Lock != nil && c.Namespace+c.Name+c.Identity != "", "LeaderElection.Namespace, Name and Identity must be empty when Lock is set, which has its own")
	// A Lease stores its duration in whole seconds. With a fraction, others would acquire it before
	// this replica's fence has closed.
	wrong.If(c.LeaseDuration < time.Second || c.LeaseDuration%time.Second != 0,
		"LeaderElection.LeaseDuration must be in whole seconds, one at least, is %s", c.LeaseDuration)
	wrong.If(c.RenewDeadline >= c.LeaseDuration, "LeaderElection.RenewDeadline must be less than LeaseDuration (%s), is %s", c.LeaseDuration, c.RenewDeadline)
	if limit := time.Duration(leaderelection.JitterFactor * float64(c.RetryPeriod)); c.RetryPeriod <= 0 || limit >= c.RenewDeadline {
		wrong.Add("LeaderElection.RetryPeriod times %g must be less than RenewDeadline (%s), is %s",
			leaderelection.JitterFactor, c.RenewDeadline, c.RetryPeriod)
	}
}

// election makes one replica of several the leader.
type election struct {
	config LeaderElectionConfig
	logger micrologger.Logger
	lock   *observedLock
	fence  *Fence
	// keeps is set for a lease that others hold too, under the same identity. It is not released.
	keeps bool
}

// newElection makes an election from config.Lock and config.Fence.
func newElection(config LeaderElectionConfig, logger micrologger.Logger) *election {
	return &election{
		config: config,
		logger: logger.With("lease", config.Lock.Describe(), "identity", config.Lock.Identity()),
		// This leaves time for a second request after one that hangs.
		lock: &observedLock{
			Interface: config.Lock, fence: config.Fence, timeout: max(config.RenewDeadline/2, time.Second), renewals: newRenewals(),
			duration: config.LeaseDuration, logger: logger.With("lease", config.Lock.Describe()),
		},
		fence: config.Fence,
	}
}

// newRenewals returns the counter of an election, with all of its series.
func newRenewals() *prometheus.CounterVec {
	renewals := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "operatorkit_operator_lease_renewals_total",
		Help: "Tries to get or renew the lease of the leader election, by result: success or failure.",
	}, []string{"result"})
	for _, result := range []string{"success", "failure"} {
		renewals.WithLabelValues(result)
	}
	return renewals
}

// register registers the metrics of the election of an operator.
func (e *election) register(operator string, registerer prometheus.Registerer) error {
	labelled := prometheus.WrapRegistererWith(prometheus.Labels{"operator": operator}, registerer)
	renewed := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "operatorkit_operator_lease_renewed_timestamp_seconds",
		Help: "When the renewal was begun by which this replica holds the lease; 0 while it holds none.",
	}, func() float64 { return e.fence.renewedAt() })
	return errors.Join(labelled.Register(e.lock.renewals), labelled.Register(renewed))
}

// newLeaseLock returns the lock for a Lease of Kubernetes.
func newLeaseLock(config LeaderElectionConfig, restConfig *rest.Config, httpClient *http.Client) (resourcelock.Interface, error) {
	leases, err := newLeases(restConfig, httpClient)
	if err != nil {
		return nil, err
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: config.Namespace, Name: config.Name},
		Client:     leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: config.Identity},
	}, nil
}

// newLeases returns a client for leases. A limit on the rate of requests does not delay it.
func newLeases(restConfig *rest.Config, httpClient *http.Client) (*coordinationv1.CoordinationV1Client, error) {
	restConfig = rest.CopyConfig(restConfig)
	restConfig.QPS, restConfig.RateLimiter = -1, nil
	leases, err := coordinationv1.NewForConfigAndClient(restConfig, httpClient)
	if err != nil {
		return nil, fmt.Errorf("make the client for leases: %w", err)
	}
	return leases, nil
}

// lead waits until this replica leads, and runs work until ctx ends or the lease is lost. The lease
// is released when the work has ended, unless it was lost.
func (e *election) lead(ctx context.Context, work func(context.Context) error) error {
	leading := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name:          e.lock.Describe(),
		Lock:          e.lock,
		LeaseDuration: e.config.LeaseDuration,
		RenewDeadline: e.config.RenewDeadline,
		RetryPeriod:   e.config.RetryPeriod,
		// The elector would release a lost lease during the work. Releasing is done by this
		// package.
		ReleaseOnCancel: false,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(leading) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("%w: operator.Config: LeaderElection: %w", framework.ErrInvalidConfig, err)
	}

	// The election continues while the work is being stopped: its end would be the end of the
	// lease.
	stopped, stopElecting := context.WithCancel(context.WithoutCancel(ctx))
	electing := klog.NewContext(stopped, logr.FromSlogHandler(liblog.Handler(e.logger, func(_ *slog.Record, write func()) {
		if stopped.Err() == nil { // Otherwise a request failed because it was stopped.
			write()
		}
	})))
	defer stopElecting()
	working, stopWork := context.WithCancelCause(ctx)
	defer stopWork(nil)
	var lost atomic.Pointer[error]
	e.lock.lost = func(err error) {
		lost.Store(&err)
		e.log("error", "lease lost", "error", err.Error())
		stopWork(errors.Join(err, framework.ErrStopNow))
		stopElecting()
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		elector.Run(electing)
		if electing.Err() == nil {
			_ = e.lock.lose(fmt.Sprintf("it was not renewed within %s", e.config.RenewDeadline))
		}
	}()

	select {
	case <-ctx.Done():
	case <-leading:
		if e.keeps {
			e.log("info", "lease is held together with others")
		} else {
			e.log("info", "leading")
		}
		err = work(working)
	}
	if errors.Is(err, framework.ErrStillRunning) {
		// Work that continues must not write, and no other replica may before the lease has ended.
		e.fence.lose()
	}
	stopElecting()
	<-over
	switch why := lost.Load(); {
	case why != nil:
		return errors.Join(*why, err)
	case errors.Is(err, framework.ErrStillRunning):
		e.log("error", "lease is not released, because something goes on that was told to end; others take over when it ends", "error", err.Error())
		return err
	}
	if e.keeps {
		e.fence.close()
		return err
	}
	e.release(context.WithoutCancel(ctx))
	return err
}

// release releases the lease, if this replica holds it, so that the next leader need not wait for
// its end. It must not be called during the election, because the lock is not safe for concurrent
// use.
func (e *election) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, e.config.RenewDeadline)
	defer cancel()
	defer e.fence.close()
	released := false
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		record, _, err := e.lock.Interface.Get(withoutFence(ctx))
		if err != nil || record.HolderIdentity != e.lock.Identity() {
			return client.IgnoreNotFound(err)
		}
		now := metav1.Now()
		err = e.lock.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaderTransitions:    record.LeaderTransitions,
			LeaseDurationSeconds: 1,
			AcquireTime:          now,
			RenewTime:            now,
		})
		released = err == nil
		return err
	})
	switch {
	case err != nil:
		e.log("warning", "lease can't be released, others take over when it ends", "error", err.Error())
	case released:
		e.log("info", "lease released")
	}
}

func (e *election) log(level, message string, fields ...any) {
	e.logger.Log(append([]any{"level", level, "message", message}, fields...)...)
}
