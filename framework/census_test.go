package framework_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

// counting is a source of many objects that may be other ones by now where they are kept, and counts what it is asked there.
type counting struct {
	*informer.Push
	mu          sync.Mutex
	live        map[string]*corev1.ConfigMap
	failing     bool
	gets, lists int
	listed      chan struct{} // closed with the first list
}

func (c *counting) GetLive(_ context.Context, key informer.Key) (obj any, exists bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gets++
	live := c.live[key.Name]
	return live.DeepCopy(), live != nil, nil
}

// keep has that object be the one that is kept under its name.
func (c *counting) keep(obj *corev1.ConfigMap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live[obj.Name] = obj
}

func (c *counting) ListLive(_ context.Context, yield func(informer.Key, any)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lists++; c.lists == 1 {
		close(c.listed)
	}
	if c.failing {
		return errors.New("no list today")
	}
	for _, obj := range c.live {
		yield(informer.Key{Namespace: obj.Namespace, Name: obj.Name}, obj)
	}
	return nil
}

func TestR11ManyObjectsAreAskedForByOneList(t *testing.T) {
	const changed, gone, replaced = 3, 98, 99 // they come in that order
	for name, test := range map[string]struct {
		objects     int
		failing     bool
		gets, lists int
	}{
		"few":                      {objects: 10, gets: 10},
		"many":                     {objects: 100, gets: 10, lists: 1},
		"many, and the list fails": {objects: 100, failing: true, gets: 100, lists: 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, applied := &counting{Push: informer.NewPush("objects"), live: map[string]*corev1.ConfigMap{}, failing: test.failing, listed: make(chan struct{})}, &journal{}
				slow := &resource{name: "slow", created: func(_ context.Context, obj any) error {
					if name := obj.(*corev1.ConfigMap).Name; test.lists > 0 && name == fmt.Sprintf("%04d", changed) {
						<-source.listed
					}
					return nil
				}}
				f := newFramework(t, framework.Config{Source: source, BackOffFactory: everyMinute}, slow, acting(t, "r", applied, always("u")))
				defer running(t, f)()
				synctest.Wait()
				want, stored := map[string]bool{}, []*corev1.ConfigMap{}
				for i := range test.objects {
					obj := configMap(fmt.Sprintf("%04d", i))
					obj.UID, obj.ResourceVersion = types.UID(obj.Name), "1"
					stored = append(stored, obj)
					live := obj.DeepCopy()
					switch i {
					case changed:
						live.ResourceVersion = "2"
					case gone:
						continue
					case replaced:
						live.UID, live.ResourceVersion = "another", "2"
					}
					source.keep(live)
					if i != replaced || !test.failing { // One asked for by itself is another object, of which the source has yet to tell.
						want[fmt.Sprintf("r u for %s/%s", live.UID, live.ResourceVersion)] = true
					}
				}
				for _, obj := range stored {
					put(t, source.Push, obj)
				}
				synctest.Wait()
				got := map[string]bool{}
				for _, line := range applied.all() {
					got[line] = true
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("applied (-want +got):\n%s", diff)
				}
				// Those that have changed, are gone, and are replaced are asked for also after a list.
				if more := source.gets - test.gets; more < 0 || more > 3*test.lists || source.lists != test.lists {
					t.Errorf("asked for %d objects and %d lists, want %d and %d", source.gets, source.lists, test.gets, test.lists)
				}

				// What is known once is known for what follows.
				source.mu.Lock()
				source.gets = 0
				source.mu.Unlock()
				for _, live := range maps.Clone(source.live) {
					next := live.DeepCopy()
					next.ResourceVersion = "3"
					source.keep(next)
					put(t, source.Push, next.DeepCopy())
				}
				synctest.Wait()
				if atMost := 2; source.gets > atMost || source.lists != test.lists { // the object that was replaced, in both its lives
					t.Errorf("the second time: asked for %d objects and %d lists", source.gets, source.lists)
				}
			})
		})
	}
}

func TestR11WhatAnotherReplicaHadIsAskedForAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, applied := &counting{Push: informer.NewPush("objects"), live: map[string]*corev1.ConfigMap{}, listed: make(chan struct{})}, &journal{}
		f := newFramework(t, framework.Config{Source: source, BackOffFactory: everyMinute}, acting(t, "r", applied, always("u")))
		var first, second []string
		for i := range 100 {
			obj := configMap(fmt.Sprintf("%04d", i))
			obj.UID, obj.ResourceVersion = types.UID(obj.Name), "1"
			source.keep(obj.DeepCopy())
			put(t, source.Push, obj)
			if i < 50 {
				first = append(first, obj.Name)
			} else {
				second = append(second, obj.Name)
			}
		}
		shard := newPart(first...)
		if err := f.Share(shard); err != nil {
			t.Fatal(err)
		}
		defer running(t, f)()
		synctest.Wait()
		if got := len(applied.all()); got != len(first) || source.lists != 1 {
			t.Fatalf("%d objects and %d lists, want %d and one", got, source.lists, len(first))
		}
		delete(source.live, first[7]) // by the replica that has it meanwhile, which our source does not show
		delete(source.live, second[7])
		shard.becomes(f, second...)
		synctest.Wait()
		shard.becomes(f, append(second, first...)...)
		synctest.Wait()
		want := 2*len(first) + len(second) - 2
		if got := len(applied.all()); got != want || source.lists != 3 {
			t.Errorf("%d objects and %d lists, want %d and three", got, source.lists, want)
		}
	})
}
