package inspector

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/giantswarm/micrologger"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
)

// TestWhatIsLookedUpIsWhatIsRemembered compares the two ways to find histories with the objects that a list in order of time would keep.
func TestWhatIsLookedUpIsWhatIsRemembered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 6).Draw(t, "limit")
		m := newMemory(Config{RecordsPerObject: 2, Objects: limit, Memory: 1 << 30})
		if hashes := rapid.IntRange(0, 4).Draw(t, "hashes"); hashes > 0 {
			m.hash = func(id objectID) uint64 { return uint64(id.key.Name[len(id.key.Name)-1]) % uint64(hashes) }
		}
		var calm, failing []string // the one that was reconciled longest ago first
		for range rapid.IntRange(1, 60).Draw(t, "records") {
			name := fmt.Sprint("object-", rapid.IntRange(0, 9).Draw(t, "object"))
			outcome := rapid.SampledFrom([]framework.Outcome{framework.Succeeded, framework.Failed}).Draw(t, "outcome")
			m.add(&framework.Record{Framework: "f", Key: informer.Key{Name: name}, Event: plan.UpdateEvent, Outcome: outcome})

			is := func(other string) bool { return other == name }
			calm, failing = slices.DeleteFunc(calm, is), slices.DeleteFunc(failing, is)
			if outcome == framework.Failed {
				failing = append(failing, name)
			} else {
				calm = append(calm, name)
			}
			if len(calm)+len(failing) > limit {
				if len(calm) > 0 {
					calm = calm[1:]
				} else {
					failing = failing[1:]
				}
			}

			var known []string
			for place, h := range m.histories() {
				known = append(known, h.id.key.Name)
				if h.place != place || m.history(h.id) != h {
					t.Fatalf("%s has place %d, and is at %d", h.id.key.Name, h.place, place)
				}
			}
			want := slices.Concat(calm, failing)
			slices.Sort(want)
			slices.Sort(known)
			hashed := 0
			for hash, h := range m.objects {
				if h == nil {
					t.Fatalf("nothing is left of hash %d but the hash", hash)
				}
				for ; h != nil; h = h.same {
					hashed++
				}
			}
			if !slices.Equal(known, want) || hashed != len(want) {
				t.Fatalf("%q are remembered, and %d by their IDs, want %q", known, hashed, want)
			}
		}
	})
}

// of is a record of a reconciliation of an object, whose name is in all of it.
func of(name string, outcome framework.Outcome) *framework.Record {
	r := &framework.Record{
		Framework: "sites", Key: informer.Key{Name: name}, Object: plan.Object{Kind: name, Name: name}, Event: plan.UpdateEvent, Outcome: outcome,
	}
	if outcome == framework.Failed {
		r.Error = name
	}
	return r
}

// TestRecordingTakesNoMemoryBesideTheRecordsOnceThereAreEnough holds that what was forgotten is used again: that of an object for another
// one, and that of a reconciliation that found nothing to do for the next one.
func TestRecordingTakesNoMemoryBesideTheRecordsOnceThereAreEnough(t *testing.T) {
	const limit, runs = 100, 2000
	for name, object := range map[string]func(int) string{
		"each of another object": func(n int) string { return fmt.Sprint("object-", n) },
		"all of one object":      func(int) string { return "object" },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory(Config{RecordsPerObject: 2, Objects: limit, Memory: 1 << 30})
			var records []*framework.Record
			for n := range 2*limit + runs + 1 { // AllocsPerRun runs once more than it is asked to
				records = append(records, of(object(n), framework.Succeeded))
			}
			next := func() {
				m.add(records[0])
				records = records[1:]
			}
			for range 2 * limit {
				next()
			}
			if got := testing.AllocsPerRun(runs, next); got > 0 {
				t.Errorf("%v allocations for a record, want none", got)
			}
		})
	}
}

func TestWhatSomebodyReadsIsNotUsedAgain(t *testing.T) {
	m := newMemory(Config{RecordsPerObject: 1, Objects: 1, Memory: 1 << 30})
	m.add(of("a", framework.Succeeded))
	done := m.reading()
	h := m.history(objectID{"sites", informer.Key{Name: "a"}})
	e := h.last.Load()
	m.add(of("a", framework.Failed)) // in place of the entry
	failed := h.last.Load()
	for _, name := range []string{"b", "c"} {
		m.add(of(name, framework.Succeeded)) // in place of the history
	}
	if h.id.key.Name != "a" || e.record.Outcome != framework.Succeeded || failed.record.Error != "a" {
		t.Errorf("what was read of a is of %q now, with %v and %v", h.id.key.Name, e.record, failed.record)
	}
	done()
	last := m.all[0]
	m.add(of("d", framework.Succeeded))
	m.add(of("e", framework.Succeeded))
	if m.all[0] != last {
		t.Error("what nobody reads any more is not used again")
	}
}

