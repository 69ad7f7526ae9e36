package pollinformer_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/pollinformer"
)

// operator writes to the cloud through a source, in the reconciliation of p in the framework f.
type operator struct {
	*pollinformer.Source[machine]
	t     *testing.T
	cloud *cloud
	next  func() []string
	ctx   context.Context

	mu    sync.Mutex
	woken []string
}

func newOperator(t *testing.T, c *cloud) *operator {
	t.Helper()
	o := &operator{t: t, cloud: c}
	o.Source, o.next = poll(t, c, nil)
	o.ctx = context.WithValue(t.Context(), informer.AuthorKey, &informer.Author{Framework: "f", Key: key("p")})
	o.Subscribe(func(e informer.Event) {
		for _, framework := range []string{"f", "g"} {
			for _, name := range []string{"p", "q"} {
				e.Wake(framework, key(name), func() {
					o.mu.Lock()
					defer o.mu.Unlock()
					o.woken = append(o.woken, framework+" "+name)
				})
			}
		}
	})
	o.next()
	o.taken()
	return o
}

// put writes a machine. It calls meanwhile between the request, which is executed, and its answer.
func (o *operator) put(name string, m machine, meanwhile func() error) error {
	return o.Write(o.ctx, key(name), func(context.Context) (machine, error) {
		o.cloud.set(name, m)
		return m, meanwhile()
	})
}

func (o *operator) erase(name string, meanwhile func() error) error {
	return o.Delete(o.ctx, key(name), func(context.Context) error {
		o.cloud.remove(name)
		return meanwhile()
	})
}

// listed lets a List pass.
func (o *operator) listed() error {
	time.Sleep(66*time.Second + time.Millisecond)
	synctest.Wait()
	return nil
}

// has tells the size of a machine that the source holds, and 0 if there is none.
func (o *operator) has(name string, want int) {
	o.t.Helper()
	stored, exists, err := o.Get(key(name))
	if err != nil {
		o.t.Fatal(err)
	}
	if got, _ := stored.(machine); exists != (want != 0) || got.Size != want {
		o.t.Errorf("%s is read as %v, %t, want the size %d", name, stored, exists, want)
	}
}

// wakes compares the keys woken since the last call with want.
func (o *operator) wakes(when string, want ...string) {
	o.t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, o.taken()); diff != "" {
		o.t.Errorf("woken %s (-want +got):\n%s", when, diff)
	}
}

// taken returns the keys woken since the last call, each once.
func (o *operator) taken() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	woken := o.woken
	o.woken = nil
	slices.Sort(woken)
	return slices.Compact(woken)
}

func sized(size int) machine { return machine{Size: size, UID: "a"} }

func nothing() error { return nil }

var (
	errLost    = errors.New("no answer")
	others     = []string{"f q", "g p", "g q"}
	everybody  = []string{"f p", "f q", "g p", "g q"}
	nobodyEver []string
)

