package queue

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/informer"
)

func key(name string) informer.Key { return informer.Key{Name: name} }

// because tells why, and who has caused it if that is known.
func constant() backoff.BackOff { return backoff.NewConstantBackOff(time.Minute) }

// take takes n keys and is done with each at once.
func take(t *testing.T, q *Queue[string], n int) (names []string) {
	t.Helper()
	for range n {
		if depth(q) == 0 {
			t.Fatalf("queue is empty after %v", names)
		}
		e, ok := q.Next()
		if !ok {
			t.Fatal("queue was shut down")
		}
		q.Done(e)
		names = append(names, e.Key.Name)
	}
	return names
}

// depth is how many keys wait.
func depth(q *Queue[string]) int {
	s := q.Stats()
	return s.Fresh + s.Backlog
}

func TestR12FreshKeysGoBeforeTheBacklog(t *testing.T) {
	q := New[string]()
	defer q.ShutDown()
	for _, name := range []string{"b1", "b2", "b3"} {
		q.Add(key(name), Backlog, "")
	}
	q.Add(key("f1"), Fresh, "")
	q.Add(key("b2"), Fresh, "")   // moves up
	q.Add(key("f1"), Backlog, "") // stays

	if diff := cmp.Diff([]string{"f1", "b2", "b1", "b3"}, take(t, q, 4)); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if got := depth(q); got != 0 {
		t.Errorf("%d keys are left", got)
	}
}

func TestBacklogIsNotStarvedByFreshKeys(t *testing.T) {
	q := New[string]()
	defer q.ShutDown()
	q.Add(key("old"), Backlog, "")
	for i := range 3 * freshInARow {
		q.Add(key(string(rune('A'+i))), Fresh, "")
	}

	names := take(t, q, freshInARow+1)

	if got := names[freshInARow]; got != "old" {
		t.Errorf("after %d fresh keys came %q, want the one of the backlog", freshInARow, got)
	}
}

// TestANamespaceDoesNotHoldUpAnother holds that one object of a tenant waits for one of each of the others, however many those have.
func TestANamespaceDoesNotHoldUpAnother(t *testing.T) {
	for _, lane := range []Lane{Fresh, Backlog} {
		q := New[string]()
		defer q.ShutDown()
		for i := range 500 {
			q.Add(informer.Key{Namespace: "many", Name: fmt.Sprintf("many-%03d", i)}, lane, "")
		}
		q.Add(informer.Key{Namespace: "one", Name: "one"}, lane, "")
		q.Add(informer.Key{Namespace: "two", Name: "two-1"}, lane, "")
		q.Add(informer.Key{Namespace: "two", Name: "two-2"}, lane, "")
		want := []string{"many-000", "one", "two-1", "many-001", "two-2", "many-002", "many-003"}
		if diff := cmp.Diff(want, take(t, q, len(want))); diff != "" {
			t.Errorf("order in lane %d (-want +got):\n%s", lane, diff)
		}
	}
}

func TestR1KeysAddedWhileTheyAreWorkedOnWaitOnce(t *testing.T) {
	q := New[string]()
	defer q.ShutDown()
	q.Add(key("a"), Fresh, "")
	e, _ := q.Next()
	for range 100 {
		q.Add(key("a"), Fresh, "")
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
	q := New[string]()
	defer q.ShutDown()
	q.Add(key("stale"), Backlog, "")
	q.Add(key("changed"), Backlog, "")
	stale, _ := q.Next()
	changed, _ := q.Next()
	q.Add(stale.Key, Backlog, "")
	q.Add(changed.Key, Backlog, "")
	q.Add(changed.Key, Fresh, "")
	q.Done(stale)
	q.Done(changed)

	if diff := cmp.Diff([]string{"changed", "stale"}, take(t, q, 2)); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestShutDownEndsNextAndAdding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[string]()
		ended := make(chan bool)
		go func() {
			_, ok := q.Next()
			ended <- ok
		}()
		synctest.Wait()
		q.ShutDown()
		if <-ended {
			t.Error("next returned a key of an empty queue")
		}
		q.Add(key("late"), Fresh, "")
		if _, ok := q.Next(); ok || depth(q) != 0 {
			t.Error("a key was added after the end")
		}
	})
}

func TestAgeIsThatOfTheKeyThatWaitsLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[string]()
		defer q.ShutDown()
		q.Add(key("moves"), Backlog, "")
		time.Sleep(time.Minute)
		q.Add(key("stays"), Backlog, "")
		time.Sleep(time.Minute)
		q.Add(key("moves"), Fresh, "")
		time.Sleep(time.Minute)
		if got := q.Stats().Age; got != 3*time.Minute {
			t.Errorf("got %v, want the 3m since the first key was added", got)
		}
	})
}

