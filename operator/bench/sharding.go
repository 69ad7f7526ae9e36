package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// sharded is how primaries with a child each are shared by replicas.
type sharded struct {
	primaries, namespaces int
	// wait is for how long each reconciliation of a storm waits for something.
	wait time.Duration
}

// The names under which a run reports what each of its replicas has: bytes on its heap, bytes that it received in a storm, and objects that
// it was sent then; and what the API server took of the processor.
const (
	shardHeap     = "shard-heap-bytes"
	shardReceived = "shard-received-bytes"
	shardDecoded  = "shard-decoded"
	serverSeconds = "server-processor-s"
)

// shardedWorkers is how many objects a replica reconciles at the same time.
const shardedWorkers = 10

// sharedWork is what is on the control plane of the row.
type sharedWork struct {
	sharded
	*cluster
	names []string
	// runs counts the runs, which is also what their changes write.
	runs atomic.Int64
}

// sharedByReplicas measures what each of several replicas takes that share primaries by namespace, next to one that has them all, and how much
// quicker they are together. They run in this process.
func sharedByReplicas(ctx context.Context, e *environment) (lines []line, err error) {
	c, err := startCluster(ctx, operatortest.Config{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close(ctx)) }()
	work := &sharedWork{sharded: e.sharded, cluster: c}
	e.say("sharding: create %d primaries in %d namespaces", e.sharded.primaries, e.sharded.namespaces)
	if err := work.create(ctx); err != nil {
		return nil, err
	}
	contenders := []contender{{"not shared", e.sharded.primaries, work.by(0)}}
	for _, replicas := range []int{1, 2, 4} {
		contenders = append(contenders, contender{replicasName(replicas), e.sharded.primaries, work.by(replicas)})
	}
	s, err := e.fewRounds().compare(ctx, "sharding", contenders...)
	if err != nil {
		return nil, err
	}
	to := func(what string, u unit, figure func(sample) float64, name, other string) line {
		return line{
			Measure: fmt.Sprintf("%d primaries with a child: %s, %s to %s", e.sharded.primaries, what, name, other), Unit: u,
			Figures: map[string]float64{operatorKit: s.median(name, figure)}, Ratio: s.ratio(name, other, figure),
		}
	}
	one := replicasName(1)
	for _, replicas := range []int{2, 4} {
		name := replicasName(replicas)
		share := 1.15 / float64(replicas)
		lines = append(lines,
			to("heap of each", inBytes, extra(shardHeap), name, one).ratioAtMost(share),
			to("bytes each receives for a change of all", inBytes, extra(shardReceived), name, one),
			to("objects each decodes for a change of all", counted, extra(shardDecoded), name, one),
			to("a change of all, each with "+e.sharded.wait.String()+" of waiting", inMicroseconds, nanoseconds, name, one),
			to("API server's processor time for a change of all", counted, extra(serverSeconds), name, one),
		)
	}
	return append(lines, to("processor time for a change of all", inMicroseconds, processor, one, "not shared").ratioAtMost(1.02)), nil
}

func replicasName(n int) string {
	if n == 1 {
		return "1 replica"
	}
	return strconv.Itoa(n) + " replicas"
}

// create makes the primaries.
func (w *sharedWork) create(ctx context.Context) error {
	for range w.sharded.namespaces {
		name, err := w.namespace(ctx, "sharding")
		if err != nil {
			return err
		}
		w.names = append(w.names, name)
	}
	return inParallel(ctx, 16, w.primaries, func(ctx context.Context, i int) error {
		return w.client.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.names[i%w.sharded.namespaces], Name: fmt.Sprintf("primary-%05d", i), Labels: map[string]string{roleLabel: rolePrimary}},
			Data:       map[string]string{"value": randomText(200)},
		})
	})
}

// change changes all primaries.
func (w *sharedWork) change(ctx context.Context, run string) error {
	return inParallel(ctx, 16, w.primaries, func(ctx context.Context, i int) error {
		primary := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.names[i%w.sharded.namespaces], Name: fmt.Sprintf("primary-%05d", i)}}
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, runAnnotation, run)
		return w.client.Patch(ctx, primary, client.RawPatch(types.MergePatchType, patch))
	})
}

// by has replicas do the work, or one that does not share for 0.
func (w *sharedWork) by(replicas int) func(context.Context, *testing.B) error {
	return func(ctx context.Context, b *testing.B) (err error) {
		ctx, cancel := context.WithCancel(ctx)
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		before := heap()
		s := &storm{run: strconv.FormatInt(w.runs.Add(1), 10), wait: w.wait, seen: map[string]bool{}, ended: newCountdown(w.primaries)}
		each := make([]*shardReplica, max(1, replicas))
		failed := make(chan error, len(each))
		for i := range each {
			if each[i], err = w.replica(i, replicas > 0, s); err != nil {
				return err
			}
			running.Go(func() { failed <- each[i].operator.Run(ctx) })
		}
		share := func(figure func(*shardReplica) int64) float64 {
			sum := int64(0)
			for _, r := range each {
				sum += figure(r)
			}
			return float64(sum) / float64(len(each))
		}
		if err := w.settle(ctx, each, s); err != nil {
			return err
		}
		b.ReportMetric(float64(heap()-before)/float64(len(each)), shardHeap)
		for _, r := range each {
			r.received.Store(0)
			r.decoded.Store(0)
		}
		serverBefore, err := w.serverProcessor(ctx)
		if err != nil {
			return err
		}
		processorBefore := processorTime()
		b.StartTimer()
		err = w.change(ctx, s.run)
		select {
		case <-s.ended.ended:
		case <-ctx.Done():
		case early := <-failed:
			err = errors.Join(err, early, errEndedEarly)
		}
		b.StopTimer()
		b.ReportMetric(float64(processorTime()-processorBefore), processorNanoseconds)
		b.ReportMetric(share(func(r *shardReplica) int64 { return r.received.Load() }), shardReceived)
		b.ReportMetric(share(func(r *shardReplica) int64 { return r.decoded.Load() }), shardDecoded)
		serverAfter, serverErr := w.serverProcessor(ctx)
		b.ReportMetric(serverAfter-serverBefore, serverSeconds)
		return errors.Join(err, serverErr)
	}
}

