package queue

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
func take(t *testing.T, q *Queue, n int) (names []string) {
	t.Helper()
	for range n {
		if depth(q) == 0 {
			t.Fatalf("queue is empty after %v", names)
		}
		e, _, ok := q.Get()
		if !ok {
			t.Fatal("queue was shut down")
		}
		q.Done(e)
		names = append(names, e.Key.Name)
	}
	return names
}

// depth is how many keys wait.
func depth(q *Queue) int {
	s := q.Stats()
	return s.Fresh + s.Backlog
}

func TestR12FreshKeysGoBeforeTheBacklog(t *testing.T) {
	q := New()
	defer q.ShutDown()
	for _, name := range []string{"b1", "b2", "b3"} {
		q.Add(key(name), Backlog, Trigger{})
	}
	q.Add(key("f1"), Fresh, Trigger{})
	q.Add(key("b2"), Fresh, Trigger{})   // moves up
	q.Add(key("f1"), Backlog, Trigger{}) // stays

	if diff := cmp.Diff([]string{"f1", "b2", "b1", "b3"}, take(t, q, 4)); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if got := depth(q); got != 0 {
		t.Errorf("%d keys are left", got)
	}
}

func TestBacklogIsNotStarvedByFreshKeys(t *testing.T) {
	q := New()
	defer q.ShutDown()
	q.Add(key("old"), Backlog, Trigger{})
	for i := range 3 * freshInARow {
		q.Add(key(string(rune('A'+i))), Fresh, Trigger{})
	}

	names := take(t, q, freshInARow+1)

	if got := names[freshInARow]; got != "old" {
		t.Errorf("after %d fresh keys came %q, want the one of the backlog", freshInARow, got)
	}
}

func TestR1KeysAddedWhileTheyAreWorkedOnWaitOnce(t *testing.T) {
	q := New()
	defer q.ShutDown()
	q.Add(key("a"), Fresh, Trigger{})
	e, _, _ := q.Get()
	for range 100 {
		q.Add(key("a"), Fresh, Trigger{})
	}
	if got := depth(q); got != 0 {
		t.Errorf("%d keys wait although their only key is being worked on", got)
	}
	q.Done(e)
	if got := depth(q); got != 1 {
		t.Errorf("%d keys wait, want 1", got)
	}
}

func TestR12KeyAddedAgainWhileItIsWorkedOnKeepsItsPriority(t *testing.T) {
	q := New()
	defer q.ShutDown()
	q.Add(key("stale"), Backlog, Trigger{})
	q.Add(key("changed"), Backlog, Trigger{})
	stale, _, _ := q.Get()
	changed, _, _ := q.Get()
	q.Add(stale.Key, Backlog, Trigger{})
	q.Add(changed.Key, Backlog, Trigger{})
	q.Add(changed.Key, Fresh, Trigger{})
	q.Done(stale)
	q.Done(changed)

	if diff := cmp.Diff([]string{"changed", "stale"}, take(t, q, 2)); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestShutDownEndsGetAndAdding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New()
		ended := make(chan bool)
		go func() {
			_, _, ok := q.Get()
			ended <- ok
		}()
		synctest.Wait()
		q.ShutDown()
		if <-ended {
			t.Error("get returned a key of an empty queue")
		}
		q.Add(key("late"), Fresh, Trigger{})
		if _, _, ok := q.Get(); ok || depth(q) != 0 {
			t.Error("a key was added after the end")
		}
	})
}

func TestAgeIsThatOfTheKeyThatWaitsLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New()
		defer q.ShutDown()
		q.Add(key("moves"), Backlog, Trigger{})
		time.Sleep(time.Minute)
		q.Add(key("stays"), Backlog, Trigger{})
		time.Sleep(time.Minute)
		q.Add(key("moves"), Fresh, Trigger{})
		time.Sleep(time.Minute)
		if got := q.Stats().Age; got != 2*time.Minute {
			t.Errorf("got %v, want the 2m that the other key has been waiting", got)
		}
	})
}

