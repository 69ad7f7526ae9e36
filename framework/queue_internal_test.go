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
		if depth(q) == 0 {
			t.Fatalf("queue is empty after %v", names)
		}
		e, _, ok := q.get()
		if !ok {
			t.Fatal("queue was shut down")
		}
		q.done(e)
		names = append(names, e.key.Name)
	}
	return names
}

// depth is how many keys wait.
func depth(q *queue) int {
	s := q.stats()
	return s.fresh + s.backlog
}

func TestR12FreshKeysGoBeforeTheBacklog(t *testing.T) {
	q := newQueue()
	defer q.shutDown()
	for _, name := range []string{"b1", "b2", "b3"} {
		q.add(key(name), backlogLane, trigger{})
	}
	q.add(key("f1"), freshLane, trigger{})
	q.add(key("b2"), freshLane, trigger{})   // moves up
	q.add(key("f1"), backlogLane, trigger{}) // stays

	if diff := cmp.Diff([]string{"f1", "b2", "b1", "b3"}, take(t, q, 4)); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if got := depth(q); got != 0 {
		t.Errorf("%d keys are left", got)
	}
}

func TestBacklogIsNotStarvedByFreshKeys(t *testing.T) {
	q := newQueue()
	defer q.shutDown()
	q.add(key("old"), backlogLane, trigger{})
	for i := range 3 * freshInARow {
		q.add(key(string(rune('A'+i))), freshLane, trigger{})
	}

	names := take(t, q, freshInARow+1)

	if got := names[freshInARow]; got != "old" {
		t.Errorf("after %d fresh keys came %q, want the one of the backlog", freshInARow, got)
	}
}

func TestR1KeysAddedWhileTheyAreWorkedOnWaitOnce(t *testing.T) {
	q := newQueue()
	defer q.shutDown()
	q.add(key("a"), freshLane, trigger{})
	e, _, _ := q.get()
	for range 100 {
		q.add(key("a"), freshLane, trigger{})
	}
	if got := depth(q); got != 0 {
		t.Errorf("%d keys wait although their only key is being worked on", got)
	}
	q.done(e)
	if got := depth(q); got != 1 {
		t.Errorf("%d keys wait, want 1", got)
	}
}

func TestR12KeyAddedAgainWhileItIsWorkedOnKeepsItsPriority(t *testing.T) {
	q := newQueue()
	defer q.shutDown()
	q.add(key("stale"), backlogLane, trigger{})
	q.add(key("changed"), backlogLane, trigger{})
	stale, _, _ := q.get()
	changed, _, _ := q.get()
	q.add(stale.key, backlogLane, trigger{})
	q.add(changed.key, backlogLane, trigger{})
	q.add(changed.key, freshLane, trigger{})
	q.done(stale)
	q.done(changed)

	if diff := cmp.Diff([]string{"changed", "stale"}, take(t, q, 2)); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestShutDownEndsGetAndAdding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		ended := make(chan bool)
		go func() {
			_, _, ok := q.get()
			ended <- ok
		}()
		synctest.Wait()
		q.shutDown()
		if <-ended {
			t.Error("get returned a key of an empty queue")
		}
		q.add(key("late"), freshLane, trigger{})
		if _, _, ok := q.get(); ok || depth(q) != 0 {
			t.Error("a key was added after the end")
		}
	})
}

func TestAgeIsThatOfTheKeyThatWaitsLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		defer q.shutDown()
		q.add(key("moves"), backlogLane, trigger{})
		time.Sleep(time.Minute)
		q.add(key("stays"), backlogLane, trigger{})
		time.Sleep(time.Minute)
		q.add(key("moves"), freshLane, trigger{})
		time.Sleep(time.Minute)
		if got := q.stats().age; got != 2*time.Minute {
			t.Errorf("got %v, want the 2m that the other key has been waiting", got)
		}
	})
}

