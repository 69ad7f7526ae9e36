package framework_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/access"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// part is a shard by the names of objects.
type part struct {
	mu    sync.Mutex
	names []string
	// held are the names that it holds without owning them.
	held []string
	busy map[string]int
}

func newPart(names ...string) *part { return &part{names: names, busy: map[string]int{}} }

func (p *part) owns(key informer.Key) bool { return slices.Contains(p.names, key.Name) }

func (p *part) Owns(key informer.Key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.owns(key)
}

func (p *part) Holds(key informer.Key) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.owns(key) || slices.Contains(p.held, key.Name)
}

func (p *part) Begin(key informer.Key, gone bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	owned := p.owns(key) || gone && slices.Contains(p.held, key.Name)
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
	before := p.names
	access.EngineOf(f).Gain(func(key informer.Key) bool {
		return slices.Contains(names, key.Name) && !slices.Contains(before, key.Name)
	})
	p.mu.Lock()
	p.names, p.held = names, nil
	p.mu.Unlock()
	access.EngineOf(f).Reshare(nil)
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
	if err := access.EngineOf(f).Share(p); err != nil {
		t.Fatal(err)
	}
	return f, source
}

func TestR11AKeyThatWaitsAlreadyIsNotReconciledWhileItsObjectIsGained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done journal
		p := newPart("a")
		f, _ := sharedFramework(t, p, func(_ context.Context, obj any) error {
			done.add(obj.(*corev1.ConfigMap).Name)
			return nil
		}, "a", "b")
		defer running(t, f)()
		synctest.Wait()
		access.EngineOf(f).Gain(func(key informer.Key) bool { return key.Name == "b" })
		p.mu.Lock()
		p.names = []string{"a", "b"}
		p.mu.Unlock()
		f.Enqueue(informer.Key{Namespace: "default", Name: "b"})
		synctest.Wait()
		if diff := cmp.Diff([]string{"a"}, done.all()); diff != "" {
			t.Errorf("reconciled before the source was compared (-want +got):\n%s", diff)
		}
		access.EngineOf(f).Reshare(nil)
		synctest.Wait()
		if diff := cmp.Diff([]string{"a", "b"}, done.all()); diff != "" {
			t.Errorf("reconciled (-want +got):\n%s", diff)
		}
	})
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
	operatortest.Eventually(t, "one fails", func() bool { _, fails := access.EngineOf(f).FailingSince(keyOf("failing")); return fails })
	<-started
	p.becomes(f)
	if _, fails := access.EngineOf(f).FailingSince(keyOf("failing")); fails {
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
	operatortest.Eventually(t, "it runs", func() bool { return framework.IsInvalidConfig(access.EngineOf(f).Share(newPart())) })
	driven := newFramework(t, framework.Config{Name: "driven", Source: informer.NewPush("objects"), Driven: true}, &resource{name: "resource"})
	if err := access.EngineOf(driven).Share(newPart()); !framework.IsInvalidConfig(err) {
		t.Errorf("want an error for which IsInvalidConfig holds, got %v", err)
	}
}

func TestADeletionIsProcessedBeforeItsObjectIsPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls journal
		p := newPart("a")
		source := informer.NewPush("configmaps")
		put(t, source, inLife("a", "a", "1"))
		var failing atomic.Bool
		failing.Store(true)
		f := newFramework(t, framework.Config{Source: source, DisableFinalizer: true, BackOffFactory: everyMinute}, &resource{
			name: "resource",
			created: func(_ context.Context, obj any) error {
				calls.add("created " + obj.(*corev1.ConfigMap).Name)
				return nil
			},
			deleted: func(_ context.Context, obj any) error {
				if failing.Load() {
					return errBoom
				}
				calls.add("deleted " + obj.(*corev1.ConfigMap).Name)
				return nil
			},
		})
		if err := access.EngineOf(f).Share(p); err != nil {
			t.Fatal(err)
		}
		defer running(t, f)()
		synctest.Wait()
		remove(t, source, inLife("a", "a", "1"))
		synctest.Wait()
		p.mu.Lock()
		p.names, p.held = nil, []string{"a"}
		p.mu.Unlock()
		all := func(informer.Key) bool { return true }
		access.EngineOf(f).Reshare(all)
		put(t, source, inLife("a", "a again", "2"))
		failing.Store(false)
		if !access.EngineOf(f).HasUnprocessed(all) {
			t.Error("no deletion is to be processed")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"created a", "deleted a"}, calls.all()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if access.EngineOf(f).HasUnprocessed(all) {
			t.Error("deletions are still to be processed")
		}
	})
}