func TestQueueHoldsWhatAModelHolds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q := New()
		defer q.ShutDown()
		waits, again := map[string]bool{}, map[string]bool{}
		worked := map[string]*Entry{}
		rt.Repeat(map[string]func(*rapid.T){
			"add": func(rt *rapid.T) {
				name := rapid.StringMatching("[a-f]").Draw(rt, "name")
				q.Add(key(name), rapid.SampledFrom([]Lane{Fresh, Backlog}).Draw(rt, "lane"), Trigger{})
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
				e, _, ok := q.Get()
				if !ok || !waits[e.Key.Name] {
					rt.Fatalf("got %v, which does not wait", e)
				}
				delete(waits, e.Key.Name)
				worked[e.Key.Name] = e
			},
			"done": func(rt *rapid.T) {
				for name, e := range worked {
					q.Done(e)
					delete(worked, name)
					if again[name] {
						waits[name] = true
						delete(again, name)
					}
					break
				}
			},
			"": func(rt *rapid.T) {
				s := q.Stats()
				if s.Fresh+s.Backlog != len(waits) || s.Working != len(worked) {
					rt.Fatalf("the queue says %+v, want %v to wait and %v to be worked on", s, waits, worked)
				}
			},
		})
	})
}

func TestR3RetriesFollowTheBackOffOfTheirKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New()
		r := NewRetries(q, func() backoff.BackOff {
			return backoff.NewExponentialBackOff(backoff.WithInitialInterval(time.Second), backoff.WithMultiplier(2),
				backoff.WithRandomizationFactor(0), backoff.WithMaxInterval(4*time.Second), backoff.WithMaxElapsedTime(0))
		})
		defer r.Stop()
		defer q.ShutDown()
		var got []time.Duration
		for range 4 {
			got = append(got, r.Retry(key("a")))
		}
		got = append(got, r.Retry(key("b")))
		r.Forget(key("a"))
		got = append(got, r.Retry(key("a")))

		want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second, time.Second, time.Second}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pauses (-want +got):\n%s", diff)
		}
		start := time.Now()
		if e, _, ok := q.Get(); !ok || time.Since(start) != time.Second {
			t.Errorf("got %v after %v, want the first key after its pause of 1s", e, time.Since(start))
		}
	})
}

func TestForgettingStopsTheRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New()
		r := NewRetries(q, constant)
		defer r.Stop()
		defer q.ShutDown()
		r.Retry(key("a"))
		r.Forget(key("a"))
		r.After(key("b"), time.Hour)
		r.After(key("b"), 2*time.Hour)

		start := time.Now()
		e, _, _ := q.Get()
		if e.Key != key("b") || time.Since(start) != 2*time.Hour {
			t.Errorf("got %v after %v, want only b, at its latest time", e.Key, time.Since(start))
		}
		q.Done(e)
	})
}

func TestEnqueueingLaterDoesNotDelayWhatIsDueEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New()
		r := NewRetries(q, constant)
		defer r.Stop()
		defer q.ShutDown()
		start := time.Now()
		for _, d := range []time.Duration{time.Hour, time.Minute, 2 * time.Hour} {
			r.Within(key("a"), d)
		}
		e, _, _ := q.Get()
		if got := time.Since(start); got != time.Minute {
			t.Errorf("the key came after %v, want the earliest time, 1m", got)
		}
		r.Within(e.Key, time.Hour)
		q.Done(e)
		if _, _, ok := q.Get(); !ok || time.Since(start) != time.Hour+time.Minute {
			t.Errorf("the key came again after %v, want 1h1m", time.Since(start))
		}
	})
}

func TestR3ABackOffThatStopsIsContinued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New()
		r := NewRetries(q, func() backoff.BackOff { return &backoff.StopBackOff{} })
		defer r.Stop()
		defer q.ShutDown()
		if got := r.Retry(key("a")); got != MaxRetryInterval {
			t.Errorf("got a pause of %v, want %v", got, MaxRetryInterval)
		}
	})
}