func TestQueueHoldsWhatAModelHolds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q := newQueue()
		defer q.shutDown()
		waits, again := map[string]bool{}, map[string]bool{}
		worked := map[string]*entry{}
		rt.Repeat(map[string]func(*rapid.T){
			"add": func(rt *rapid.T) {
				name := rapid.StringMatching("[a-f]").Draw(rt, "name")
				q.add(key(name), rapid.SampledFrom([]lane{freshLane, backlogLane}).Draw(rt, "lane"), trigger{})
				if worked[name] != nil {
					again[name] = true
				} else {
					waits[name] = true
				}
			},
			"get": func(rt *rapid.T) {
				if len(waits) == 0 {
					rt.Skip("nothing waits")
				}
				e, _, ok := q.get()
				if !ok || !waits[e.key.Name] {
					rt.Fatalf("got %v, which does not wait", e)
				}
				delete(waits, e.key.Name)
				worked[e.key.Name] = e
			},
			"done": func(rt *rapid.T) {
				for name, e := range worked {
					q.done(e)
					delete(worked, name)
					if again[name] {
						waits[name] = true
						delete(again, name)
					}
					break
				}
			},
			"": func(rt *rapid.T) {
				s := q.stats()
				if s.fresh+s.backlog != len(waits) || s.working != len(worked) {
					rt.Fatalf("the queue says %+v, want %v to wait and %v to be worked on", s, waits, worked)
				}
			},
		})
	})
}

func TestR3RetriesFollowTheBackOffOfTheirKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		r := newRetries(q, func() backoff.BackOff {
			return backoff.NewExponentialBackOff(backoff.WithInitialInterval(time.Second), backoff.WithMultiplier(2),
				backoff.WithRandomizationFactor(0), backoff.WithMaxInterval(4*time.Second), backoff.WithMaxElapsedTime(0))
		})
		defer r.stop()
		defer q.shutDown()
		var got []time.Duration
		for range 4 {
			got = append(got, r.retry(key("a")))
		}
		got = append(got, r.retry(key("b")))
		r.forget(key("a"))
		got = append(got, r.retry(key("a")))

		want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second, time.Second, time.Second}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pauses (-want +got):\n%s", diff)
		}
		start := time.Now()
		if e, _, ok := q.get(); !ok || time.Since(start) != time.Second {
			t.Errorf("got %v after %v, want the first key after its pause of 1s", e, time.Since(start))
		}
	})
}

func TestForgettingStopsTheRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		r := newRetries(q, constant)
		defer r.stop()
		defer q.shutDown()
		r.retry(key("a"))
		r.forget(key("a"))
		r.after(key("b"), time.Hour)
		r.after(key("b"), 2*time.Hour)

		start := time.Now()
		e, _, _ := q.get()
		if e.key != key("b") || time.Since(start) != 2*time.Hour {
			t.Errorf("got %v after %v, want only b, at its latest time", e.key, time.Since(start))
		}
		q.done(e)
	})
}

func TestEnqueueingLaterDoesNotDelayWhatIsDueEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		r := newRetries(q, constant)
		defer r.stop()
		defer q.shutDown()
		start := time.Now()
		for _, d := range []time.Duration{time.Hour, time.Minute, 2 * time.Hour} {
			r.within(key("a"), d)
		}
		e, _, _ := q.get()
		if got := time.Since(start); got != time.Minute {
			t.Errorf("the key came after %v, want the earliest time, 1m", got)
		}
		r.within(e.key, time.Hour)
		q.done(e)
		if _, _, ok := q.get(); !ok || time.Since(start) != time.Hour+time.Minute {
			t.Errorf("the key came again after %v, want 1h1m", time.Since(start))
		}
	})
}

func TestR3ABackOffThatStopsIsContinued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		r := newRetries(q, func() backoff.BackOff { return &backoff.StopBackOff{} })
		defer r.stop()
		defer q.shutDown()
		if got := r.retry(key("a")); got != maxRetryInterval {
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