// settle waits until each replica holds its part, each primary was reconciled, and nothing more happens.
func (w *sharedWork) settle(ctx context.Context, each []*shardReplica, s *storm) error {
	last, since := int64(-1), time.Now()
	return until(ctx, func(context.Context) (bool, error) {
		held, least := 0, w.primaries
		for _, r := range each {
			held += r.primaries.Status().Objects
			least = min(least, r.primaries.Status().Objects)
		}
		if now := s.count.Load() + int64(held); now != last {
			last, since = now, time.Now()
		}
		// Moves of slots come after pauses of as much as a retry period.
		return s.count.Load() >= int64(w.primaries) && held == w.primaries && least >= w.primaries/len(each)/2 && time.Since(since) >= 2*operator.DefaultRetryPeriod, nil
	})
}

// serverProcessor is the processor time of the API server in seconds.
func (w *sharedWork) serverProcessor(ctx context.Context) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.config.Host+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	response, err := w.http.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "process_cpu_seconds_total "); found {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, errors.New("the API server does not tell its processor time")
}

// shardReplica is one of the replicas.
type shardReplica struct {
	operator          *operator.Operator
	primaries         *informer.Kubernetes
	received, decoded atomic.Int64
}

// replica makes one.
func (w *sharedWork) replica(i int, shares bool, s *storm) (*shardReplica, error) {
	logger, err := operatorKitLogger()
	if err != nil {
		return nil, err
	}
	r := &shardReplica{}
	config := rest.CopyConfig(w.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return countingTransport{next, &r.received} })
	d, err := operator.NewDependencies(operator.DependenciesConfig{Name: "sharded", RESTConfig: config, Scheme: scheme.Scheme, Logger: logger, Workers: shardedWorkers})
	if err != nil {
		return nil, err
	}
	r.primaries, err = d.NewSource(&corev1.ConfigMap{}, operator.WithLabels(labels.SelectorFromSet(labels.Set{roleLabel: rolePrimary})), operator.WithTransform(func(obj any) (any, error) {
		r.decoded.Add(1)
		return obj, nil
	}))
	if err != nil {
		return nil, err
	}
	own, err := d.Own(&corev1.ConfigMap{}, &corev1.ConfigMap{})
	if err != nil {
		return nil, err
	}
	children, err := objectresource.New(objectresource.Config[*corev1.ConfigMap]{
		Name: "child", Client: d.Client, Logger: logger, Stores: own.Stores,
		Desired: func(_ context.Context, obj *corev1.ConfigMap) ([]client.Object, error) {
			return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: obj.Namespace, Name: obj.Name + "-child"}, Data: obj.Data}}, nil
		},
	})
	if err != nil {
		return nil, err
	}
	f, err := d.NewFramework(framework.Config{
		Name: "primaries", Source: r.primaries, Watches: own.Watches, DisableFinalizer: true, Resources: []framework.Resource{children, s},
	})
	if err != nil {
		return nil, err
	}
	c := operator.Config{
		Name: "sharded", RESTConfig: d.RESTConfig, Logger: logger, Frameworks: []*framework.Framework{f}, Registry: d.Registry,
	}
	if shares {
		c.Sharding = operator.ShardingConfig{Enabled: true}
		c.LeaderElection = operator.LeaderElectionConfig{
			Enabled: true, Namespace: w.names[0], Name: "sharded-" + s.run, Identity: "replica-" + strconv.Itoa(i),
		}
	}
	r.operator, err = operator.New(c)
	return r, err
}

// runAnnotation is what a storm changes.
const runAnnotation = "example.com/run"

// storm is the resource that waits, for something outside, when a primary was changed in its run.
type storm struct {
	run   string
	wait  time.Duration
	count atomic.Int64

	mu    sync.Mutex
	seen  map[string]bool
	ended *countdown
}

// Name implements framework.Resource.
func (*storm) Name() string { return "storm" }

// EnsureCreated implements framework.Resource.
func (s *storm) EnsureCreated(_ context.Context, obj any) error {
	s.count.Add(1)
	primary := obj.(*corev1.ConfigMap)
	if primary.Annotations[runAnnotation] != s.run {
		return nil
	}
	time.Sleep(s.wait)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.seen[primary.Name] {
		s.seen[primary.Name] = true
		s.ended.one()
	}
	return nil
}

// EnsureDeleted implements framework.Resource.
func (*storm) EnsureDeleted(context.Context, any) error { return nil }

// countingTransport counts what is received.
type countingTransport struct {
	next     http.RoundTripper
	received *atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (t countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err == nil {
		response.Body = countingBody{response.Body, t.received}
	}
	return response, err
}

type countingBody struct {
	io.ReadCloser
	received *atomic.Int64
}

// Read implements io.Reader.
func (b countingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.received.Add(int64(n))
	return n, err
}
