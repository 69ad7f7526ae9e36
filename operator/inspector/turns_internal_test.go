package inspector

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// occupy has a search go on until free is called.
func (t *turns) occupy() (free func()) {
	t.busy <- struct{}{}
	return func() { <-t.busy }
}

// asking is a query for a list.
func asking(w wanted) query { return query{wanted: w} }

// waitFor returns how many wait for a search.
func (t *turns) waitFor(w wanted) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one := t.waiting[w]; one != nil {
		return one.asking
	}
	return 0
}

func TestThoseWhoWaitForTheSameListShareOneSearchThatBeginsAfterAllHaveAsked(t *testing.T) {
	const alike = 5
	turns := newTurns()
	free := turns.occupy()
	same, other := wanted{words: "same"}, wanted{words: "other"}
	var mu sync.Mutex
	began, passes := map[string]int{}, 0
	var people sync.WaitGroup
	ask := func(w wanted) {
		people.Go(func() {
			list, err := turns.take(t.Context(), asking(w), func(all []query) (lists []ObjectList) {
				mu.Lock()
				defer mu.Unlock()
				passes++
				for _, q := range all {
					began[q.words]++
					lists = append(lists, ObjectList{Total: len(q.words)})
				}
				return lists
			})
			if err != nil || list.Total != len(w.words) {
				t.Errorf("%s: got %d objects and %v", w.words, list.Total, err)
			}
		})
	}
	for range alike {
		ask(same)
	}
	ask(other)
	operatortest.Eventually(t, "all wait", func() bool { return turns.waitFor(same) == alike && turns.waitFor(other) == 1 })
	free()
	people.Wait()
	if began["same"] != 1 || began["other"] != 1 || passes != 1 {
		t.Errorf("there were %v searches in %d passes, want one of each in one", began, passes)
	}
	if len(turns.waiting) != 0 {
		t.Errorf("%d searches are waited for by nobody", len(turns.waiting))
	}
}

func TestWhoAsksWhileASearchGoesOnWaitsForTheNextOne(t *testing.T) {
	turns := newTurns()
	var searches atomic.Int64
	count := func([]query) []ObjectList {
		return []ObjectList{{Total: int(searches.Add(1))}}
	}
	var later sync.WaitGroup
	_, err := turns.take(t.Context(), query{}, func(all []query) []ObjectList {
		later.Go(func() {
			if list, err := turns.take(t.Context(), query{}, count); err != nil || list.Total != 2 {
				t.Errorf("it is search %d that was waited for, and %v; want 2", list.Total, err)
			}
		})
		operatortest.Eventually(t, "the other one waits", func() bool { return turns.waitFor(wanted{}) == 1 })
		return count(all)
	})
	later.Wait()
	if err != nil {
		t.Error(err)
	}
}

func TestASearchIsForgottenWhenNobodyWaitsForItAnyMore(t *testing.T) {
	turns := newTurns()
	free := turns.occupy()
	defer free()
	w := wanted{words: "same"}
	contexts := [2]context.Context{}
	var cancels [2]context.CancelFunc
	ended := make(chan error)
	for n := range contexts {
		contexts[n], cancels[n] = context.WithCancel(t.Context())
		go func() {
			_, err := turns.take(contexts[n], asking(w), func([]query) []ObjectList { return nil })
			ended <- err
		}()
	}
	operatortest.Eventually(t, "both wait", func() bool { return turns.waitFor(w) == 2 })
	for n, left := range []int{1, 0} {
		cancels[n]()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		if got := turns.waitFor(w); got != left {
			t.Errorf("%d wait, want %d", got, left)
		}
	}
	if len(turns.waiting) != 0 {
		t.Error("a search is waited for by nobody")
	}
}

func TestThoseWhoWaitForASearchThatFailsAreTold(t *testing.T) {
	const people = 3
	turns := newTurns()
	free := turns.occupy()
	ended := make(chan error)
	for range people {
		go func() {
			var err error
			defer func() {
				if recover() != nil {
					err = errors.New("panic")
				}
				ended <- err
			}()
			_, err = turns.take(t.Context(), query{}, func([]query) []ObjectList { panic("no") })
		}()
	}
	operatortest.Eventually(t, "all wait", func() bool { return turns.waitFor(wanted{}) == people })
	free()
	told := 0
	for range people {
		if errors.Is(<-ended, errSearchFailed) {
			told++
		}
	}
	if told != people-1 {
		t.Errorf("%d are told that the search failed, want %d", told, people-1)
	}
	if _, err := turns.take(t.Context(), query{}, func([]query) []ObjectList { return []ObjectList{{}} }); err != nil {
		t.Errorf("the next search: %v", err)
	}
}

func TestMoreSearchesThanFitTogetherAreAllDone(t *testing.T) {
	turns := newTurns()
	free := turns.occupy()
	var people sync.WaitGroup
	var passes atomic.Int64
	for n := range maxTogether + 5 {
		people.Go(func() {
			w := wanted{offset: n}
			list, err := turns.take(t.Context(), asking(w), func(all []query) (lists []ObjectList) {
				passes.Add(1)
				for _, q := range all {
					lists = append(lists, ObjectList{Total: q.offset})
				}
				return lists
			})
			if err != nil || list.Total != n {
				t.Errorf("%d: got the list of %d and %v", n, list.Total, err)
			}
		})
	}
	operatortest.Eventually(t, "all wait", func() bool {
		turns.mu.Lock()
		defer turns.mu.Unlock()
		return len(turns.waiting) == maxTogether+5
	})
	free()
	people.Wait()
	if passes.Load() != 2 {
		t.Errorf("there were %d passes, want 2", passes.Load())
	}
}
