package natsresource_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
	"github.com/operatorkit/operatorkit/resource/natsresource"
)

// gateway is the primary of the resources under test.
type gateway struct {
	natsinformer.Meta `json:"metadata"`
	Routes            map[string]string `json:"routes,omitempty"`
}

func (g *gateway) Copy() any {
	c := *g
	c.Meta = g.DeepCopy()
	c.Routes = map[string]string{}
	for name, host := range g.Routes {
		c.Routes[name] = host
	}
	return &c
}

// route is an entry that they keep.
type route struct {
	natsinformer.Meta `json:"metadata"`
	Host              string   `json:"host"`
	Backends          []string `json:"backends,omitempty"`
	Status            *status  `json:"status,omitempty"`
}

// status is the part of a route that somebody else writes.
type status struct {
	Ready bool `json:"ready"`
}

type (
	config   = natsresource.Config[*gateway, *route]
	resource = framework.TypedCRUDResource[*gateway, natsresource.State[*route]]
)

// kit is a bucket of a real NATS server, and a source of it that runs.
type kit struct {
	t      *testing.T
	conn   *nats.Conn
	js     jetstream.JetStream
	kv     jetstream.KeyValue
	bucket *natsinformer.Bucket[*route]
	source *natsinformer.Source[*route]
	log    *buffer
	// as is whose resources reconcile; nil is the program.
	as *identity.Scope
}

func newKit(t *testing.T) *kit {
	t.Helper()
	conn, js := natsserver.Start(t).Connect(t)
	k := &kit{t: t, conn: conn, js: js, log: &buffer{}}
	k.kv = natsserver.NewBucket(t, js, jetstream.KeyValueConfig{Bucket: "routes", History: 5})
	k.use(newBucket[*route](t, js, "routes"))
	return k
}

// use writes through a bucket, and runs a source of it. That sends nothing when it is synced.
func (k *kit) use(bucket *natsinformer.Bucket[*route]) {
	k.t.Helper()
	k.bucket, k.source = bucket, newSource(k.t, bucket, k.logger())
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- k.source.Run(ctx) }()
	k.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			k.t.Error(err)
		}
	})
	if err := k.source.WaitForSync(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
}

