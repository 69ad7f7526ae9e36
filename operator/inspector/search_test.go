package inspector_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestOverviewCountsWhatFailsAndNotWhatIsRemembered(t *testing.T) {
	const fail, remembered = 30, 20
	sites := []*corev1.ConfigMap{site("fine")}
	for n := range fail {
		sites = append(sites, site(fmt.Sprintf("broken-%02d", n), failsKey, "no space left"))
	}
	w := start(t, inspector.Config{Objects: remembered}, sites)
	w.reconciled(fail + 1)

	overview := read[inspector.Overview](w, "overview")
	if overview.FailingCount != fail || len(overview.Failing) != remembered || overview.Frameworks[0].Status.Failing != fail {
		t.Errorf("%d objects fail, of which %d are named; want %d and %d", overview.FailingCount, len(overview.Failing), fail, remembered)
	}
	list := read[inspector.ObjectList](w, "objects?state=failing")
	forgotten := 0
	for _, o := range list.Objects {
		if o.FailingSince.IsZero() {
			t.Errorf("it is not told since when %s fails", o.Name)
		}
		if o.Error == "" {
			forgotten++
			has(t, o.Reason, "its reconciliations are forgotten")
		}
	}
	if list.Total != fail || forgotten != fail-remembered {
		t.Errorf("%d objects are found, %d of them forgotten; want %d and %d", list.Total, forgotten, fail, fail-remembered)
	}
	page := w.get("", http.StatusOK)
	has(t, page, "30 objects fail", "All 30 failing objects")
	if rows := strings.Count(page, `id="failing-sites`); rows != 10 {
		t.Errorf("the page names %d failing objects, want ten and the rest on request", rows)
	}
	has(t, w.get("objects?state=failing", http.StatusOK), "1 to 30 of 30 objects", "its reconciliations are forgotten")
	var oldest string
	for _, o := range list.Objects {
		if o.Error == "" {
			oldest = o.Name
		}
	}
	has(t, w.get(objectPath(oldest), http.StatusOK), "fails since", "its reconciliations are forgotten")
}

func TestFiftyThousandFailingObjectsStayWithinTheBudgetOfMemory(t *testing.T) {
	const objects, budget = 50_000, 16 << 20
	w := quietly(t, inspector.Config{Memory: budget, Objects: objects})
	before := heap()
	for n := range uint64(objects) {
		r := failed(fmt.Sprintf("site-%05d", n), n)
		text := fmt.Sprintf("update of Site default/site-%05d: %s", n, strings.Repeat("x", 500))
		r.Error, r.Resources[0].Error = text, strings.Clone(text[8:])
		r.Resources[0].Changes = nil
		r.Triggers = []framework.Trigger{{Cause: framework.CauseRetry}}
		w.inspector.Observe(r)
	}
	grown := heap() - before
	t.Logf("%d failing objects take %.2f of the budget", objects, float64(grown)/budget)
	// What is counted is an estimate.
	if grown > budget*11/10 {
		t.Errorf("%d failing objects take %d bytes, the budget is %d", objects, grown, budget)
	}
	runtime.KeepAlive(w)
}

func TestListsShowTheBeginningOfAnErrorAndTheObjectAllOfIt(t *testing.T) {
	w := start(t, inspector.Config{}, []*corev1.ConfigMap{site("home", failsKey, strings.Repeat("long ", 300)+"end")})
	w.reconciled(1)
	for _, path := range []string{"", "objects"} {
		page := w.get(path, http.StatusOK)
		has(t, page, "long long")
		lacks(t, page, "end</td>")
	}
	page := w.get(objectPath("home"), http.StatusOK)
	has(t, page, "long end")
	if n := strings.Count(page, "long end"); n != 1 {
		t.Errorf("the error is told %d times", n)
	}
	if got := read[inspector.ObjectList](w, "objects").Objects[0].Error; !strings.HasSuffix(got, "long end") {
		t.Errorf("the JSON has %q", got)
	}
}

func TestOneSearchGoesOnAtATimeAndDelaysNoOtherPage(t *testing.T) {
	source := &slowKeys{Source: pushOf(t, site("home")), release: make(chan struct{})}
	w := startFramework(t, inspector.Config{Name: "o", Logger: quiet(t)}, framework.Config{Source: source, Resources: []framework.Resource{&plain{name: "r", do: nothingToDo}}})
	var searching sync.WaitGroup
	for n := range 5 {
		searching.Go(func() { w.names(fmt.Sprintf("limit=%d", n+1)) })
	}
	operatortest.Eventually(t, "a search goes on", func() bool { return source.listing.Load() == 1 })
	w.get("", http.StatusOK)
	w.get(objectPath("home"), http.StatusOK)
	close(source.release)
	searching.Wait()
	if most := source.most.Load(); most != 1 {
		t.Errorf("%d searches went on at once, want 1", most)
	}
}

func TestOfTooManyWordsNoneIsSearchedFor(t *testing.T) {
	w := start(t, inspector.Config{}, []*corev1.ConfigMap{site("home")})
	for words, status := range map[int]int{32: http.StatusOK, 33: http.StatusBadRequest} {
		query := "objects?q=" + strings.Repeat("home+", words)
		page, list := w.get(query, status), w.get("api/v1/"+query, status)
		if status == http.StatusBadRequest {
			has(t, page, "q must have 32 words at most, has 33")
			has(t, list, "q must have 32 words at most, has 33")
		}
	}
}

// slowKeys is a source whose keys are listed when that is allowed.
type slowKeys struct {
	informer.Source
	release       chan struct{}
	listing, most atomic.Int64
}

func (s *slowKeys) Keys() []informer.Key {
	s.most.Store(max(s.most.Load(), s.listing.Add(1)))
	<-s.release
	s.listing.Add(-1)
	return []informer.Key{{Namespace: "default", Name: "home"}}
}

func pushOf(t testing.TB, sites ...*corev1.ConfigMap) *informer.Push {
	t.Helper()
	source := informer.NewPush(kind)
	for _, s := range sites {
		if err := source.Update(s); err != nil {
			t.Fatal(err)
		}
	}
	return source
}

func nothingToDo(context.Context, *corev1.ConfigMap) error { return nil }
