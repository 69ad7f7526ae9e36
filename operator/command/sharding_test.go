package command_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// The labels of originals and of their copies. Their values are those of the variable GALLERY.
const (
	originalLabel = "test.operatorkit.io/original"
	copyLabel     = "test.operatorkit.io/copy"
)

// copyist is an operator that makes a copy of each original, in two writes: it says that it begins, and then what it has copied.
func copyist() command.Config {
	return command.Config{
		Name: "copyist", Version: os.Getenv("VERSION"),
		New: func(_ context.Context, deps *operator.Dependencies) ([]*framework.Framework, error) {
			source, err := deps.NewSource(&corev1.ConfigMap{}, operator.WithLabels(labels.SelectorFromSet(labels.Set{originalLabel: os.Getenv("GALLERY")})))
			if err != nil {
				return nil, err
			}
			f, err := deps.NewFramework(framework.Config{Name: "originals", Source: source, Resources: []framework.Resource{&copier{deps.Client}}})
			return []*framework.Framework{f}, err
		},
	}
}

// copyTime is how long a copy takes.
const copyTime = 20 * time.Millisecond

type copier struct{ client client.Client }

func (c *copier) Name() string { return "copier" }

func (c *copier) EnsureCreated(ctx context.Context, obj any) error {
	original := obj.(*corev1.ConfigMap)
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: original.Namespace, Name: "copy-of-" + original.Name, Labels: map[string]string{copyLabel: os.Getenv("GALLERY")},
	}}
	write := func(motif string) error {
		made.Data = map[string]string{"by": strconv.Itoa(os.Getpid()), "motif": motif}
		if made.ResourceVersion == "" {
			return c.client.Create(ctx, made)
		}
		return c.client.Update(ctx, made)
	}
	if err := c.client.Get(ctx, client.ObjectKeyFromObject(made), made); err == nil && made.Data["motif"] == original.Data["motif"] {
		return nil
	} else if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err := write("begun"); err != nil {
		return err
	}
	time.Sleep(copyTime)
	return write(original.Data["motif"])
}

func (c *copier) EnsureDeleted(ctx context.Context, obj any) error {
	original := obj.(*corev1.ConfigMap)
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: original.Namespace, Name: "copy-of-" + original.Name}}
	return client.IgnoreNotFound(c.client.Delete(ctx, made))
}

// gallery has originals in many namespaces, which change all the time, and copyists, each a process.
type gallery struct {
	t          *testing.T
	instance   *operatortest.Instance
	client     client.WithWatch
	namespaces []string
	perSpace   int
	// name is that of the labels, and the namespace of the Leases.
	name string
	// version is that of the copyists that are started.
	version string

	mu sync.Mutex
	// motifs are what the originals show, and history is what was written to each copy, in the order of the API server.
	motifs  map[client.ObjectKey]string
	history map[client.ObjectKey][]stroke
	// disturbed are the processes that were killed, paused or cut off.
	disturbed map[string]bool
	// painted is since when originals wait for a copy of what they show, and longest is what one has waited since it was told last.
	painted map[client.ObjectKey]time.Time
	longest time.Duration
}

// stroke is a write of a copy.
type stroke struct {
	by, motif string
	// gap tells that others before it may be missing: the API server was away.
	gap bool
}

func newGallery(t *testing.T, namespaces, perSpace int, options ...operatortest.Option) *gallery {
	t.Helper()
	instance := operatortest.Start(t, options...)
	g := &gallery{
		t: t, instance: instance, client: operatortest.NewClient(t, instance.RESTConfig(), nil), perSpace: perSpace, name: instance.Namespace(t),
		motifs: map[client.ObjectKey]string{}, history: map[client.ObjectKey][]stroke{}, disturbed: map[string]bool{},
		painted: map[client.ObjectKey]time.Time{},
	}
	for range namespaces {
		g.namespaces = append(g.namespaces, instance.Namespace(t))
	}
	for _, namespace := range g.namespaces {
		for i := range perSpace {
			key := client.ObjectKey{Namespace: namespace, Name: fmt.Sprint("original-", i)}
			original := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{originalLabel: g.name}},
				Data:       map[string]string{"motif": "first"},
			}
			if err := g.client.Create(t.Context(), original); err != nil {
				t.Fatal(err)
			}
			g.motifs[key] = "first"
		}
	}
	g.record()
	return g
}

