package framework_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// part is a shard by the names of objects.
type part struct {
	mu    sync.Mutex
	names []string
	busy  map[string]int
	// next are the names of objects that it is to get.
	next []string
	// given are the names of objects that it gives up.
	given []string
	// refused, if it is set, is called after each Begin that was refused. It must not be changed once the framework runs.
	refused func()
}

func newPart(names ...string) *part { return &part{names: names, busy: map[string]int{}} }

func (p *part) owns(key informer.Key) bool { return slices.Contains(p.names, key.Name) }

func (p *part) Owns(key informer.Key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.owns(key)
}

func (p *part) Expects(key informer.Key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.next, key.Name)
}

func (p *part) Begin(key informer.Key) bool {
	p.mu.Lock()
	owned := p.owns(key)
	if owned {
		p.busy[key.Name]++
	}
	p.mu.Unlock()
	if !owned && p.refused != nil {
		p.refused()
	}
	return owned
}

// Resume implements framework.Shard for what it gives up.
func (p *part) Resume(key informer.Key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	resumed := slices.Contains(p.given, key.Name)
	if resumed {
		p.busy[key.Name]++
	}
	return resumed
}

func (p *part) End(key informer.Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy[key.Name]--
}

func (p *part) works(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy[name] > 0
}

// becomes changes the part, and tells the framework.
func (p *part) becomes(f *framework.Framework, names ...string) {
	p.mu.Lock()
	before := p.names
	p.names = names
	p.mu.Unlock()
	f.Reshare(func(key informer.Key) bool {
		return slices.Contains(names, key.Name) && !slices.Contains(before, key.Name)
	})
}

// sharedFramework is a framework of a source with objects of these names, which reconciles by a function.
func sharedFramework(t *testing.T, p *part, created func(ctx context.Context, obj any) error, names ...string) (*framework.Framework, *informer.Push) {
	t.Helper()
	source := informer.NewPush("configmaps")
	for _, name := range names {
		if err := source.Update(configMap(name)); err != nil {
			t.Fatal(err)
		}
	}
	f := newFramework(t, framework.Config{Name: "shared", Source: source, DisableFinalizer: true}, &resource{name: "resource", created: created})
	if err := f.Share(p); err != nil {
		t.Fatal(err)
	}
	return f, source
}