func TestR11WhatAReconciliationWritesIsReadAtOnceAndWakesAllButItsObject(t *testing.T) {
	for name, test := range map[string]struct {
		write func(o *operator) error
		// size is that of the machine a when the write has returned, and later that after the next List.
		size, later int
		// woken are the keys woken until the write has returned, and listed those woken by the next
		// List.
		woken, listed []string
	}{
		"a change": {
			write: func(o *operator) error { return o.put("a", sized(2), nothing) },
			size:  2, later: 2, woken: others,
		},
		"the same once more": {
			write: func(o *operator) error { return o.put("a", sized(1), nothing) },
			size:  1, later: 1,
		},
		"a deletion": {
			write: func(o *operator) error { return o.erase("a", nothing) },
			woken: others,
		},
		"another life": {
			write: func(o *operator) error { return o.put("a", machine{Size: 2, UID: "other"}, nothing) },
			size:  2, later: 2, woken: everybody,
		},
		"a change that a List shows before the answer": {
			write: func(o *operator) error { return o.put("a", sized(2), o.listed) },
			size:  2, later: 2, woken: others,
		},
		"a deletion that a List shows before the answer": {
			write: func(o *operator) error { return o.erase("a", o.listed) },
			woken: others,
		},
		"a change without an answer": {
			write: func(o *operator) error { return o.put("a", sized(2), func() error { return errLost }) },
			size:  1, later: 2, listed: everybody,
		},
		"a change without an answer that a List shows before": {
			write: func(o *operator) error {
				return o.put("a", sized(2), func() error { return errors.Join(o.listed(), errLost) })
			},
			size: 1, later: 2, listed: everybody,
		},
		"a deletion without an answer": {
			write: func(o *operator) error { return o.erase("a", func() error { return errLost }) },
			size:  1, listed: everybody,
		},
		"a panic after the change": {
			write: func(o *operator) error {
				defer func() { _ = recover() }()
				return o.put("a", sized(2), func() error { panic("no answer") })
			},
			size: 1, later: 2, listed: everybody,
		},
		"a refusal": {
			write: func(o *operator) error {
				return o.Write(o.ctx, key("a"), func(context.Context) (machine, error) { return machine{}, errLost })
			},
			size: 1, later: 1,
		},
		"a change that somebody overwrites": {
			write: func(o *operator) error {
				err := o.put("a", sized(2), nothing)
				o.cloud.set("a", sized(3))
				return err
			},
			size: 2, later: 3, woken: others, listed: everybody,
		},
		"a change that somebody takes back": {
			write: func(o *operator) error {
				err := o.put("a", sized(2), nothing)
				o.cloud.set("a", sized(1))
				return err
			},
			size: 2, later: 1, woken: others, listed: everybody,
		},
		"a deletion that somebody takes back": {
			write: func(o *operator) error {
				err := o.erase("a", nothing)
				o.cloud.set("a", sized(1))
				return err
			},
			later: 1, woken: others, listed: everybody,
		},
		"two changes of which somebody takes back the later one": {
			write: func(o *operator) error {
				err := errors.Join(o.put("a", sized(2), nothing), o.put("a", sized(3), nothing), o.listed())
				o.cloud.set("a", sized(2))
				return err
			},
			size: 3, later: 2, woken: others, listed: everybody,
		},
		"a change that somebody overwrites, and a List shows that before the answer": {
			write: func(o *operator) error {
				return o.put("a", sized(2), func() error {
					o.cloud.set("a", sized(3))
					err := o.listed()
					o.has("a", 1) // Or it would go back to 2.
					return err
				})
			},
			size: 2, later: 3, woken: others, listed: everybody,
		},
		"a change while a List is under way that has not seen it": {
			write: func(o *operator) (err error) {
				o.cloud.failWith(func(context.Context) error {
					o.cloud.failWith(nil)
					err = o.put("a", sized(2), nothing)
					return nil
				})
				return errors.Join(o.listed(), err)
			},
			size: 2, later: 2, woken: others,
		},
		"a deletion while a List is under way that has not seen it": {
			write: func(o *operator) (err error) {
				o.cloud.failWith(func(context.Context) error {
					o.cloud.failWith(nil)
					err = o.erase("a", nothing)
					return nil
				})
				return errors.Join(o.listed(), err)
			},
			woken: others,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOperator(t, &cloud{machines: map[informer.Key]machine{key("a"): sized(1)}})
				err := test.write(o)
				if lost := strings.Contains(name, "without an answer") || name == "a refusal"; errors.Is(err, errLost) != lost {
					t.Errorf("Write returns %v", err)
				}
				o.has("a", test.size)
				o.wakes("by the write", test.woken...)
				o.next()
				o.has("a", test.later)
				o.wakes("by the next List", test.listed...)
				o.next()
				o.wakes("by the one after that", nobodyEver...)
			})
		})
	}
}

func TestR11AWriteOutsideOfAReconciliationWakesEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOperator(t, &cloud{machines: map[informer.Key]machine{}})
		o.ctx = t.Context()
		if err := o.put("a", sized(1), nothing); err != nil {
			t.Fatal(err)
		}
		o.wakes("by a creation", everybody...)
		if err := o.erase("a", nothing); err != nil {
			t.Fatal(err)
		}
		o.wakes("by a deletion", everybody...)
	})
}