func newSource(t *testing.T, bucket *natsinformer.Bucket[*route], logger micrologger.Logger) *natsinformer.Source[*route] {
	t.Helper()
	source, err := natsinformer.NewSource(natsinformer.SourceConfig[*route]{
		Bucket: bucket, Logger: logger, Indexers: natsresource.OwnerIndexers(), ProbeInterval: time.Hour, Relist: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func newBucket[T natsinformer.Entity](t *testing.T, js jetstream.JetStream, name string) *natsinformer.Bucket[T] {
	t.Helper()
	bucket, err := natsinformer.NewBucket(natsinformer.BucketConfig[T]{JetStream: js, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return bucket
}

// catchUp waits until the source shows the bucket as it is.
func (k *kit) catchUp() {
	k.t.Helper()
	operatortest.Eventually(k.t, "the source has caught up", func() error {
		keys, err := k.kv.Keys(k.t.Context())
		if err != nil && !errors.Is(err, jetstream.ErrNoKeysFound) {
			return err
		}
		if got := len(k.source.Keys()); got != len(keys) {
			return fmt.Errorf("it has %d entries, the bucket %d", got, len(keys))
		}
		for _, key := range keys {
			want, wantErr := k.bucket.Get(k.t.Context(), key)
			got, exists, err := k.source.Lookup(key)
			switch {
			case errors.Is(wantErr, natsinformer.ErrUndecodable) && errors.Is(err, natsinformer.ErrUndecodable):
			case wantErr != nil || err != nil || !exists || got.Revision() != want.Revision():
				return fmt.Errorf("%s: %v, %w; %v, %w", key, got, err, want, wantErr)
			}
		}
		return nil
	})
}

// resource makes a resource whose desired entries are what the function returns.
func (k *kit) resource(desired func() []*route, changes ...func(*config)) *resource {
	k.t.Helper()
	c := config{
		Name:    "routes",
		Bucket:  k.bucket,
		Source:  k.source,
		Logger:  k.logger(),
		Kind:    "Gateway",
		Desired: func(context.Context, *gateway) ([]*route, error) { return desired(), nil },
	}
	for _, change := range changes {
		change(&c)
	}
	r, err := natsresource.New(c)
	if err != nil {
		k.t.Fatal(err)
	}
	return r
}

func (k *kit) logger() micrologger.Logger {
	k.t.Helper()
	logger, err := micrologger.New(micrologger.Config{IOWriter: k.log})
	if err != nil {
		k.t.Fatal(err)
	}
	return logger
}

func adopt(c *config) { c.Adopt = true }

// home is the primary of most tests.
func home() *gateway { return &gateway{Meta: natsinformer.Meta{Name: "home"}} }

// newRoute returns a route with nothing but a name and a host.
func newRoute(name, host string) *route {
	return &route{Meta: natsinformer.Meta{Name: name}, Host: host}
}

// just makes a function that returns the routes.
func just(routes ...*route) func() []*route { return func() []*route { return routes } }

// update reconciles a primary on a source that has caught up, and fails the test if that fails.
func (k *kit) update(r *resource, g *gateway) {
	k.t.Helper()
	if err := k.tryUpdate(r, g); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kit) tryUpdate(r *resource, g *gateway) error {
	k.t.Helper()
	k.catchUp()
	return framework.ProcessUpdate(k.context(), g, []framework.Resource{r})
}

// context is one in which k.as reconciles.
func (k *kit) context() context.Context {
	if k.as == nil {
		return k.t.Context()
	}
	return identity.NewContext(k.t.Context(), k.as)
}

// by returns the kit as another framework uses it.
func (k *kit) by(operator, framework string) *kit {
	other := *k
	other.as = &identity.Scope{Identity: identity.Identity{Operator: operator, Framework: framework}}
	return &other
}

// patch computes what an update of the primary would change, on the source as it is.
func (k *kit) patch(r *resource, g *gateway) (*framework.TypedPatch[natsresource.State[*route]], error) {
	k.t.Helper()
	ctx := k.context()
	current, err := r.GetCurrentState(ctx, g)
	if err != nil {
		return nil, err
	}
	desired, err := r.GetDesiredState(ctx, g)
	if err != nil {
		return nil, err
	}
	return r.NewUpdatePatch(ctx, g, current, desired)
}

// wantPlan compares the changes of an update, on a source that has caught up, with lines such as "update a" and
// `  host: "x" -> "y"`. The marks that every created entry gets are left out. Nothing must be written meanwhile.
func (k *kit) wantPlan(r *resource, g *gateway, want ...string) {
	k.t.Helper()
	k.catchUp()
	before := k.lastSequence()
	patch, err := k.patch(r, g)
	if err != nil {
		k.t.Fatal(err)
	}
	if diff := cmp.Diff(want, lines(patch)); diff != "" {
		k.t.Errorf("plan (-want +got):\n%s", diff)
	}
	if after := k.lastSequence(); after != before {
		k.t.Errorf("planning wrote %d messages", after-before)
	}
}

func lines(patch *framework.TypedPatch[natsresource.State[*route]]) []string {
	var got []string
	for _, part := range []func() (natsresource.State[*route], bool){patch.CreateChange, patch.UpdateChange, patch.DeleteChange} {
		state, _ := part()
		for _, c := range state.Changes() {
			got = append(got, strings.TrimSuffix(string(c.Action)+" "+c.Object.Name+": "+c.Description, ": "))
			for _, f := range c.Fields {
				if c.Action == plan.Create && isMark(f.Path) {
					continue
				}
				got = append(got, "  "+f.String())
			}
		}
	}
	return got
}

func isMark(path string) bool {
	return strings.Contains(path, "operatorkit.io/") || strings.HasPrefix(path, "metadata.owner")
}

// wantQuiet checks that reconciling again writes nothing.
func (k *kit) wantQuiet(r *resource, g *gateway) {
	k.t.Helper()
	k.wantWrites(0, func() { k.update(r, g) })
}

// wantWrites checks how many messages come into the bucket's stream while the function runs.
func (k *kit) wantWrites(want uint64, do func()) {
	k.t.Helper()
	before := k.lastSequence()
	do()
	if got := k.lastSequence() - before; got != want {
		k.t.Errorf("%d writes, want %d", got, want)
	}
}

// wantRequests checks how many messages are sent to the server while the function runs.
func (k *kit) wantRequests(want uint64, do func()) {
	k.t.Helper()
	before := k.conn.Stats().OutMsgs
	do()
	if got := k.conn.Stats().OutMsgs - before; got != want {
		k.t.Errorf("%d requests, want %d", got, want)
	}
}

// lastSequence is how many messages the bucket's stream has ever had.
func (k *kit) lastSequence() uint64 {
	k.t.Helper()
	stream, err := k.js.Stream(k.t.Context(), "KV_routes")
	if err != nil {
		k.t.Fatal(err)
	}
	return stream.CachedInfo().State.LastSeq
}

// get reads a route, which must be there.
func (k *kit) get(name string) *route {
	k.t.Helper()
	r, err := k.bucket.Get(k.t.Context(), name)
	if err != nil {
		k.t.Fatal(err)
	}
	return r
}

// create stores a route as a user would.
func (k *kit) create(r *route) {
	k.t.Helper()
	if err := k.bucket.Create(k.t.Context(), r); err != nil {
		k.t.Fatal(err)
	}
}

// change changes a route as a user would.
func (k *kit) change(name string, change func(*route)) {
	k.t.Helper()
	r := k.get(name)
	change(r)
	if err := k.bucket.Update(k.t.Context(), r); err != nil {
		k.t.Fatal(err)
	}
}

// hosts returns the entries of the bucket as name=host. An error is an entry that went while they were read.
func (k *kit) hosts() ([]string, error) {
	k.t.Helper()
	keys, err := k.kv.Keys(k.t.Context())
	if err != nil && !errors.Is(err, jetstream.ErrNoKeysFound) {
		return nil, err
	}
	hosts := []string{}
	for _, key := range keys {
		r, err := k.bucket.Get(k.t.Context(), key)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, key+"="+r.Host)
	}
	slices.Sort(hosts)
	return hosts, nil
}

func (k *kit) wantHosts(want ...string) {
	k.t.Helper()
	got, err := k.hosts()
	if err != nil {
		k.t.Fatal(err)
	}
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		k.t.Errorf("bucket (-want +got):\n%s", diff)
	}
}

// text is everything that a state shows.
func text(t *testing.T, s natsresource.State[*route]) string {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return s.String() + s.GoString() + string(data)
}

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