func TestQueueHoldsWhatAModelHolds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q := New[string]()
		defer q.ShutDown()
		waits, again := map[string]bool{}, map[string]bool{}
		worked := map[string]*Entry[string]{}
		// ended ends the work on a key for the model, and returns its entry; nil without any.
		ended := func() (e *Entry[string]) {
			for name := range worked {
				e = worked[name]
				delete(worked, name)
				if again[name] {
					waits[name] = true
					delete(again, name)
				}
				break
			}
			return e
		}
		rt.Repeat(map[string]func(*rapid.T){
			"add": func(rt *rapid.T) {
				name := rapid.StringMatching("[a-f]").Draw(rt, "name")
				q.Add(key(name), rapid.SampledFrom([]Lane{Fresh, Backlog}).Draw(rt, "lane"), "")
				if worked[name] != nil {
					again[name] = true
				} else {
					waits[name] = true
				}
			},
			"next": func(rt *rapid.T) {
				if len(waits) == 0 {
					rt.Skip("nothing waits")
				}
				e, ok := q.Next()
				if !ok || !waits[e.Key.Name] {
					rt.Fatalf("got %v, which does not wait", e)
				}
				delete(waits, e.Key.Name)
				worked[e.Key.Name] = e
			},
			"done": func(rt *rapid.T) {
				if e := ended(); e != nil {
					q.Done(e)
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
		q := New[string]()
		r := NewRetries(q, func() backoff.BackOff {
			return backoff.NewExponentialBackOff(backoff.WithInitialInterval(time.Second), backoff.WithMultiplier(2),
				backoff.WithRandomizationFactor(0), backoff.WithMaxInterval(4*time.Second), backoff.WithMaxElapsedTime(0))
		})
		defer r.Stop()
		defer q.ShutDown()
		var got []time.Duration
		for range 4 {
			got = append(got, r.Retry(key("a"), 0, ""))
		}
		got = append(got, r.Retry(key("b"), 0, ""))
		r.Settle(key("a"))
		got = append(got, r.Retry(key("a"), 0, ""))

		want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second, time.Second, time.Second}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pauses (-want +got):\n%s", diff)
		}
		start := time.Now()
		if e, ok := q.Next(); !ok || time.Since(start) != time.Second {
			t.Errorf("got %v after %v, want the first key after its pause of 1s", e, time.Since(start))
		}
	})
}

func TestAKeyThatIsForgottenIsNotLookedAtAgainAndHasANewBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[string]()
		r := NewRetries(q, func() backoff.BackOff { return backoff.NewExponentialBackOff(backoff.WithRandomizationFactor(0)) })
		defer r.Stop()
		first := r.Retry(key("a"), 0, "")
		r.Retry(key("a"), 0, "")
		r.Ask(key("a"), time.Hour, "")
		r.Ask(key("b"), time.Minute, "")
		r.Forget(key("a"))
		r.Forget(key("unknown"))
		if got := r.Keys(); len(got) != 1 || got[0] != key("b") {
			t.Errorf("remembered are %v, want b alone", got)
		}
		if got := r.Retry(key("a"), 0, ""); got != first {
			t.Errorf("the pause is %s, want the first one, %s", got, first)
		}
		r.Forget(key("a"))
		if got := looks(q); len(got) != 1 || got[0] != "b 1m0s" {
			t.Errorf("looks are %q, want one at b", got)
		}
	})
}

// looks takes keys until there is none for a day, and says when each came.
func looks(q *Queue[string]) (at []string) {
	start := time.Now()
	end := time.AfterFunc(24*time.Hour, q.ShutDown)
	defer end.Stop()
	for {
		e, ok := q.Next()
		if !ok {
			return at
		}
		at = append(at, e.Key.Name+" "+time.Since(start).String())
		q.Done(e)
	}
}

