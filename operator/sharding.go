package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/giantswarm/micrologger"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/operator/internal/members"
	"github.com/operatorkit/operatorkit/operator/internal/ring"
)

// ShardingConfig lets all replicas of an operator work, each on a part of the primary objects of every framework.
//
// An object goes to a replica by its namespace, and one without a namespace by its name: objects of one namespace are never of two
// replicas. The replica that leads writes into a Lease who has which range of hashes of these, so that each has about as many objects as
// the others; ranges move when replicas come and go, and no object is begun by its new owner before the former one has ended its last
// reconciliation, or can't write any more (Fence).
//
// A replica receives and holds the objects of its own namespaces only, of the primary sources and of those watches that stay in their
// namespace (framework.Watch.SameNamespace, which Dependencies.Own says of its own): the API server leaves the others out (from Kubernetes
// 1.36 on), or the replica drops them. Everything else is held in full by every replica: sources of other watches, sources of informer.NewReader,
// those with HoldAll and Config.Sources, objects without a namespace, what these own, and what is not in Kubernetes.
//
// It takes a leader election on Kubernetes, whose times it uses. The Lease of that, under its name, keeps away replicas without sharding: all
// replicas with it hold it together, and it runs out when the last one has gone. Further Leases have the same name with an ending:
//
//	website-operator              all replicas that share the work
//	website-operator-leader       the one that leads: it runs the Runnables, and shares out
//	website-operator-shards       who has which range
//	website-operator-shards-3f0c…  a replica, for each of them
//
// A replica works in what another one is to get until that has listed it and the sources of all its frameworks are synced, and so does one that is
// told to end, for LeaseDuration at most. Without finalizers, a deletion that happens meanwhile is processed once. Those that happen while the
// operator is down, or while nobody has taken over from a replica that was killed or cut off, are missed, as ever.
type ShardingConfig struct {
	// Enabled turns it on. LeaderElection must be enabled too, without a Lock, and with an Identity that no other process ever had, as the
	// default one is. Default: off, one replica works.
	Enabled bool
	// Capacity is how much this replica can carry, next to others. Default: 1.
	Capacity int
	// Version is that of the program. While replicas of several versions run, as in a rolling update, only those of the newest one get
	// anything. Default: empty, all are of the same.
	Version string
}

// The endings of the names of Leases, and who holds that of all replicas together.
const (
	leaderEnding   = "-leader"
	shardsEnding   = "-shards"
	sharedIdentity = "replicas that share the work"
)

// maxLeaseName is how long the name of a Lease may be with sharding: that of a replica is longer by the endings and 17 characters.
const maxLeaseName = 253 - len(shardsEnding) - 17

func (c *ShardingConfig) validate(wrong *faults.List, election LeaderElectionConfig) {
	if !c.Enabled {
		return
	}
	wrong.If(!election.onKubernetes(), "Sharding must not be enabled without LeaderElection on Kubernetes, that is Enabled and without a Lock")
	wrong.If(len(election.Name) > maxLeaseName, "LeaderElection.Name must not be longer than %d with Sharding", maxLeaseName)
	wrong.If(c.Capacity < 0, "Sharding.Capacity must not be negative, is %d", c.Capacity)
}

// sharing is the part of an operator that shares the objects of its frameworks with other replicas.
type sharing struct {
	frameworks []*framework.Framework
	logger     micrologger.Logger
	// fence is that of the operator: it is open while this replica is a member, the lease of all replicas is held, and that of the leader
	// is, if this one leads.
	fence *Fence
	// together is the election that all replicas with sharding have won, and leader that of the one that leads.
	together, leader *election
	replica          *members.Replica
	shard            *shard
	division         *division
	handover         *handover
	// ready is set once all frameworks are told of what happens to their objects, and have all that they need to work.
	ready atomic.Bool
	// patience is for how long this replica waits, when it is told to end, until others have what it had.
	patience time.Duration
	// listed has a value when the sources have listed another part of the objects.
	listed chan struct{}
	pages  *cache.Expiring

	// following is held while the frameworks follow a table, of which owned is what they know.
	following sync.Mutex
	owned     []ring.Span

	// seen is since when the ranges of the newest table are like that.
	mu   sync.Mutex
	seen map[ring.Range]time.Time

	// The following belong to the goroutine of the replica, except for counts.
	// weighed is what was told of last, when it had that many objects.
	weighed []ring.Span
	objects int
	buckets []ring.Bucket
	counts  shardCounts
}