func TestAFrameworkReconcilesOnlyWhatItsShardHasAndWhatThatGainsIsBacklog(t *testing.T) {
	var done journal
	p := newPart("a")
	f, source := sharedFramework(t, p, func(_ context.Context, obj any) error {
		done.add(obj.(*corev1.ConfigMap).Name)
		return nil
	}, "a", "b", "c")
	running(t, f)
	operatortest.Eventually(t, "a is reconciled", func() bool { return slices.Contains(done.all(), "a") })
	p.becomes(f, "b")
	operatortest.Eventually(t, "b is reconciled", func() bool { return slices.Contains(done.all(), "b") })
	for _, name := range []string{"a", "c", "b"} {
		if err := source.Update(configMap(name, "changed", "yes")); err != nil {
			t.Fatal(err)
		}
	}
	operatortest.Eventually(t, "the change of b is reconciled", func() bool { return len(done.all()) >= 3 })
	operatortest.Eventually(t, "nothing waits", func() bool { s := f.Status(); return s.Fresh+s.Backlog+s.Active == 0 })
	if got, want := done.all(), []string{"a", "b", "b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWhatAShardHasLostIsForgottenAlsoWhenItsReconciliationWasUnderWay(t *testing.T) {
	var attempts journal
	started, release := make(chan struct{}), make(chan struct{})
	p := newPart("failing", "slow")
	f, _ := sharedFramework(t, p, func(_ context.Context, obj any) error {
		name := obj.(*corev1.ConfigMap).Name
		attempts.add(name)
		if name == "slow" {
			close(started)
			<-release
		}
		return errBoom
	}, "failing", "slow")
	running(t, f)
	operatortest.Eventually(t, "one fails", func() bool { _, fails := f.FailingSince(keyOf("failing")); return fails })
	<-started
	p.becomes(f)
	if _, fails := f.FailingSince(keyOf("failing")); fails {
		t.Error("an object of another replica counts as failing")
	}
	if !p.works("slow") {
		t.Error("a reconciliation is under way, and the shard does not know")
	}
	close(release)
	operatortest.Eventually(t, "the reconciliation has ended", func() bool { return !p.works("slow") })
	if s := f.Status(); s.Failing+s.Retrying != 0 {
		t.Errorf("%d objects of other replicas count as failing, %d are tried again", s.Failing, s.Retrying)
	}
}

func TestWhatIsGoneBeforeItsShardGetsItIsProcessedThen(t *testing.T) {
	var created, deleted journal
	record := func(in *journal) func(context.Context, any) error {
		return func(_ context.Context, obj any) error {
			in.add(obj.(*corev1.ConfigMap).Name)
			return nil
		}
	}
	p := newPart("own")
	p.next = []string{"next"}
	source := informer.NewPush("configmaps")
	f := newFramework(t, framework.Config{Name: "shared", Source: source, DisableFinalizer: true}, &resource{name: "resource", created: record(&created), deleted: record(&deleted)})
	if err := errors.Join(f.Share(p), source.Update(configMap("own"))); err != nil {
		t.Fatal(err)
	}
	running(t, f)
	operatortest.Eventually(t, "it works", func() bool { return slices.Contains(created.all(), "own") })
	for _, name := range []string{"next", "other"} {
		if err := errors.Join(source.Update(configMap(name)), source.Delete(configMap(name))); err != nil {
			t.Fatal(err)
		}
	}
	operatortest.Eventually(t, "nothing waits", func() bool { s := f.Status(); return s.Fresh+s.Backlog+s.Active == 0 })
	p.becomes(f)
	p.becomes(f, "next", "other")
	operatortest.Eventually(t, "the deletion is processed", func() bool { return slices.Equal(deleted.all(), []string{"next"}) })
}

func TestADeletionThatIsRefusedJustBeforeItsShardGetsItIsProcessed(t *testing.T) {
	var deleted journal
	p := newPart()
	p.next = []string{"next"}
	source := informer.NewPush("configmaps")
	f := newFramework(t, framework.Config{Name: "shared", Source: source, DisableFinalizer: true}, &resource{name: "resource", deleted: func(_ context.Context, obj any) error {
		deleted.add(obj.(*corev1.ConfigMap).Name)
		return nil
	}})
	p.refused = sync.OnceFunc(func() {
		p.mu.Lock()
		p.next = nil
		p.mu.Unlock()
		p.becomes(f, "next")
	})
	if err := f.Share(p); err != nil {
		t.Fatal(err)
	}
	running(t, f)
	<-f.Subscribed()
	if err := source.Delete(configMap("next")); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the deletion is processed", func() bool { return slices.Equal(deleted.all(), []string{"next"}) })
}

func TestDeletionsAreFinishedToldAndPassedOver(t *testing.T) {
	var deleted journal
	fails := make(chan bool, 1)
	p := newPart("own", "other")
	source := informer.NewPush("configmaps")
	f := newFramework(t, framework.Config{Name: "shared", Source: source, DisableFinalizer: true, BackOffFactory: everyMinute}, &resource{name: "resource", deleted: func(_ context.Context, obj any) error {
		select {
		case <-fails:
			return errBoom
		default:
			deleted.add(obj.(*corev1.ConfigMap).Name)
			return nil
		}
	}})
	own, other := configMap("own"), configMap("other")
	own.UID, other.UID = "uid of own", "uid of other"
	if err := errors.Join(f.Share(p), source.Update(own), source.Update(other)); err != nil {
		t.Fatal(err)
	}
	if !f.HandsOver() {
		t.Error("without finalizers there is nothing to hand over")
	}
	running(t, f)
	<-f.Subscribed()
	all := func(informer.Key) bool { return true }
	if err := errors.Join(f.CatchUp(t.Context(), all), f.FinishDeletions(t.Context(), all)); err != nil {
		t.Error(err)
	}
	// What is given up while its deletion is tried again.
	fails <- true
	if err := source.Delete(own); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "it has failed", func() bool { _, fails := f.FailingSince(keyOf("own")); return fails })
	p.mu.Lock()
	p.next, p.given = []string{"own", "other"}, []string{"own", "other"}
	p.mu.Unlock()
	p.becomes(f)
	if err := f.FinishDeletions(t.Context(), all); err != nil {
		t.Error(err)
	}
	want := []framework.Deletion{{Key: keyOf("own"), UID: "uid of own"}}
	if got := f.ProcessedDeletions(all, time.Now().Add(-time.Hour)); !slices.Equal(got, want) || !slices.Equal(deleted.all(), []string{"own"}) {
		t.Errorf("deletions of %q were processed, and %v are told", deleted.all(), got)
	}
	none := func(informer.Key) bool { return false }
	if got := append(f.ProcessedDeletions(none, time.Time{}), f.ProcessedDeletions(all, time.Now().Add(time.Hour))...); len(got) > 0 {
		t.Errorf("%v are told of others, and of later", got)
	}
	// What somebody else has processed, and whose end is shown later.
	f.PassOverDeletions([]framework.Deletion{{Key: keyOf("other"), UID: "uid of other"}})
	if err := source.Delete(other); err != nil {
		t.Fatal(err)
	}
	p.becomes(f, "own", "other")
	operatortest.Eventually(t, "nothing waits", func() bool { s := f.Status(); return s.Fresh+s.Backlog+s.Active == 0 })
	if got := deleted.all(); !slices.Equal(got, []string{"own"}) {
		t.Errorf("deletions of %q were processed", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.FinishDeletions(ctx, all); err != nil {
		t.Errorf("nothing is left, and %v", err)
	}
}

func TestAFrameworkThatRunsOrIsDrivenCanNotBeShared(t *testing.T) {
	f, _ := sharedFramework(t, newPart(), nil)
	running(t, f)
	operatortest.Eventually(t, "it runs", func() bool { return framework.IsInvalidConfig(f.Share(newPart())) })
	driven := newFramework(t, framework.Config{Name: "driven", Source: informer.NewPush("objects"), Driven: true}, &resource{name: "resource"})
	if err := driven.Share(newPart()); !framework.IsInvalidConfig(err) {
		t.Errorf("want an error for which IsInvalidConfig holds, got %v", err)
	}
}
