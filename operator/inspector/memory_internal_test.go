package inspector

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/giantswarm/micrologger"
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
			for _, h := range m.histories() {
				known = append(known, h.id.key.Name)
				if m.history(h.id) != h {
					t.Fatalf("%s is not found by its name", h.id.key.Name)
				}
			}
			want := slices.Concat(calm, failing)
			slices.Sort(want)
			slices.Sort(known)
			if !slices.Equal(known, want) {
				t.Fatalf("%q are remembered, want %q", known, want)
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
			i.lastStarted(id)
			o, err := i.find(t.Context(), id)
			if err != nil {
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
