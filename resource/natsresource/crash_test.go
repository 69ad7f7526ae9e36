package natsresource_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/giantswarm/micrologger"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
	"github.com/operatorkit/operatorkit/resource/natsresource"
)

// version is a version of a controller: a framework for gateways that watches the routes it keeps for them.
type version struct {
	framework framework.Config
	// resources keep the routes; by default it is one, called routes, that keeps all.
	resources []part
}

// part is a resource that keeps those routes of a gateway which it wants.
type part struct {
	name, prefix, suffix string
	former               []string
}

// desired are the routes whose names begin with the prefix, with the suffix after them.
func (p part) desired(_ context.Context, g *gateway) ([]*route, error) {
	var want []*route
	for _, name := range slices.Sorted(maps.Keys(g.Routes)) {
		if strings.HasPrefix(name, p.prefix) {
			want = append(want, newRoute(name+p.suffix, g.Routes[name]))
		}
	}
	return want, nil
}

// run runs a version of a controller until ctx ends.
func (v version) run(ctx context.Context, js jetstream.JetStream, log io.Writer) error {
	logger, err := micrologger.New(micrologger.Config{IOWriter: log})
	if err != nil {
		return err
	}
	gateways, err := natsinformer.NewBucket(natsinformer.BucketConfig[*gateway]{JetStream: js, Name: "gateways"})
	if err != nil {
		return err
	}
	routes, err := natsinformer.NewBucket(natsinformer.BucketConfig[*route]{JetStream: js, Name: "routes"})
	if err != nil {
		return err
	}
	primaries, err := natsinformer.NewSource(natsinformer.SourceConfig[*gateway]{Bucket: gateways, Logger: logger})
	if err != nil {
		return err
	}
	children, err := natsinformer.NewSource(natsinformer.SourceConfig[*route]{
		Bucket: routes, Logger: logger, Indexers: natsresource.OwnerIndexers(),
	})
	if err != nil {
		return err
	}
	if len(v.resources) == 0 {
		v.resources = []part{{name: "routes"}}
	}
	c := v.framework
	for _, p := range v.resources {
		r, err := natsresource.New(config{
			Name: p.name, FormerNames: p.former, Bucket: routes, Source: children, Logger: logger, Kind: "Gateway", Desired: p.desired,
		})
		if err != nil {
			return err
		}
		c.Resources = append(c.Resources, r)
	}
	if c.Name == "" {
		c.Name = "gateways"
	}
	c.Source, c.Logger, c.ShutdownTimeout = primaries, logger, -1
	c.Watches = []framework.Watch{{Source: children, Map: natsresource.OwnerMap("Gateway")}}
	c.BackOffFactory = func() backoff.BackOff { return backoff.NewConstantBackOff(10 * time.Millisecond) }
	f, err := framework.New(c)
	if err != nil {
		return err
	}
	return f.Run(ctx)
}

// moment is when a controller crashes: before the server has got a write, or before the controller has got the answer.
type moment string

const (
	beforeWrite moment = "before"
	afterWrite  moment = "after"
)

var errCrashed = errors.New("the controller has crashed")

// crash makes the writes of a controller fail from the nth on, counted from 1, and tells when it has.
type crash struct {
	jetstream.JetStream
	n       int
	moment  moment
	crashed chan struct{}

	mu     sync.Mutex
	writes int
}

// KeyValue returns a bucket whose writes may crash.
func (c *crash) KeyValue(ctx context.Context, bucket string) (jetstream.KeyValue, error) {
	kv, err := c.JetStream.KeyValue(ctx, bucket)
	return &crashingBucket{kv, c}, err
}

// write does a write unless the controller has crashed.
func (c *crash) write(do func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes++
	switch {
	case c.n == 0 || c.writes < c.n:
		return do()
	case c.writes > c.n:
		return errCrashed
	}
	defer close(c.crashed)
	if c.moment == afterWrite {
		if err := do(); err != nil {
			return err
		}
	}
	return errCrashed
}

type crashingBucket struct {
	jetstream.KeyValue
	crash *crash
}

func (b *crashingBucket) Create(ctx context.Context, key string, value []byte, options ...jetstream.KVCreateOpt) (revision uint64, err error) {
	err = b.crash.write(func() (err error) { revision, err = b.KeyValue.Create(ctx, key, value, options...); return err })
	return revision, err
}