// newSharing makes the frameworks share their objects. config has a leader election with a fence, and page tells where the page of this
// replica is.
func newSharing(config Config, httpClient *http.Client, page func() members.Page) (*sharing, error) {
	own := config.LeaderElection.Fence
	s := &sharing{
		frameworks: config.Frameworks, fence: own, logger: config.Logger.With("operator", config.Name), pages: cache.NewExpiring(),
		listed: make(chan struct{}, 1),
	}
	s.division = newDivision(config, func() {
		select {
		case s.listed <- struct{}{}:
		default:
		}
	})
	s.division.hold(nil)
	elections := []struct {
		of               **election
		ending, identity string
	}{{&s.together, "", sharedIdentity}, {&s.leader, leaderEnding, config.LeaderElection.Identity}}
	for _, e := range elections {
		c := config.LeaderElection
		c.Fence, c.Name, c.Identity = NewFence(), c.Name+e.ending, e.identity
		c.Fence.bind(c.validity(), true)
		var err error
		if c.Lock, err = newLeaseLock(c, config.RESTConfig, httpClient); err != nil {
			return nil, err
		}
		if e.of == &s.together {
			c.Lock = commonLock{c.Lock}
		}
		*e.of = newElection(c, config.Logger)
	}
	s.together.keeps = true
	s.patience = config.LeaderElection.LeaseDuration
	s.handover = newHandover(config.Frameworks, s.logger, s.patience, s.follow)
	own.require(s.together.fence)
	leases, err := newLeases(config.RESTConfig, httpClient)
	if err != nil {
		return nil, err
	}
	election := config.LeaderElection
	s.replica, err = members.New(members.Config{
		Leases: leases.Leases(election.Namespace), Ring: election.Name + shardsEnding, Member: election.Identity,
		Capacity: config.Sharding.Capacity, Version: config.Sharding.Version, Page: page,
		LeaseDuration: election.LeaseDuration, RetryPeriod: election.RetryPeriod, RequestTimeout: s.leader.lock.timeout,
		Leads: s.leads, Renewed: own.renewed, Weigh: s.weigh, Listed: s.knows, Noted: s.handover.noted, Works: func() bool { return own.Check() == nil },
		Logger: config.Logger,
	})
	if err != nil {
		return nil, err
	}
	s.handover.holder = s.replica.Holder()
	s.shard = &shard{s.replica.Holder(), s.division}
	s.replica.OnTable(func() {
		s.counts.follow(s.replica.Table(), time.Now())
		s.see(s.replica.Table(), time.Now())
		s.follow()
		s.handover.heard(s.replica.Table(), s.This(), time.Now())
	})
	for _, f := range config.Frameworks {
		if err := f.Share(s.shard); err != nil {
			return nil, fmt.Errorf("operator.Config: Sharding: %w", err)
		}
	}
	return s, nil
}

// knows tells in which spans this replica knows all objects, hears of what happens to them, and can work. It is what others give up for it: what
// nobody has it gets also while a framework waits for a source.
func (s *sharing) knows() []ring.Span {
	if !s.ready.Load() {
		return nil
	}
	return s.division.listed()
}

// leads tells whether this replica leads, for certain.
func (s *sharing) leads() bool { return s.leader.fence.Check() == nil }

// work is a member of the replicas until ctx ends or something fails, and then until others have what it had. It runs the frameworks of
// the operator, and while this replica leads, the runnables.
func (s *sharing) work(ctx context.Context, o *Operator) error {
	staying, end := context.WithCancel(ctx)
	defer end()
	working, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	leaving, leave := context.WithCancel(withoutFence(context.WithoutCancel(ctx)))
	defer leave()
	var membership, leadership error
	var beside sync.WaitGroup
	beside.Go(func() {
		err := s.replica.Run(withoutFence(staying), s.patience)
		if err == nil {
			stop(context.Cause(ctx))
			err = s.replica.Leave(leaving)
		}
		if err != nil {
			s.fence.lose()
			membership = fmt.Errorf("%w: %w", ErrLeaseLost, err)
			stop(errors.Join(membership, framework.ErrStopNow))
			return
		}
		s.fence.close()
	})
	beside.Go(func() {
		leadership = s.leader.lead(working, func(ctx context.Context) error {
			s.fence.require(s.leader.fence)
			runnables := o.startRunnables(ctx, end)
			<-ctx.Done()
			err := runnables.waitFor(o.config.ShutdownTimeout)
			if !errors.Is(err, framework.ErrStillRunning) {
				// What the frameworks are at is theirs, whoever leads.
				s.fence.dispense(s.leader.fence)
			}
			return err
		})
		if leadership != nil {
			stop(errors.Join(leadership, framework.ErrStopNow))
		}
	})
	beside.Go(func() { s.handover.run(working) })
	beside.Go(func() {
		for {
			select {
			case <-working.Done():
				return
			case <-s.listed:
				s.follow()
				s.replica.Wake()
				s.division.ask(working)
			}
		}
	})
	beside.Go(func() {
		for _, f := range s.frameworks {
			select {
			case <-working.Done():
				return
			case <-f.Subscribed():
			}
			if !synced(working, f) {
				return
			}
		}
		s.ready.Store(true)
		s.replica.Wake()
	})
	err := o.startFrameworks(working, end).wait()
	end()
	if errors.Is(err, framework.ErrStillRunning) {
		// What works on must not write, and keeps its objects until the lease of this replica has ended.
		s.fence.lose()
		leave()
	}
	beside.Wait()
	return errors.Join(membership, leadership, err)
}

