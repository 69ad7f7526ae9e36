package informer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/operatorkit/operatorkit/informer"
)

func TestPushTurnsCallsIntoEvents(t *testing.T) {
	x1, x2, x3 := configMap("a", "x", "u1", "1"), configMap("a", "x", "u1", "2"), configMap("a", "x", "u1", "3")
	y4 := configMap("a", "x", "u2", "4")
	for name, test := range map[string]struct {
		do   func(p *informer.Push) error
		want []string
	}{
		"first update": {
			func(p *informer.Push) error { return p.Update(x1) },
			[]string{"added a/x 1"},
		},
		"later update": {
			func(p *informer.Push) error { return errors.Join(p.Update(x1), p.Update(x2)) },
			[]string{"added a/x 1", "updated a/x 2 was 1"},
		},
		"the resync of the other informer": {
			func(p *informer.Push) error { return errors.Join(p.Update(x1), p.Update(x1)) },
			[]string{"added a/x 1", "updated a/x 1 was 1 backlog"},
		},
		"delete": {
			func(p *informer.Push) error { return errors.Join(p.Update(x1), p.Delete(x2)) },
			[]string{"added a/x 1", "deleted a/x 2"},
		},
		"delete with a tombstone": {
			func(p *informer.Push) error {
				return errors.Join(p.Update(x1), p.Delete(cache.DeletedFinalStateUnknown{Key: "a/x", Obj: x2}))
			},
			[]string{"added a/x 1", "deleted a/x 2"},
		},
		"delete of what was never told": {
			func(p *informer.Push) error { return p.Delete(x2) },
			[]string{"deleted a/x 2"},
		},
		"delete that comes after the next object of the name": {
			func(p *informer.Push) error {
				return errors.Join(p.Update(x1), p.Update(y4), p.Delete(x2), p.Update(y4))
			},
			[]string{"added a/x 1", "deleted a/x 1", "added a/x 4", "updated a/x 4 was 4 backlog"},
		},
		"delete of what was never told, after the next object of the name": {
			func(p *informer.Push) error {
				return errors.Join(p.Update(y4), p.Delete(x2), p.Delete(x2), p.Update(y4))
			},
			[]string{"added a/x 4", "deleted a/x 2", "updated a/x 4 was 4 backlog"},
		},
		"update from before the delete": {
			func(p *informer.Push) error { return errors.Join(p.Update(x1), p.Delete(x3), p.Update(x2)) },
			[]string{"added a/x 1", "deleted a/x 3"},
		},
		"first update from before the delete": {
			func(p *informer.Push) error { return errors.Join(p.Delete(x3), p.Update(x2)) },
			[]string{"deleted a/x 3"},
		},
		"what has left the other informer's selection and is back": {
			func(p *informer.Push) error { return errors.Join(p.Update(x1), p.Delete(x2), p.Update(x3)) },
			[]string{"added a/x 1", "deleted a/x 2", "added a/x 3"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := informer.NewPush("test")
			var events recorder
			p.Subscribe(events.handle)
			if err := test.do(p); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, events.take()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPushIsSyncedAtOnceAndRunsUntilTheContextEnds(t *testing.T) {
	p := informer.NewPush("test")
	if err := p.WaitForSync(t.Context()); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Run(ctx); err != nil {
		t.Error(err)
	}
}

func TestPushRefusesWhatHasNoName(t *testing.T) {
	p := informer.NewPush("test")
	if err := p.Update(&corev1.ConfigMap{}); !errors.Is(err, informer.ErrNoName) {
		t.Errorf("Update: %v, want ErrNoName", err)
	}
	if err := p.Delete(&corev1.ConfigMap{}); !errors.Is(err, informer.ErrNoName) {
		t.Errorf("Delete: %v, want ErrNoName", err)
	}
	if err := p.Update(7); err == nil {
		t.Error("a number was accepted without a key function")
	}
	if err := p.Delete(cache.DeletedFinalStateUnknown{Key: "a/x"}); err == nil {
		t.Error("a tombstone without an object was accepted")
	}
}

func TestPushNamesObjectsByTheKeyFunction(t *testing.T) {
	p := informer.NewPush("numbers", informer.WithKeyFunc(func(obj any) (informer.Key, error) {
		return informer.Key{Name: fmt.Sprint("n", obj)}, nil
	}))
	if err := p.Update(7); err != nil {
		t.Fatal(err)
	}
	got, exists, err := p.Get(informer.Key{Name: "n7"})
	if got != 7 || !exists || err != nil {
		t.Errorf("Get = %v, %t, %v", got, exists, err)
	}
}

func TestR4APanicOfWhatNamesAnObjectIsAnError(t *testing.T) {
	source := informer.NewPush("objects", informer.WithKeyFunc(func(any) (informer.Key, error) { panic("no name") }))
	for name, err := range map[string]error{"Update": source.Update(1), "Delete": source.Delete(1)} {
		if err == nil || !strings.Contains(err.Error(), "its key: panic: value of type string in ") || strings.Contains(err.Error(), "no name") {
			t.Errorf("%s: got error %v, want that of the panic, without what it quotes", name, err)
		}
	}
}

func TestR4APanicOfAHandlerEndsNothingAndIsTold(t *testing.T) {
	source := informer.NewPush("objects")
	var heard []string
	source.Subscribe(func(informer.Event) { panic("in a handler") })
	source.Subscribe(func(e informer.Event) { heard = append(heard, e.Key.Name) })
	for _, name := range []string{"a", "b"} {
		if err := source.Update(named("default", name)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"a", "b"}, heard); diff != "" {
		t.Errorf("heard (-want +got):\n%s", diff)
	}
	if told := source.Status().Unusable; told == nil || !strings.Contains(told.Error(), "panic: value of type string in ") || strings.Contains(told.Error(), "in a handler") {
		t.Errorf("the status tells %v, want the panic, without what it quotes", told)
	}
}

func TestADeletionThatNobodyHearsIsKeptForWhoSubscribesNext(t *testing.T) {
	source := informer.NewPush("objects")
	listen := func() (heard []string) {
		source.Subscribe(func(e informer.Event) { heard = append(heard, e.Type.String()+" "+e.Key.Name) })()
		return heard
	}
	for _, obj := range []any{named("default", "a"), named("default", "b")} {
		if err := source.Delete(obj); err != nil {
			t.Fatal(err)
		}
	}
	if err := source.Update(named("default", "b")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"deleted a", "added b"}, listen()); diff != "" {
		t.Errorf("the first one hears (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"added b"}, listen()); diff != "" {
		t.Errorf("the second one hears (-want +got):\n%s", diff)
	}
}
