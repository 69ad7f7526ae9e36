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
	return t.end
}

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
	const people = 5
	turns := newTurns()
	free := turns.occupy()
	same, other := wanted{words: "same"}, wanted{words: "other"}
	var mu sync.Mutex
	began := map[string]int{}
	var asking sync.WaitGroup
	ask := func(w wanted) {
		asking.Go(func() {
			list, err := turns.take(t.Context(), w, func() ObjectList {
				mu.Lock()
				defer mu.Unlock()
				began[w.words]++
				return ObjectList{Total: len(w.words)}
			})
			if err != nil || list.Total != len(w.words) {
				t.Errorf("%s: got %d objects and %v", w.words, list.Total, err)
			}
		})
	}
	for range people {
		ask(same)
	}
	ask(other)
	operatortest.Eventually(t, "all wait", func() bool { return turns.waitFor(same) == people && turns.waitFor(other) == 1 })
	free()
	asking.Wait()
	if began["same"] != 1 || began["other"] != 1 {
		t.Errorf("there were %v searches, want one of each", began)
	}
	if len(turns.waiting) != 0 {
		t.Errorf("%d searches are waited for by nobody", len(turns.waiting))
	}
}

func TestWhoAsksWhileASearchGoesOnWaitsForTheNextOne(t *testing.T) {
	turns := newTurns()
	var searches atomic.Int64
	count := func() ObjectList {
		return ObjectList{Total: int(searches.Add(1))}
	}
	var later sync.WaitGroup
	_, err := turns.take(t.Context(), wanted{}, func() ObjectList {
		later.Go(func() {
			if list, err := turns.take(t.Context(), wanted{}, count); err != nil || list.Total != 2 {
				t.Errorf("it is search %d that was waited for, and %v; want 2", list.Total, err)
			}
		})
		operatortest.Eventually(t, "the other one waits", func() bool { return turns.waitFor(wanted{}) == 1 })
		return count()
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
			_, err := turns.take(contexts[n], w, func() ObjectList { return ObjectList{} })
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
			_, err = turns.take(t.Context(), wanted{}, func() ObjectList { panic("no") })
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
	if _, err := turns.take(t.Context(), wanted{}, func() ObjectList { return ObjectList{} }); err != nil {
		t.Errorf("the next search: %v", err)
	}
}