// follow has the sources and the frameworks follow the newest table, as far as the sources have listed what it gives to this replica.
func (s *sharing) follow() {
	s.following.Lock()
	defer s.following.Unlock()
	lost := s.division.hold(s.replica.Holder().Held())
	before, now := s.owned, ring.Intersection(s.replica.Holder().Owned(), s.division.listed())
	s.owned = now
	if slices.Equal(before, now) && !lost {
		return
	}
	gained := func(key informer.Key) bool {
		h := hashOf(key)
		return contains(now, h) && !contains(before, h)
	}
	for _, f := range s.frameworks {
		f.Reshare(gained)
	}
	if !slices.Equal(before, now) {
		s.counts.note(before, now)
		s.logger.Log("level", "info", "message", "this replica has another part of the objects", "ranges", len(now))
	}
}

// weighParts is in how many parts of about as many objects a range is told of.
const weighParts = 32

// weigh tells where the objects of this replica are that it has listed, anew if there are others than before.
func (s *sharing) weigh(owned []ring.Span) []ring.Bucket {
	owned = ring.Intersection(owned, s.division.listed())
	objects := 0
	for _, source := range s.primaries() {
		objects += source.Status().Objects
	}
	if slices.Equal(owned, s.weighed) && objects == s.objects {
		return s.buckets
	}
	hashes := make([]ring.Hash, 0, objects)
	for _, f := range s.frameworks {
		for _, key := range f.Keys() {
			hashes = append(hashes, hashOf(key))
		}
	}
	slices.Sort(hashes)
	s.weighed, s.objects, s.buckets = owned, objects, nil
	mine := 0
	for _, span := range owned {
		first, _ := slices.BinarySearch(hashes, span.First)
		rest := hashes[first:]
		beyond := slices.IndexFunc(rest, func(h ring.Hash) bool { return h > span.Last })
		if beyond >= 0 {
			rest = rest[:beyond]
		}
		mine += len(rest)
		s.buckets = append(s.buckets, ring.Weigh(span, rest, weighParts)...)
	}
	s.counts.objects.Store(int64(mine))
	return s.buckets
}

// primaries are the primary sources of the frameworks.
func (s *sharing) primaries() (sources []informer.Source) {
	for _, f := range s.frameworks {
		sources = append(sources, f.Sources()[0])
	}
	return sources
}

// shard is what this replica has of the objects, and knows all about.
type shard struct {
	holder   *ring.Holder
	division *division
}

// Owns implements framework.Shard.
func (s *shard) Owns(key informer.Key) bool {
	h := hashOf(key)
	return contains(s.division.listed(), h) && s.holder.Owns(h)
}

// Expects implements framework.Shard.
func (s *shard) Expects(key informer.Key) bool {
	h := hashOf(key)
	return !s.Owns(key) && contains(s.holder.Held(), h)
}

// Resume implements framework.Shard.
func (s *shard) Resume(key informer.Key) bool { return s.holder.Resume(hashOf(key)) }

// Begin implements framework.Shard.
func (s *shard) Begin(key informer.Key) bool {
	h := hashOf(key)
	if !s.holder.Begin(h) {
		return false
	}
	if !contains(s.division.listed(), h) {
		s.holder.End(h)
		return false
	}
	return true
}

// End implements framework.Shard.
func (s *shard) End(key informer.Key) { s.holder.End(hashOf(key)) }

// hashOf is where an object lies: by its namespace, so that what belongs to it lies there too, or else by its name.
func hashOf(key informer.Key) ring.Hash { return ring.HashOf(cmp.Or(key.Namespace, key.Name)) }

func contains(spans []ring.Span, h ring.Hash) bool {
	return slices.ContainsFunc(spans, func(s ring.Span) bool { return s.Contains(h) })
}
