package natscontroller_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// gatekeepers are replicas that share the entries of a bucket, which is in NATS, by Leases, which are in Kubernetes.
type gatekeepers struct {
	*world
	finalizers bool

	mu sync.Mutex
	// keeps says which revision of an entry was reconciled last, and by whom, and closed who has processed deletions.
	keeps  map[string]keep
	closed map[types.UID][]string
}

type keep struct {
	by       string
	revision uint64
}

type gatekeeper struct {
	*gatekeepers
	identity string
}

func (g *gatekeeper) Name() string { return "gatekeeper" }

func (g *gatekeeper) EnsureCreated(_ context.Context, obj any) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	gateway := obj.(*Gateway)
	g.keeps[gateway.Name] = keep{g.identity, gateway.Revision()}
	return nil
}

func (g *gatekeeper) EnsureDeleted(_ context.Context, obj any) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	uid := obj.(*Gateway).GetUID()
	g.closed[uid] = append(g.closed[uid], g.identity)
	return nil
}

func (g *gatekeepers) join(identity string) *running {
	g.t.Helper()
	f, err := framework.New(framework.Config{
		Name: "gateways", Source: newSource(g.world, g.gateways), Resources: []framework.Resource{&gatekeeper{g, identity}},
		Logger: g.logger, DisableFinalizer: !g.finalizers,
	})
	if err != nil {
		g.t.Fatal(err)
	}
	o, err := operator.New(operator.Config{
		Name: "gatekeeper", RESTConfig: g.restConfig, Logger: g.logger, Frameworks: []*framework.Framework{f}, Sharding: operator.ShardingConfig{Enabled: true},
		LeaderElection: operator.LeaderElectionConfig{
			Enabled: true, Namespace: g.namespace, Identity: identity, LeaseDuration: 20 * time.Second, RenewDeadline: 8 * time.Second, RetryPeriod: 100 * time.Millisecond,
		},
	})
	if err != nil {
		g.t.Fatal(err)
	}
	return run(g.t, o.Run)
}

// keptBy waits until entries as they are now are reconciled, and exactly these replicas have done so.
func (g *gatekeepers) keptBy(names []string, identities ...string) {
	g.t.Helper()
	operatortest.Eventually(g.t, fmt.Sprintf("entries are kept by %q", identities), func() error {
		revisions := map[string]uint64{}
		for _, name := range names {
			revisions[name] = g.touch(name)
		}
		by := map[string]bool{}
		operatortest.Eventually(g.t, "all are reconciled", func() bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			clear(by)
			for name, revision := range revisions {
				if g.keeps[name].revision < revision {
					return false
				}
				by[g.keeps[name].by] = true
			}
			return true
		})
		if got := slices.Sorted(maps.Keys(by)); !slices.Equal(got, identities) {
			return fmt.Errorf("they are kept by %q", got)
		}
		return nil
	})
}

func TestReplicasShareTheEntriesOfABucketByTheirKeysAndProcessEachDeletion(t *testing.T) {
	for _, finalizers := range []bool{true, false} {
		t.Run(fmt.Sprintf("finalizers=%t", finalizers), func(t *testing.T) {
			g := &gatekeepers{world: newWorld(t).withKubernetes(), finalizers: finalizers, keeps: map[string]keep{}, closed: map[types.UID][]string{}}
			var names, doomed []string
			for i := range 24 {
				names, doomed = append(names, fmt.Sprintf("gateway-%02d", i)), append(doomed, fmt.Sprintf("doomed-%02d", i))
			}
			a := g.join("a")
			g.keptBy(slices.Concat(names, doomed), "a")
			b := g.join("b")
			for _, name := range doomed[:12] {
				g.deleteGateway(name)
			}
			g.keptBy(names, "a", "b")
			ended := make(chan error, 1)
			go func() { ended <- a.stop() }()
			for _, name := range doomed[12:] {
				g.deleteGateway(name)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
			g.keptBy(names, "b")
			operatortest.Eventually(t, "all deletions are processed", func() bool {
				g.mu.Lock()
				defer g.mu.Unlock()
				return len(g.closed) == len(doomed)
			})
			if err := b.stop(); err != nil {
				t.Error(err)
			}
			for uid, by := range g.closed {
				if len(by) != 1 && finalizers { // Without, the next holder may repeat it.
					t.Errorf("the deletion of %s was processed by %q", uid, by)
				}
			}
		})
	}
}
