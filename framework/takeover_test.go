package framework_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/access"
)

// comparing is a source of objects that may be other ones by now where they are kept.
type comparing struct {
	*informer.Push
	mu      sync.Mutex
	live    map[string]*corev1.ConfigMap
	failing bool
	lists   int
	// listed is called when the list is made and not compared yet.
	listed func()
}

func newComparing() *comparing {
	return &comparing{Push: informer.NewPush("objects"), live: map[string]*corev1.ConfigMap{}}
}

func (c *comparing) GetLive(_ context.Context, key informer.Key) (obj any, exists bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	live := c.live[key.Name]
	return live.DeepCopy(), live != nil, nil
}

func (c *comparing) Behind(_ context.Context, of func(informer.Key) bool) (map[informer.Key]informer.Lag, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lists++
	if c.failing {
		return nil, errors.New("no list today")
	}
	kept := maps.Clone(c.live)
	if c.listed != nil {
		c.listed()
	}
	behind := map[informer.Key]informer.Lag{}
	for _, key := range c.Keys() {
		obj, _, _ := c.Get(key)
		if of(key) && kept[key.Name] == nil {
			behind[key] = informer.Lag{UID: obj.(*corev1.ConfigMap).UID, Gone: true}
		}
	}
	for name, live := range kept {
		obj, exists, _ := c.Get(keyOf(name))
		if of(keyOf(name)) && (!exists || informer.IsOlder(obj.(*corev1.ConfigMap).ResourceVersion, live.ResourceVersion)) {
			behind[keyOf(name)] = informer.Lag{UID: live.UID, Version: live.ResourceVersion}
		}
	}
	return behind, nil
}

// keep has an object be kept, and nil none.
func (c *comparing) keep(name string, obj *corev1.ConfigMap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live[name] = obj
	if obj == nil {
		delete(c.live, name)
	}
}

func inLife(name, life, version string) *corev1.ConfigMap {
	obj := configMap(name)
	obj.UID, obj.ResourceVersion = types.UID(life), version
	return obj
}

// noted is a resource that notes what it is called for.
func noted(calls *journal) framework.Resource {
	note := func(what string) func(context.Context, any) error {
		return func(_ context.Context, obj any) error {
			o := obj.(*corev1.ConfigMap)
			calls.add(fmt.Sprintf("%s %s %s/%s", what, o.Name, o.UID, o.ResourceVersion))
			return nil
		}
	}
	return &resource{name: "noted", created: note("created"), deleted: note("deleted")}
}

func TestR11AKeyOfWhichTheSourceHasYetToTellAtTheStartWaitsForItsEvent(t *testing.T) {
	for name, test := range map[string]struct {
		stored, live *corev1.ConfigMap
		// then are the events that come later. One without a version is the end of a life.
		then  []*corev1.ConfigMap
		first []string
		last  []string
	}{
		"the same":              {stored: inLife("a", "1", "10"), live: inLife("a", "1", "10"), first: []string{"created a 1/10"}},
		"a newer one is stored": {stored: inLife("a", "1", "11"), live: inLife("a", "1", "10"), first: []string{"created a 1/11"}},
		"changed": {stored: inLife("a", "1", "10"), live: inLife("a", "1", "12"),
			then: []*corev1.ConfigMap{inLife("a", "1", "11"), inLife("a", "1", "12")}, last: []string{"created a 1/12"}},
		"gone": {stored: inLife("a", "1", "10"), then: []*corev1.ConfigMap{inLife("a", "1", "")}, last: []string{"deleted a 1/10"}},
		"replaced": {stored: inLife("a", "1", "10"), live: inLife("a", "2", "12"),
			then: []*corev1.ConfigMap{inLife("a", "1", ""), inLife("a", "2", "12")}, last: []string{"created a 2/12"}},
		"new": {live: inLife("a", "1", "12"),
			then: []*corev1.ConfigMap{inLife("a", "1", "11"), inLife("a", "1", "12")}, last: []string{"created a 1/12"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, calls := newComparing(), &journal{}
				f := newFramework(t, framework.Config{Source: source, BackOffFactory: everyMinute}, noted(calls))
				if test.stored != nil {
					put(t, source.Push, test.stored)
				}
				source.keep("a", test.live)
				defer running(t, f)()
				time.Sleep(time.Hour)
				if diff := cmp.Diff(test.first, calls.all()); diff != "" {
					t.Errorf("at first (-want +got):\n%s", diff)
				}

				for _, e := range test.then {
					if e.ResourceVersion == "" {
						e.ResourceVersion = "10"
						remove(t, source.Push, e)
					} else {
						put(t, source.Push, e)
					}
				}
				time.Sleep(time.Hour)

				// The end of one life and the beginning of the next are two events, each of which may reconcile the next life.
				if diff := cmp.Diff(slices.Concat(test.first, test.last), slices.Compact(calls.all())); diff != "" {
					t.Errorf("in the end (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestR11NothingIsReconciledBeforeTheSourceWasCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, calls, log := newComparing(), &journal{}, &strings.Builder{}
		source.failing = true
		f := newFramework(t, framework.Config{Source: source, Logger: logTo(t, log)}, noted(calls))
		obj := inLife("a", "1", "10")
		put(t, source.Push, obj.DeepCopy())
		source.keep("a", obj)
		defer running(t, f)()
		time.Sleep(time.Hour)
		if got := calls.all(); len(got) != 0 || strings.Count(log.String(), "no list today") != 1 {
			t.Errorf("calls %v, log:\n%s", got, log)
		}
		source.mu.Lock()
		source.failing = false
		source.mu.Unlock()
		time.Sleep(time.Minute)
		if got := calls.all(); len(got) != 1 {
			t.Errorf("calls %v, want one", got)
		}
	})
}

func TestR11WhatAnotherReplicaHadIsComparedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, calls := newComparing(), &journal{}
		for _, name := range []string{"a", "b", "c"} {
			put(t, source.Push, inLife(name, name, "1"))
			source.keep(name, inLife(name, name, "1"))
		}
		f := newFramework(t, framework.Config{Source: source, BackOffFactory: everyMinute}, noted(calls))
		shard := newPart("a")
		if err := access.EngineOf(f).Share(shard); err != nil {
			t.Fatal(err)
		}
		defer running(t, f)()
		synctest.Wait()
		source.keep("b", inLife("b", "b", "2")) // by the replica that has it, which our source does not show yet
		source.keep("c", nil)
		shard.becomes(f, "a", "b", "c")
		time.Sleep(time.Hour)
		synctest.Wait()
		if diff := cmp.Diff([]string{"created a a/1"}, calls.all()); diff != "" || source.lists != 2 {
			t.Errorf("%d lists, calls (-want +got):\n%s", source.lists, diff)
		}

		put(t, source.Push, inLife("b", "b", "2"))
		remove(t, source.Push, inLife("c", "c", "1"))
		time.Sleep(time.Hour)

		got := calls.all()
		slices.Sort(got)
		if diff := cmp.Diff([]string{"created a a/1", "created b b/2", "deleted c c/1"}, got); diff != "" {
			t.Errorf("calls in the end (-want +got):\n%s", diff)
		}
	})
}

