package framework_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

func TestWatchedObjectReconcilesThePrimaryBeforeAndAfterItsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		primaries, secondaries := informer.NewPush("primaries"), informer.NewPush("secondaries")
		calls := &journal{}
		f := newFramework(t, framework.Config{Source: primaries, Watches: []framework.Watch{{
			Source: secondaries,
			Map: func(_ context.Context, obj any) []informer.Key {
				owner := obj.(*corev1.ConfigMap).Data["owner"]
				if owner == "panic" {
					panic("bad map function")
				}
				return []informer.Key{keyOf(owner)}
			},
		}}}, &resource{name: "r", created: func(_ context.Context, obj any) error {
			calls.add(obj.(*corev1.ConfigMap).Name)
			return nil
		}})
		defer running(t, f)()
		step := func(do func(), want ...string) {
			t.Helper()
			calls.entries = nil
			do()
			synctest.Wait()
			got := calls.all()
			if len(got) == 2 && got[0] > got[1] {
				got[0], got[1] = got[1], got[0]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("reconciled (-want +got):\n%s", diff)
			}
		}
		step(func() { put(t, primaries, configMap("a")); put(t, primaries, configMap("b")) }, "a", "b")
		step(func() { put(t, secondaries, configMap("s", "owner", "a")) }, "a")
		step(func() { put(t, secondaries, configMap("s", "owner", "b")) }, "a", "b")
		step(func() { remove(t, secondaries, configMap("s", "owner", "b")) }, "b")
		step(func() { put(t, secondaries, configMap("s", "owner", "panic")) })
		step(func() { put(t, secondaries, configMap("s", "owner", "nobody")) })
		step(func() { put(t, secondaries, configMap("t", "owner", "a")) }, "a")
	})
}

// hooked is a source that calls a function right before somebody subscribes.
type hooked struct {
	*informer.Push
	before func()
}

func (h *hooked) Subscribe(handler informer.Handler) func() {
	h.before()
	return h.Push.Subscribe(handler)
}

func TestChangeOfAWatchedObjectBeforeTheFirstReconciliationIsNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		watched := &hooked{Push: informer.NewPush("watched")}
		watched.before = func() {
			synctest.Wait() // the primary would have been reconciled
			put(t, watched.Push, configMap("w", "state", "new"))
		}
		put(t, watched.Push, configMap("w", "state", "old"))
		source := informer.NewPush("objects")
		put(t, source, configMap("a"))
		seen := &journal{}
		f := newFramework(t, framework.Config{Source: source, Watches: []framework.Watch{
			{Source: watched, Map: func(context.Context, any) []informer.Key { return []informer.Key{keyOf("a")} }},
		}}, &resource{name: "r", created: func(context.Context, any) error {
			obj, _, err := watched.Get(keyOf("w"))
			seen.add(obj.(*corev1.ConfigMap).Data["state"])
			return err
		}})
		defer running(t, f)()
		time.Sleep(time.Minute)

		if got := seen.all(); len(got) == 0 || got[len(got)-1] != "new" {
			t.Errorf("states seen: %v, want the new one last", got)
		}
	})
}
