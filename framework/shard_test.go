package framework_test

import (
	"context"
	"slices"
	"sync"
	"testing"

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
}

func newPart(names ...string) *part { return &part{names: names, busy: map[string]int{}} }

func (p *part) owns(key informer.Key) bool { return slices.Contains(p.names, key.Name) }

func (p *part) Owns(key informer.Key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.owns(key)
}

func (p *part) Begin(key informer.Key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	owned := p.owns(key)
	if owned {
		p.busy[key.Name]++
	}
	return owned
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

func TestAFrameworkThatRunsOrIsDrivenCanNotBeShared(t *testing.T) {
	f, _ := sharedFramework(t, newPart(), nil)
	running(t, f)
	operatortest.Eventually(t, "it runs", func() bool { return framework.IsInvalidConfig(f.Share(newPart())) })
	driven := newFramework(t, framework.Config{Name: "driven", Source: informer.NewPush("objects"), Driven: true}, &resource{name: "resource"})
	if err := driven.Share(newPart()); !framework.IsInvalidConfig(err) {
		t.Errorf("want an error for which IsInvalidConfig holds, got %v", err)
	}
}
