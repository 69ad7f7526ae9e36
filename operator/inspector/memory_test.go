package inspector_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/inspector"
)

// quietly is a world whose records come from the test alone.
func quietly(t *testing.T, config inspector.Config) *world {
	t.Helper()
	return start(t, config, nil)
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// record is a successful reconciliation of a site, with a change.
func record(name string, loop uint64) *framework.Record {
	return &framework.Record{
		Framework: kind, Key: informer.Key{Namespace: "default", Name: name}, Event: plan.UpdateEvent, Loop: loop,
		Object:  plan.Object{Kind: "Site", Namespace: "default", Name: name},
		Started: epoch.Add(time.Duration(loop) * time.Second), Duration: time.Millisecond, Outcome: framework.Succeeded,
		Resources: []framework.ResourceRecord{{Name: "r", Duration: time.Millisecond, Changes: []plan.Change{{Action: plan.Update}}}},
	}
}

func failed(name string, loop uint64) *framework.Record {
	r := record(name, loop)
	r.Outcome, r.Error = framework.Failed, "no"
	return r
}

// nothing is a reconciliation that found nothing to do.
func nothing(name string, loop uint64) *framework.Record {
	r := record(name, loop)
	r.Resources[0].Changes = nil
	return r
}

// loops are the numbers of what is remembered of a site, and how many others each stands for.
func (w *world) loops(name string) []string {
	w.t.Helper()
	var loops []string
	for _, r := range read[inspector.Object](w, objectPath(name)).Reconciliations {
		loop := fmt.Sprint(r.Loop)
		if r.Repeats > 0 {
			loop += fmt.Sprintf(" and %d since %s", r.Repeats, r.RepeatedSince.Sub(epoch))
		}
		loops = append(loops, loop)
	}
	return loops
}

func (w *world) names(query string) (names []string) {
	w.t.Helper()
	for _, o := range read[inspector.ObjectList](w, "objects?"+query).Objects {
		names = append(names, o.Name)
	}
	return names
}

func TestOnlyTheLastReconciliationsOfAnObjectAreRemembered(t *testing.T) {
	w := quietly(t, inspector.Config{RecordsPerObject: 3})
	for loop := range uint64(5) {
		w.inspector.Observe(record("a", loop+1))
	}
	if diff := cmp.Diff([]string{"5", "4", "3"}, w.loops("a")); diff != "" {
		t.Errorf("remembered (-want +got):\n%s", diff)
	}
}

func TestReconciliationsThatFindNothingToDoDoNotPushOutOthers(t *testing.T) {
	w := quietly(t, inspector.Config{RecordsPerObject: 3})
	w.inspector.Observe(record("a", 1))
	for loop := range uint64(100) {
		w.inspector.Observe(nothing("a", loop+2))
	}
	w.inspector.Observe(failed("a", 200))
	if diff := cmp.Diff([]string{"200", "101 and 99 since 2s", "1"}, w.loops("a")); diff != "" {
		t.Errorf("remembered (-want +got):\n%s", diff)
	}
}

func TestObjectsThatFailAreForgottenLast(t *testing.T) {
	w := quietly(t, inspector.Config{Objects: 3})
	w.inspector.Observe(failed("bad", 1))
	for loop := range uint64(10) {
		w.inspector.Observe(record(fmt.Sprintf("good-%d", loop), loop+2))
	}
	if diff := cmp.Diff([]string{"bad", "good-8", "good-9"}, w.names("")); diff != "" {
		t.Errorf("remembered (-want +got):\n%s", diff)
	}
	for loop := range uint64(10) {
		w.inspector.Observe(failed(fmt.Sprintf("worse-%d", loop), loop+20))
	}
	if diff := cmp.Diff([]string{"worse-7", "worse-8", "worse-9"}, w.names("")); diff != "" {
		t.Errorf("remembered (-want +got):\n%s", diff)
	}
	if got := len(read[inspector.Overview](w, "overview").Failing); got != 3 {
		t.Errorf("%d objects that fail are named, want 3", got)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	const limit = 2 << 20
	w := quietly(t, inspector.Config{Memory: limit, Objects: 1_000_000})
	before := heap()
	for loop := range uint64(20_000) {
		r := record(fmt.Sprintf("site-%d", loop), loop)
		for n := range 4 {
			r.Resources[0].Changes = append(r.Resources[0].Changes, plan.Change{
				Action: plan.Update, Fields: []plan.FieldChange{{Path: fmt.Sprintf("data.%d", n), New: strings.Repeat("x", 100)}},
			})
		}
		w.inspector.Observe(r)
	}
	// What was counted is an estimate.
	if grown := heap() - before; grown > 3*limit {
		t.Errorf("the records take %d bytes, want about %d", grown, limit)
	}
	runtime.KeepAlive(w)
}

// heap is how many bytes live objects take.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestOneHugeRecordTakesNoMoreThanItsShare(t *testing.T) {
	w := quietly(t, inspector.Config{})
	r := record("huge", 1)
	r.Error = strings.Repeat("e", 1<<20)
	r.Resources[0].Changes = nil
	description, value := strings.Repeat("d", 1<<16), strings.Repeat("v", 1<<12)
	for range 1000 {
		c := plan.Change{Action: plan.Create, Object: plan.Object{Name: "child"}, Description: description}
		for n := range 210 {
			c.Fields = append(c.Fields, plan.FieldChange{Path: fmt.Sprintf("field-%d", n), New: []any{value}})
		}
		r.Resources[0].Changes = append(r.Resources[0].Changes, c)
	}
	shared := r.Resources[0].Changes[0].Fields
	w.inspector.Observe(r)

	text := w.get("api/v1/"+objectPath("huge"), 200)
	if len(text) > 1<<20 {
		t.Errorf("what is left of it takes %d bytes as JSON", len(text))
	}
	has(t, text, "… and 800 more changes", "left out because the record is too large")
	if got := shared[0].New.([]any)[0].(string); len(got) != 1<<12 {
		t.Errorf("the value in the change itself was cut to %d bytes: it belongs to others", len(got))
	}
	w.get(objectPath("huge"), 200)
}

func TestObjectThatRecoversFailsNoMore(t *testing.T) {
	w := quietly(t, inspector.Config{})
	w.inspector.Observe(failed("a", 1))
	w.inspector.Observe(failed("a", 2))
	got := read[inspector.Overview](w, "overview")
	want := []inspector.ObjectSummary{{
		Framework: kind, Namespace: "default", Name: "a", Kind: "Site", State: "failing", Error: "no",
		FailingSince: epoch.Add(time.Second), Failures: 2, Last: epoch.Add(2 * time.Second),
	}}
	if diff := cmp.Diff(want, got.Failing); diff != "" {
		t.Errorf("failing (-want +got):\n%s", diff)
	}
	w.inspector.Observe(record("a", 3))
	if got := read[inspector.Overview](w, "overview"); len(got.Failing) != 0 {
		t.Errorf("still failing: %v", got.Failing)
	}
}

func TestRecordOfAFrameworkThatIsNotWatchedIsDropped(t *testing.T) {
	w := quietly(t, inspector.Config{})
	r := record("a", 1)
	r.Framework = "unknown"
	w.inspector.Observe(r)
	if names := w.names(""); len(names) > 0 {
		t.Errorf("remembered %v", names)
	}
}