// record keeps what the API server says of the copies, until the test ends.
func (g *gallery) record() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			// A server that is away is asked again, and what was written meanwhile is as its list says.
			list := &corev1.ConfigMapList{}
			if err := g.client.List(ctx, list, client.MatchingLabels{copyLabel: g.name}); err != nil {
				time.Sleep(100 * time.Millisecond)
				continue
			}
			for i := range list.Items {
				g.stroke(&list.Items[i], true)
			}
			newer := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}}
			w, err := g.client.Watch(ctx, &corev1.ConfigMapList{}, client.MatchingLabels{copyLabel: g.name}, newer)
			if err != nil {
				continue
			}
			for e := range w.ResultChan() {
				if made, ok := e.Object.(*corev1.ConfigMap); ok && e.Type != watch.Deleted {
					g.stroke(made, false)
				}
			}
		}
	}()
	g.t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// stroke notes how a copy is now.
func (g *gallery) stroke(made *corev1.ConfigMap, listed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key, next := client.ObjectKeyFromObject(made), stroke{made.Data["by"], made.Data["motif"], listed}
	strokes := g.history[key]
	if listed && len(strokes) > 0 && strokes[len(strokes)-1].by == next.by && strokes[len(strokes)-1].motif == next.motif {
		return
	}
	g.history[key] = append(strokes, next)
	original := originalOf(key)
	if at, ok := g.painted[original]; ok && next.motif == g.motifs[original] {
		g.longest = max(g.longest, time.Since(at))
		delete(g.painted, original)
	}
}

// originalOf returns what a copy is of.
func originalOf(made client.ObjectKey) client.ObjectKey {
	return client.ObjectKey{Namespace: made.Namespace, Name: strings.TrimPrefix(made.Name, "copy-of-")}
}

// start starts a copyist, which ends with the test.
func (g *gallery) start(args ...string) *operatortest.Replica {
	g.t.Helper()
	return operatortest.StartReplica(g.t, operatortest.ReplicaConfig{
		Path: "copyist", Config: g.instance.RESTConfig(), Env: []string{"GALLERY=" + g.name, "VERSION=" + g.version},
		Args: append(append([]string{
			"run", "--listen-address", "", "--inspector-address", "", "--leader-election-namespace", g.name, "--log-format", "text",
		}, shortLease...), args...),
	})
}

