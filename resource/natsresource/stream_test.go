package natsresource_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
	"github.com/operatorkit/operatorkit/resource/natsresource"
)

// alone finds out whether a primary is reconciled by two workers at once.
type alone struct {
	mu      sync.Mutex
	working map[string]bool
	twice   []string
}

func (a *alone) enter(g *gateway) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.working[g.Name] {
		a.twice = append(a.twice, g.Name)
	}
	a.working[g.Name] = true
}

func (a *alone) leave(g *gateway) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.working[g.Name] = false
}

func TestAStreamOfChangesLosesNoKeyAndHasOneWorkerForEach(t *testing.T) {
	const changes, keys = 2000, 50
	k := newKit(t)
	natsserver.NewBucket(t, k.js, jetstream.KeyValueConfig{Bucket: "gateways"})
	gateways := newBucket[*gateway](t, k.js, "gateways")
	primaries, err := natsinformer.NewSource(natsinformer.SourceConfig[*gateway]{Bucket: gateways, Logger: k.logger()})
	if err != nil {
		t.Fatal(err)
	}
	children, err := natsinformer.NewSource(natsinformer.SourceConfig[*route]{
		Bucket: k.bucket, Logger: k.logger(), Indexers: natsresource.OwnerIndexers(),
	})
	if err != nil {
		t.Fatal(err)
	}
	workers := &alone{working: map[string]bool{}}
	r := k.resource(nil, func(c *config) {
		c.Source = children
		c.Desired = func(_ context.Context, g *gateway) ([]*route, error) {
			return []*route{newRoute(g.Name, g.Routes["host"])}, nil
		}
	})
	f, err := framework.New(framework.Config{
		Name: "gateways", Source: primaries, Logger: k.logger(),
		Resources: []framework.Resource{exclusive{r, workers}},
		Watches:   []framework.Watch{{Source: children, Map: natsresource.OwnerMap("Gateway")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() {
		if err := f.Run(ctx); err != nil {
			t.Errorf("run: %v", err)
		}
	})

	entities := make([]*gateway, keys)
	want := make([]string, keys)
	for i := range changes {
		g := entities[i%keys]
		if g == nil {
			g = &gateway{Meta: natsinformer.Meta{Name: fmt.Sprintf("gateway-%02d", i%keys)}}
			g.Routes = map[string]string{"host": strconv.Itoa(i)}
			err = gateways.Create(t.Context(), g)
		} else {
			g.Routes["host"] = strconv.Itoa(i)
			err = gateways.Update(t.Context(), g)
		}
		if err != nil {
			t.Fatal(err)
		}
		entities[i%keys], want[i%keys] = g, g.Name+"="+g.Routes["host"]
	}
	k.eventually("every route is as the last change of its gateway", want...)
	workers.mu.Lock()
	defer workers.mu.Unlock()
	if len(workers.twice) > 0 {
		t.Errorf("reconciled by two workers at once: %v", workers.twice)
	}
}

// exclusive notes when a resource begins and ends.
type exclusive struct {
	framework.Resource
	workers *alone
}

func (e exclusive) EnsureCreated(ctx context.Context, obj any) error {
	e.workers.enter(obj.(*gateway))
	defer e.workers.leave(obj.(*gateway))
	return e.Resource.EnsureCreated(ctx, obj)
}

const asDesired = "the routes are as desired"

// eventually waits until the bucket has these entries, as name=host.
func (k *kit) eventually(what string, want ...string) {
	k.t.Helper()
	operatortest.Eventually(k.t, what, func() error {
		got, err := k.hosts()
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("routes (-want +got):\n%s", diff)
		}
		return nil
	})
}

func TestARunningControllerPutsRightWhatPeopleDoByHand(t *testing.T) {
	k := newKit(t)
	natsserver.NewBucket(t, k.js, jetstream.KeyValueConfig{Bucket: "gateways"})
	k.start(version{}, k.log)
	g := home()
	g.Routes = map[string]string{"one": "a", "two": "b"}
	if err := newBucket[*gateway](t, k.js, "gateways").Create(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	k.eventually(asDesired, "one=a", "two=b")

	k.change("one", func(r *route) { r.Host = "evil" })
	k.eventually(asDesired, "one=a", "two=b")
	k.purge("two")
	k.eventually(asDesired, "one=a", "two=b")
	if err := k.kv.Delete(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	k.eventually(asDesired, "one=a", "two=b")

	garbage, err := k.kv.Put(t.Context(), "one", []byte("garbage"))
	if err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the refusal to overwrite garbage is in the log", func() bool {
		return strings.Contains(k.log.String(), "refusing to overwrite entry one of bucket routes")
	})
	if entry, err := k.kv.Get(t.Context(), "one"); err != nil || entry.Revision() != garbage {
		t.Errorf("garbage was overwritten: %v, %v", entry, err)
	}
	if err := k.kv.Purge(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	k.eventually(asDesired, "one=a", "two=b")
}