func TestAnObjectIsNotPassedOnWhileTheEventOfItsDeletionIsDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, source, calls := newPart("a"), newComparing(), &journal{}
		put(t, source.Push, inLife("a", "a", "1"))
		source.keep("a", inLife("a", "a", "1"))
		f := newFramework(t, framework.Config{Source: source, DisableFinalizer: true}, noted(calls))
		if err := access.EngineOf(f).Share(p); err != nil {
			t.Fatal(err)
		}
		all := func(informer.Key) bool { return true }
		asked := false
		source.Subscribe(func(e informer.Event) {
			if e.Type == informer.Deleted {
				asked = true
				if !access.EngineOf(f).HasUnprocessed(all) {
					t.Error("no deletion is to be processed while the event of one is delivered")
				}
			}
		})
		defer running(t, f)()
		synctest.Wait()
		source.keep("a", nil)
		p.mu.Lock()
		p.names, p.held = nil, []string{"a"}
		p.mu.Unlock()
		access.EngineOf(f).Reshare(all)
		synctest.Wait()
		if !access.EngineOf(f).HasUnprocessed(all) {
			t.Error("no deletion is to be processed while the source has yet to show one")
		}
		remove(t, source.Push, inLife("a", "a", "1"))
		synctest.Wait()
		if access.EngineOf(f).HasUnprocessed(all) || !asked {
			t.Errorf("the deletion is still to be processed, delivered: %t", asked)
		}
		if diff := cmp.Diff([]string{"created a a/1", "deleted a a/1"}, calls.all()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

func TestADeletionThatCameBeforeItsObjectWasGainedIsProcessed(t *testing.T) {
	for name, held := range map[string][]string{"held": {"a"}, "held by another one": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := &journal{}
				p := newPart("b")
				p.held = held
				source := informer.NewPush("configmaps")
				put(t, source, inLife("a", "a", "1"))
				f := newFramework(t, framework.Config{Source: source, DisableFinalizer: true}, noted(calls))
				if err := access.EngineOf(f).Share(p); err != nil {
					t.Fatal(err)
				}
				defer running(t, f)()
				synctest.Wait()
				remove(t, source, inLife("a", "a", "1"))
				synctest.Wait()
				p.becomes(f, "a", "b")
				time.Sleep(time.Minute)
				synctest.Wait()
				var want []string
				if held != nil {
					want = []string{"deleted a a/1"}
				}
				if diff := cmp.Diff(want, calls.all()); diff != "" {
					t.Errorf("calls (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestADeletionThatItsSourceKeepsIsProcessedByWhoGainsTheObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &journal{}
		p := newPart("b")
		push := informer.NewPush("configmaps")
		kept := map[informer.Key]any{keyOf("a"): inLife("a", "a", "1")}
		source := &keeping{removing{push, func(obj *corev1.ConfigMap) error {
			calls.add("removed " + obj.Name)
			return nil
		}}, kept}
		f := newFramework(t, framework.Config{Source: source}, noted(calls))
		if err := access.EngineOf(f).Share(p); err != nil {
			t.Fatal(err)
		}
		defer running(t, f)()
		synctest.Wait()
		p.becomes(f, "a", "b")
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"deleted a a/1", "removed a"}, calls.all()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// keeping is a source that keeps deletions until they are removed.
type keeping struct {
	removing
	kept map[informer.Key]any
}

func (k *keeping) Deletions() map[informer.Key]any { return k.kept }