// TestARecordThatIsGivenOutIsNotUsedAgain reads an object, and looks at what was read after its reconciliations were forgotten and others
// were recorded, some of them in their place.
func TestARecordThatIsGivenOutIsNotUsedAgain(t *testing.T) {
	source, ended := informer.NewPush("sites"), make(chan struct{})
	i := newInspector(t, Config{Objects: 2, RecordsPerObject: 2})
	f := watching(t, i, framework.Config{Source: source, DisableFinalizer: true, Observer: telling{i, ended}})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := f.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer stop()
	reconcile := func(n int) {
		t.Helper()
		err := source.Update(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("object-", n%5), ResourceVersion: fmt.Sprint(n)}})
		if err != nil {
			t.Fatal(err)
		}
		<-ended
	}
	var read, was []string
	var objects []Object
	tell := func(o Object) string {
		text, err := json.Marshal(o.Reconciliations)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for n := range 200 {
		reconcile(n)
		if n%3 == 0 {
			o, _ := i.find(t.Context(), objectID{"sites", informer.Key{Name: fmt.Sprint("object-", n%5)}})
			objects, was = append(objects, o), append(was, tell(o))
		}
	}
	for _, o := range objects {
		read = append(read, tell(o))
	}
	if diff := cmp.Diff(was, read); diff != "" {
		t.Errorf("what was read is another one later (-then +now):\n%s", diff)
	}
}

func quiet(t *testing.T) micrologger.Logger {
	t.Helper()
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return logger
}

func newInspector(t *testing.T, config Config) *Inspector {
	t.Helper()
	config.Name, config.Logger = "o", quiet(t)
	i, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// watching is a framework with nothing to do that an inspector watches.
func watching(t *testing.T, i *Inspector, config framework.Config) *framework.Framework {
	t.Helper()
	config.Name, config.Logger, config.Resources = "sites", quiet(t), []framework.Resource{idle{}}
	f, err := framework.New(config)
	if err != nil {
		t.Fatal(err)
	}
	i.Watch(f)
	return f
}

// telling is an Inspector that tells when a record is in it.
type telling struct {
	*Inspector
	ended chan<- struct{}
}

func (o telling) Observe(r *framework.Record) {
	o.Inspector.Observe(r)
	o.ended <- struct{}{}
}

// TestWhatIsShownIsOfOneObject reads all that there is to read while each record has another object forgotten. With the race detector it
// shows more.
func TestWhatIsShownIsOfOneObject(t *testing.T) {
	i := newInspector(t, Config{Objects: 20, RecordsPerObject: 2})
	watching(t, i, framework.Config{Source: informer.NewPush("sites"), Observer: i})
	stop := make(chan struct{})
	var recording sync.WaitGroup
	recording.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			outcome := framework.Succeeded
			if n/1000%2 > 0 { // so that also the failing ones are forgotten
				outcome = framework.Failed
			}
			i.Observe(of(fmt.Sprint("object-", n/2), outcome))
		}
	})
	defer recording.Wait()
	defer close(stop)
	check := func(s ObjectSummary) {
		t.Helper()
		if s.Kind != s.Name || s.Error != "" && s.Error != s.Name {
			t.Errorf("of %s the kind is %q, and the error %q", s.Name, s.Kind, s.Error)
		}
	}
	for range 300 {
		list, err := i.list(t.Context(), query{wanted: wanted{limit: defaultLimit}})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range append(list.Objects, i.failing()...) {
			check(s)
			id := objectID{"sites", informer.Key{Name: s.Name}}
			i.memory.versionOf(id)
			o, found := i.find(t.Context(), id)
			if !found {
				continue
			}
			for _, r := range o.Reconciliations {
				if r.Key.Name != s.Name {
					t.Errorf("among the reconciliations of %s is one of %s", s.Name, r.Key.Name)
				}
			}
		}
	}
}
