package framework

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/informer"
)

func key(name string) informer.Key { return informer.Key{Name: name} }

func constant() backoff.BackOff { return backoff.NewConstantBackOff(time.Minute) }

// take takes n keys and is done with each at once.
func take(t *testing.T, q *queue, n int) (names []string) {
	t.Helper()
	for range n {
		if q.work.Len() == 0 {
			t.Fatalf("queue is empty after %v", names)
		}
		k, ok := q.get()
		if !ok {
			t.Fatal("queue was shut down")
		}
		q.done(k)
		names = append(names, k.Name)
	}
	return names
}

func TestR12FreshKeysGoBeforeTheBacklog(t *testing.T) {
	q := newQueue(constant)
	defer q.shutDown()
	for _, name := range []string{"b1", "b2", "b3"} {
		q.add(key(name), backlogLane)
	}
	q.add(key("f1"), freshLane)
	q.add(key("b2"), freshLane)   // moves up
	q.add(key("f1"), backlogLane) // stays

	if diff := cmp.Diff([]string{"f1", "b2", "b1", "b3"}, take(t, q, 4)); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if got := q.work.Len(); got != 0 {
		t.Errorf("%d keys are left", got)
	}
}

func TestBacklogIsNotStarvedByFreshKeys(t *testing.T) {
	q := newQueue(constant)
	defer q.shutDown()
	q.add(key("old"), backlogLane)
	for i := range 3 * freshInARow {
		q.add(key(string(rune('A'+i))), freshLane)
	}

	names := take(t, q, freshInARow+1)

	if got := names[freshInARow]; got != "old" {
		t.Errorf("after %d fresh keys came %q, want the one of the backlog", freshInARow, got)
	}
}

func TestR1KeysAddedWhileTheyAreWorkedOnWaitOnce(t *testing.T) {
	q := newQueue(constant)
	defer q.shutDown()
	q.add(key("a"), freshLane)
	k, _ := q.get()
	for range 100 {
		q.add(k, freshLane)
	}
	if got := q.work.Len(); got != 0 {
		t.Errorf("%d keys wait although their only key is being worked on", got)
	}
	q.done(k)
	if got := q.work.Len(); got != 1 {
		t.Errorf("%d keys wait, want 1", got)
	}
}

func TestQueueHoldsWhatAModelHolds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q := newQueue(constant)
		defer q.shutDown()
		waits, worked, again := map[string]bool{}, map[string]bool{}, map[string]bool{}
		rt.Repeat(map[string]func(*rapid.T){
			"add": func(rt *rapid.T) {
				name := rapid.StringMatching("[a-f]").Draw(rt, "name")
				q.add(key(name), rapid.SampledFrom([]lane{freshLane, backlogLane}).Draw(rt, "lane"))
				if worked[name] {
					again[name] = true
				} else {
					waits[name] = true
				}
			},
			"get": func(rt *rapid.T) {
				if len(waits) == 0 {
					rt.Skip("nothing waits")
				}
				k, ok := q.get()
				if !ok || !waits[k.Name] {
					rt.Fatalf("got %q, which does not wait", k.Name)
				}
				delete(waits, k.Name)
				worked[k.Name] = true
			},
			"done": func(rt *rapid.T) {
				for name := range worked {
					q.done(key(name))
					delete(worked, name)
					if again[name] {
						waits[name] = true
						delete(again, name)
					}
					break
				}
			},
			"": func(rt *rapid.T) {
				if got := q.work.Len(); got != len(waits) {
					rt.Fatalf("%d keys wait, want %v", got, waits)
				}
				stats := q.lanes.stats()
				if stats.fresh+stats.backlog != len(waits) {
					rt.Fatalf("lanes say %+v, want %d keys", stats, len(waits))
				}
			},
		})
	})
}

func TestR3RetriesFollowTheBackOffOfTheirKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(func() backoff.BackOff {
			return backoff.NewExponentialBackOff(backoff.WithInitialInterval(time.Second), backoff.WithMultiplier(2),
				backoff.WithRandomizationFactor(0), backoff.WithMaxInterval(4*time.Second), backoff.WithMaxElapsedTime(0))
		})
		defer q.shutDown()
		var got []time.Duration
		for range 4 {
			got = append(got, q.retry(key("a")))
		}
		got = append(got, q.retry(key("b")))
		q.forget(key("a"))
		got = append(got, q.retry(key("a")))

		want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second, time.Second, time.Second}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pauses (-want +got):\n%s", diff)
		}
		start := time.Now()
		if k, ok := q.get(); !ok || time.Since(start) != time.Second {
			t.Errorf("got %v after %v, want the first key after its pause of 1s", k, time.Since(start))
		}
	})
}

func TestForgettingStopsTheRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(constant)
		defer q.shutDown()
		q.retry(key("a"))
		q.forget(key("a"))
		q.after(key("b"), time.Hour)
		q.after(key("b"), 2*time.Hour)

		start := time.Now()
		k, _ := q.get()
		if k != key("b") || time.Since(start) != 2*time.Hour {
			t.Errorf("got %v after %v, want only b, at its latest time", k, time.Since(start))
		}
		q.done(k)
	})
}

func TestEnqueueingLaterDoesNotDelayWhatIsDueEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(constant)
		defer q.shutDown()
		start := time.Now()
		for _, d := range []time.Duration{time.Hour, time.Minute, 2 * time.Hour} {
			q.within(key("a"), d)
		}
		k, _ := q.get()
		if got := time.Since(start); got != time.Minute {
			t.Errorf("the key came after %v, want the earliest time, 1m", got)
		}
		q.within(k, time.Hour)
		q.done(k)
		if _, ok := q.get(); !ok || time.Since(start) != time.Hour+time.Minute {
			t.Errorf("the key came again after %v, want 1h1m", time.Since(start))
		}
	})
}

func TestR3ABackOffThatStopsIsContinued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(func() backoff.BackOff { return &backoff.StopBackOff{} })
		defer q.shutDown()
		if got := q.retry(key("a")); got != maxRetryInterval {
			t.Errorf("got a pause of %v, want %v", got, maxRetryInterval)
		}
	})
}

func TestDefaultBackOffGrowsToItsCapAndNeverStops(t *testing.T) {
	b := DefaultBackOffFactory()()
	var last time.Duration
	for range 200 {
		last = b.NextBackOff()
		if last == backoff.Stop {
			t.Fatal("the default backoff stops")
		}
	}
	if last < maxRetryInterval/2 || last > maxRetryInterval*3/2 {
		t.Errorf("after 200 failures the pause is %v, want about %v", last, maxRetryInterval)
	}
}