func TestR11TheDeletionOfAnEarlierLifeTakesNothingFromTheNextOne(t *testing.T) {
	held := func(obj *corev1.ConfigMap) *corev1.ConfigMap {
		obj.Finalizers = []string{finalizer}
		return obj
	}
	for name, test := range map[string]struct {
		finalizer bool
		// last is what the source shows at first, and now what is there, before the framework runs or while it does.
		last, now *corev1.ConfigMap
		before    bool
		want      []string
	}{
		"it lived before the framework ran":              {last: inLife("a", "old", "1"), now: inLife("a", "next", "2"), before: true},
		"it lived while the framework ran":               {last: inLife("a", "old", "1"), now: inLife("a", "next", "2"), want: []string{"deleted a old/1"}},
		"there is no next one":                           {last: inLife("a", "old", "1"), before: true, want: []string{"deleted a old/1"}},
		"the next one was reconciled by another process": {finalizer: true, last: held(inLife("a", "old", "1")), now: held(inLife("a", "next", "2")), before: true},
		"the next one was not reconciled yet": {finalizer: true, last: held(inLife("a", "old", "1")), now: inLife("a", "next", "2"), before: true,
			want: []string{"deleted a old/1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, calls := newComparing(), &journal{}
				config := framework.Config{Source: source, DisableFinalizer: true}
				if test.finalizer {
					config = framework.Config{Finalizer: finalizer, Source: struct {
						*comparing
						informer.FinalizerStore
					}{source, newSelecting(&journal{}).holding}}
				}
				deleted := noted(calls).(*resource)
				deleted.created = nil
				f := newFramework(t, config, deleted)
				put(t, source.Push, test.last.DeepCopy())
				source.keep("a", test.last)
				if test.before {
					source.keep("a", test.now)
				}
				defer running(t, f)()
				time.Sleep(time.Hour)
				source.keep("a", test.now)
				remove(t, source.Push, test.last.DeepCopy())
				time.Sleep(time.Hour)
				if test.now != nil {
					put(t, source.Push, test.now.DeepCopy())
				}
				time.Sleep(time.Hour)

				if diff := cmp.Diff(test.want, calls.all()); diff != "" {
					t.Errorf("deletions (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestADeletionThatIsDeliveredDuringAComparisonIsProcessed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, calls := newComparing(), &journal{}
		f := newFramework(t, framework.Config{Source: source, BackOffFactory: everyMinute, DisableFinalizer: true}, noted(calls))
		put(t, source.Push, inLife("a", "1", "10"))
		source.keep("a", inLife("a", "1", "10"))
		source.listed = func() {
			remove(t, source.Push, inLife("a", "1", "10"))
			delete(source.live, "a")
		}
		defer running(t, f)()
		time.Sleep(time.Hour)
		synctest.Wait()
		if diff := cmp.Diff([]string{"deleted a 1/10"}, calls.all()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}