func (b *crashingBucket) Update(ctx context.Context, key string, value []byte, last uint64) (revision uint64, err error) {
	err = b.crash.write(func() (err error) { revision, err = b.KeyValue.Update(ctx, key, value, last); return err })
	return revision, err
}

// PublishMsg puts markers.
func (c *crash) PublishMsg(ctx context.Context, msg *nats.Msg, options ...jetstream.PublishOpt) (ack *jetstream.PubAck, err error) {
	err = c.write(func() (err error) { ack, err = c.JetStream.PublishMsg(ctx, msg, options...); return err })
	return ack, err
}

// runDoomed runs a version until the crash, and then again.
func (v version) runDoomed(ctx context.Context, doomed *crash, log io.Writer) error {
	first, crashed := context.WithCancelCause(ctx)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer crashed(nil)
	waiting.Go(func() {
		select {
		case <-doomed.crashed:
			crashed(framework.ErrStopNow)
		case <-first.Done():
		}
	})
	if err := v.run(first, doomed, log); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	if ctx.Err() != nil {
		return nil
	}
	if err := v.run(ctx, doomed.JetStream, log); err != nil {
		return fmt.Errorf("run again: %w", err)
	}
	return nil
}

// phase is a step of the user, and the routes that come of it.
type phase struct {
	name string
	do   func(ctx context.Context, gateways *natsinformer.Bucket[*gateway]) error
	want []string
}

var phases = []phase{
	{"create", func(ctx context.Context, b *natsinformer.Bucket[*gateway]) error {
		g := home()
		g.Routes = map[string]string{"one": "a", "two": "a"}
		return b.Create(ctx, g)
	}, []string{"one=a", "two=a"}},
	{"change", func(ctx context.Context, b *natsinformer.Bucket[*gateway]) error {
		g, err := b.Get(ctx, "home")
		if err != nil {
			return err
		}
		g.Routes = map[string]string{"one": "b", "three": "b"}
		return b.Update(ctx, g)
	}, []string{"one=b", "three=b"}},
	{"delete", func(ctx context.Context, b *natsinformer.Bucket[*gateway]) error {
		return b.RequestDeletion(ctx, "home")
	}, nil},
}

// play goes through the phases with a controller that crashes and is started again. It returns how many writes the first
// one tried, and how many messages there were in the bucket of the routes.
func play(t *testing.T, n int, at moment) (tried int, messages uint64) {
	t.Helper()
	k := newKit(t)
	natsserver.NewBucket(t, k.js, jetstream.KeyValueConfig{Bucket: "gateways", History: 5})
	gateways := newBucket[*gateway](t, k.js, "gateways")

	doomed := &crash{JetStream: k.js, n: n, moment: at, crashed: make(chan struct{})}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() {
		if err := (version{}).runDoomed(ctx, doomed, k.log); err != nil {
			t.Error(err)
		}
	})

	for _, p := range phases {
		if err := p.do(t.Context(), gateways); err != nil {
			t.Fatal(err)
		}
		operatortest.Eventually(t, "phase "+p.name+" is over", func() error {
			got, err := k.hosts()
			if err != nil {
				return err
			}
			if diff := cmp.Diff(append([]string{}, p.want...), got); diff != "" {
				return fmt.Errorf("routes (-want +got):\n%s", diff)
			}
			_, err = gateways.Get(t.Context(), "home")
			if gone := apierrors.IsNotFound(err); gone != (len(p.want) == 0) {
				return fmt.Errorf("the gateway is gone: %v (%w)", gone, err)
			}
			return nil
		})
	}
	doomed.mu.Lock()
	defer doomed.mu.Unlock()
	return doomed.writes, k.lastSequence()
}

func TestCreateChangeAndDeleteSurviveACrashAtEveryWrite(t *testing.T) {
	writes, messages := play(t, 0, "")
	if writes < 7 {
		t.Fatalf("%d writes were tried, want those of four routes and the gateway's end at least", writes)
	}
	for n := 1; n <= writes; n++ {
		for _, at := range []moment{beforeWrite, afterWrite} {
			t.Run(fmt.Sprintf("%s write %d", at, n), func(t *testing.T) {
				t.Parallel()
				if _, got := play(t, n, at); got != messages {
					t.Errorf("%d messages in the bucket, want %d: nothing is lost, and nothing is written twice", got, messages)
				}
			})
		}
	}
}