func TestAKeyHasATimeThatWasAskedForAndOneOfItsRetryAndTheEarlierCounts(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(r *Retries[string])
		want []string
	}{
		"a retry alone":                    {func(r *Retries[string]) { r.Retry(key("a"), 0, "") }, []string{"a 1m0s"}},
		"a retry after a time of its own":  {func(r *Retries[string]) { r.RetryAfter(key("a"), time.Second, "") }, []string{"a 1s"}},
		"a retry that is not to be before": {func(r *Retries[string]) { r.Retry(key("a"), 2*time.Minute, "") }, []string{"a 2m0s"}},
		"a retry that may be before":       {func(r *Retries[string]) { r.Retry(key("a"), time.Second, "") }, []string{"a 1m0s"}},
		"settling drops a retry":           {func(r *Retries[string]) { r.Retry(key("a"), 0, ""); r.Settle(key("a")) }, nil},
		"settling drops no look asked for": {func(r *Retries[string]) { r.Ask(key("a"), time.Hour, ""); r.Settle(key("a")) }, []string{"a 1h0m0s"}},
		"the earliest look asked for": {func(r *Retries[string]) {
			r.Ask(key("a"), time.Hour, "")
			r.Ask(key("a"), time.Second, "")
			r.Ask(key("a"), time.Minute, "")
		}, []string{"a 1s"}},
		"a retry delays no look asked for": {func(r *Retries[string]) { r.Ask(key("a"), time.Second, ""); r.Retry(key("a"), 0, "") }, []string{"a 1s", "a 1m0s"}},
		"a look asked for delays no retry": {func(r *Retries[string]) { r.Retry(key("a"), 0, ""); r.Ask(key("a"), time.Hour, "") }, []string{"a 1m0s", "a 1h0m0s"}},
		"settling leaves the look asked for": {func(r *Retries[string]) {
			r.Retry(key("a"), 0, "")
			r.Ask(key("a"), time.Hour, "")
			r.Settle(key("a"))
		}, []string{"a 1h0m0s"}},
		"both at once are one look":           {func(r *Retries[string]) { r.Retry(key("a"), 0, ""); r.Ask(key("a"), time.Minute, "") }, []string{"a 1m0s"}},
		"what is due at once comes after all": {func(r *Retries[string]) { r.Ask(key("a"), -time.Second, "") }, []string{"a 1ns"}},
		"each key for itself": {func(r *Retries[string]) {
			r.Ask(key("b"), time.Second, "")
			r.Retry(key("a"), 0, "")
			r.Settle(key("b"))
		}, []string{"b 1s", "a 1m0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := New[string]()
				r := NewRetries(q, constant)
				defer r.Stop()
				tc.do(r)
				if diff := cmp.Diff(tc.want, looks(q)); diff != "" {
					t.Errorf("looks (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestALookThatWasAskedForWhileTheKeyIsWorkedOnComesAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[string]()
		r := NewRetries(q, constant)
		defer r.Stop()
		q.Add(key("a"), Fresh, "")
		e, _ := q.Next()
		r.Ask(key("a"), time.Second, "")
		time.Sleep(time.Minute)
		r.Settle(key("a"))
		q.Done(e)
		if diff := cmp.Diff([]string{"a 0s"}, looks(q)); diff != "" {
			t.Errorf("looks (-want +got):\n%s", diff)
		}
		if got := r.Asked(); got != 0 {
			t.Errorf("%d looks are pending", got)
		}
	})
}

func TestEachLookTellsWhoHasCausedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[string]()
		r := NewRetries(q, constant)
		defer r.Stop()
		defer q.ShutDown()
		r.Ask(key("a"), time.Hour, "1")
		r.Retry(key("a"), 0, "2")
		r.Settle(key("a"))
		r.Retry(key("a"), 0, "3")
		r.RetryAfter(key("a"), time.Second, "4")
		r.Ask(key("a"), 2*time.Hour, "5")
		var got []string
		for range 2 {
			e, _ := q.Next()
			got = append(got, e.Why[0])
			q.Done(e)
		}
		if diff := cmp.Diff([]string{"4", "1"}, got); diff != "" {
			t.Errorf("looks (-want +got):\n%s", diff)
		}
	})
}

func TestRetriesTellTheTimeUntilTheNextLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRetries(New[string](), constant)
		defer r.Stop()
		got := []time.Duration{r.Settle(key("a")), r.Ask(key("a"), time.Hour, ""), r.Retry(key("a"), 0, ""), r.Ask(key("a"), time.Second, ""), r.Settle(key("a"))}
		want := []time.Duration{0, time.Hour, time.Minute, time.Second, time.Second}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("times (-want +got):\n%s", diff)
		}
	})
}

func TestR3ABackOffThatStopsIsContinued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New[string]()
		r := NewRetries(q, func() backoff.BackOff { return &backoff.StopBackOff{} })
		defer r.Stop()
		defer q.ShutDown()
		if got := r.Retry(key("a"), 0, ""); got != MaxRetryInterval {
			t.Errorf("got a pause of %v, want %v", got, MaxRetryInterval)
		}
	})
}