// change changes all originals until stop is called.
func (g *gallery) change() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for round := 0; ctx.Err() == nil; round++ {
			for _, key := range g.originals() {
				// A change whose answer nobody waits for would be one of which nobody knows.
				g.paint(context.WithoutCancel(ctx), key, fmt.Sprint("round-", round))
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	g.t.Cleanup(stop)
	return stop
}

// paint changes one original.
func (g *gallery) paint(ctx context.Context, key client.ObjectKey, motif string) {
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"motif":%q}}`, motif))
	err := g.client.Patch(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}, patch)
	switch {
	case err == nil:
		g.mu.Lock()
		g.motifs[key] = motif
		if _, waits := g.painted[key]; !waits {
			g.painted[key] = time.Now()
		}
		g.mu.Unlock()
	case !apierrors.IsTooManyRequests(err):
		g.t.Errorf("change %s: %v", key, err)
	}
}

func (g *gallery) originals() []client.ObjectKey {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.SortedFunc(maps.Keys(g.motifs), func(a, b client.ObjectKey) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Namespace, b.Namespace))
	})
}

// mark returns how many strokes there are of each copy by now.
func (g *gallery) mark() map[client.ObjectKey]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	marks := map[client.ObjectKey]int{}
	for key, strokes := range g.history {
		marks[key] = len(strokes)
	}
	return marks
}

// worked returns an error unless every copy was written since the marks, and each of the processes, and nobody else, wrote last to some.
func (g *gallery) worked(since map[client.ObjectKey]int, processes ...*operatortest.Replica) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	last := map[string]int{}
	for key := range g.motifs {
		made := client.ObjectKey{Namespace: key.Namespace, Name: "copy-of-" + key.Name}
		strokes := g.history[made]
		if len(strokes) <= since[made] {
			return fmt.Errorf("%s was not written", made)
		}
		last[strokes[len(strokes)-1].by]++
	}
	for _, p := range processes {
		by := strconv.Itoa(p.Pid())
		if last[by] == 0 {
			return fmt.Errorf("process %s wrote nothing last: %v", by, last)
		}
		delete(last, by)
	}
	if len(last) > 0 {
		return fmt.Errorf("others wrote too: %v", last)
	}
	return nil
}

// sharedBy waits until exactly these processes work, while the originals change.
func (g *gallery) sharedBy(what string, processes ...*operatortest.Replica) {
	g.t.Helper()
	since := g.mark()
	operatortest.Eventually(g.t, what, func() error { return g.worked(since, processes...) })
}

// copied returns an error unless each copy is as its original, and there is one for each.
func (g *gallery) copied() error {
	list := &corev1.ConfigMapList{}
	if err := g.client.List(g.t.Context(), list, client.MatchingLabels{copyLabel: g.name}); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(list.Items) != len(g.motifs) {
		return fmt.Errorf("there are %d copies of %d originals", len(list.Items), len(g.motifs))
	}
	for _, made := range list.Items {
		if got, want := made.Data["motif"], g.motifs[originalOf(client.ObjectKeyFromObject(&made))]; got != want {
			return fmt.Errorf("%s/%s is %q, the original %q", made.Namespace, made.Name, got, want)
		}
	}
	return nil
}

// interleaved returns what two replicas did at once, by the API server's record: a copy that was begun is ended by who began it before
// anybody else writes, unless he was killed, paused or cut off, who never goes on with it.
func (g *gallery) interleaved() (faults []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for key, strokes := range g.history {
		for i, s := range strokes {
			var before stroke
			if i > 0 {
				before = strokes[i-1]
			}
			begun := before.motif == "begun"
			switch {
			case s.gap:
			case s.motif != "begun" && (!begun || before.by != s.by):
				faults = append(faults, fmt.Sprintf("%s: %s ends what %s was at", key, s.by, before.by))
			case s.motif == "begun" && begun && before.by != s.by && !g.disturbed[before.by]:
				faults = append(faults, fmt.Sprintf("%s: %s begins while %s is at it", key, s.by, before.by))
			}
		}
	}
	return faults
}

// disturb notes that a process is about to be killed, paused or cut off.
func (g *gallery) disturb(p *operatortest.Replica) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.disturbed[strconv.Itoa(p.Pid())] = true
}

// leaves has processes end at the same time, and waits until they have.
func (g *gallery) leaves(processes ...*operatortest.Replica) {
	g.t.Helper()
	for _, p := range processes {
		p.Signal(syscall.SIGTERM)
	}
	for _, p := range processes {
		if code := p.Wait(); code != 0 {
			g.t.Errorf("process %d ended with %d:\n%s", p.Pid(), code, p.Log())
		}
	}
}

// ends lets everything be copied, and looks at the record.
func (g *gallery) ends(stopChanges func()) {
	g.t.Helper()
	stopChanges()
	operatortest.Eventually(g.t, "each original is copied", g.copied)
	for _, fault := range g.interleaved() {
		g.t.Error(fault)
	}
}

func TestReplicasThatShareWorkAreKilledAndPausedAndNoChangeIsLostAndNoTwoWriteAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it waits for leases to run out; package operator has replicas that come and go")
	}
	g := newGallery(t, 24, 4)
	stop := g.change()
	a := g.start("--sharding")
	g.sharedBy("a works alone", a)
	b, c := g.start("--sharding"), g.start("--sharding")
	g.sharedBy("three share the work", a, b, c)

	g.disturb(b)
	b.Signal(syscall.SIGKILL)
	g.sharedBy("two have taken over from one that was killed", a, c)

	d := g.start("--sharding")
	g.sharedBy("a new one has its part", a, c, d)

	g.leaves(c)
	g.sharedBy("two have taken over from one that has left", a, d)

	// The one that leads.
	g.disturb(a)
	since := g.mark()
	pause := a.PausedUntil("one has taken over from the leader, which is paused", func() error { return g.worked(since, d) }, time.Minute)
	if code := a.Wait(); code != command.ExitFailure {
		t.Errorf("a ended with %d, want %d", code, command.ExitFailure)
	}
	for _, e := range pause.Changed {
		t.Errorf("%s of a was carried out after the pause", e.Request)
	}
	g.ends(stop)
}

func TestShardingBeginsWhenAReplicaWithoutItHasEndedAndTheWayBackIsTheSame(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it waits for leases to run out")
	}
	g := newGallery(t, 12, 2)
	stop := g.change()
	former := g.start("--leader-elect")
	g.sharedBy("the replica without sharding works", former)
	a, b := g.start("--sharding"), g.start("--sharding")
	operatortest.Eventually(t, "those with sharding wait", func() bool {
		waits := func(e operatortest.Exchange) bool { return operatortest.Leases(e.Request) && e.Name == "copyist" }
		return slices.ContainsFunc(a.Requests(), waits) && slices.ContainsFunc(b.Requests(), waits)
	})
	g.sharedBy("the replica without sharding still works alone", former)
	g.leaves(former)
	g.sharedBy("two share the work", a, b)

	back := g.start("--leader-elect")
	a.Signal(syscall.SIGTERM)
	g.sharedBy("the one with sharding works alone", b)
	b.Signal(syscall.SIGTERM)
	g.sharedBy("the one without works again", back)
	g.ends(stop)
}
