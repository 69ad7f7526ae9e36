package informer_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/informer"
)

// server is the model of an API server with a source that lags: the test decides when the source is
// shown the changes.
type server struct {
	t    *rapid.T
	hub  *informer.Hub
	feed *informer.Feed
	// clock is the newest version, and history has every change; shown is how many of them the
	// source was shown.
	clock   int
	history []change
	shown   int
	now     map[informer.Key]*corev1.ConfigMap
	open    []*request
	author  *informer.Author
	// known is the newest version of an object that was shown or answered, by UID. ended has the
	// objects that were shown to be gone.
	known map[types.UID]int
	ended map[types.UID]bool
	// foreign has the changes by others. woken has the newest readable version when the author was
	// woken.
	foreign []change
	// visible are the objects that were shown or answered. An object that existed only between two
	// listings is invisible.
	visible map[types.UID]bool
	// deleted are the objects that the author has deleted: earlier changes by others can no longer
	// be read.
	deleted map[types.UID]bool
	woken   map[informer.Key]int
	wakes   int
	// due is true from a wake to the next look.
	due bool
	// newest is the version up to which the source was shown everything: older versions are
	// repetitions.
	newest int
	// evented are the versions with an event.
	evented map[int]bool
	// reasons is how many wakes there may be.
	reasons int
	listed  bool
}

// change is one in the history of the server: of an object as it was then, or of its end.
type change struct {
	version int
	obj     *corev1.ConfigMap
	gone    bool
}

// request is a write of the author that was sent, and carried out if it has an answer.
type request struct {
	key    informer.Key
	write  *informer.Write
	base   string
	answer *corev1.ConfigMap
	gone   bool
	// same is true if it has changed nothing: the answer is the existing version.
	same bool
}

func newServer(t *rapid.T) *server {
	s := &server{
		t: t, clock: 1, now: map[informer.Key]*corev1.ConfigMap{}, author: &informer.Author{Framework: "f", Key: informer.Key{Name: "primary"}},
		known: map[types.UID]int{}, ended: map[types.UID]bool{}, visible: map[types.UID]bool{}, deleted: map[types.UID]bool{}, evented: map[int]bool{}, woken: map[informer.Key]int{},
	}
	s.hub, s.feed = informer.NewHub(informer.HubConfig{Name: "test", Compare: resourceversion.CompareResourceVersion})
	s.feed.Replace("", nil)
	s.hub.Subscribe(func(e informer.Event) {
		e.Wake("f", s.author.Key, func() {
			if !s.due {
				s.wakes++ // A queue has a key once.
			}
			s.due = true
		})
	})
	return s
}

// readable is up to which version a reader sees all changes of an object.
func (s *server) readable(key informer.Key) int {
	obj, exists, _ := s.hub.Get(key)
	if exists {
		return versionOf(obj.(*corev1.ConfigMap))
	}
	// It sees that there is none: that is so since the end of the newest one that the source knows.
	newest := 0
	for _, c := range s.history {
		if c.gone && c.obj.Name == key.Name && s.ended[c.obj.UID] {
			newest = c.version
		}
	}
	return newest
}

func versionOf(obj *corev1.ConfigMap) int {
	version, _ := strconv.Atoi(obj.ResourceVersion)
	return version
}

// carryOut makes a change: the object changes, is created or, with gone, deleted. It returns nil if
// there is nothing to delete.
func (s *server) carryOut(key informer.Key, gone bool) (obj *corev1.ConfigMap, base string) {
	old, exists := s.now[key]
	if gone && !exists {
		return nil, ""
	}
	s.clock++
	version := strconv.Itoa(s.clock)
	if exists {
		obj, base = old.DeepCopy(), old.ResourceVersion
	} else {
		obj, base = configMap(key.Namespace, key.Name, "uid"+version, version), informer.Created
	}
	obj.ResourceVersion = version
	s.history = append(s.history, change{s.clock, obj, gone})
	s.now[key] = obj
	if gone {
		delete(s.now, key)
	}
	return obj, base
}

// show shows the source the next change.
func (s *server) show() {
	c := s.history[s.shown]
	s.shown++
	s.saw(c)
	s.visible[c.obj.UID] = s.visible[c.obj.UID] || c.version > s.newest
	s.newest = max(s.newest, c.version)
	s.evented[c.version] = true
	s.tell(c)
}

func (s *server) tell(c change) {
	if c.gone {
		s.feed.Remove(itemOf(c.obj))
		return
	}
	s.feed.Set(itemOf(c.obj))
}

func (s *server) saw(c change) {
	s.known[c.obj.UID] = max(s.known[c.obj.UID], c.version)
	s.ended[c.obj.UID] = s.ended[c.obj.UID] || c.gone
}

// list shows the source the state after a number of changes, from which the watch then continues. A
// list that is older than the shown state is refused, as by a real source.
func (s *server) list(upTo int) {
	objects := map[informer.Key]*corev1.ConfigMap{}
	for _, c := range s.history[:upTo] {
		key := itemOf(c.obj).Key
		objects[key] = c.obj
		if c.gone {
			delete(objects, key)
		}
		if upTo >= s.shown {
			s.saw(c)
		}
	}
	var items []informer.Item
	for _, obj := range objects {
		items = append(items, itemOf(obj))
		s.visible[obj.UID] = s.visible[obj.UID] || versionOf(obj) > s.newest
	}
	version := 1
	if upTo > 0 {
		version = s.history[upTo-1].version
	}
	s.newest = max(s.newest, version)
	s.shown, s.listed = max(s.shown, upTo), true
	s.feed.ReplaceAsOf("", items, strconv.Itoa(version))
}

// check asserts that no read returns a state older than a shown or answered one.
func (s *server) check() {
	if s.due {
		for _, key := range objectKeys {
			s.woken[key] = s.readable(key)
		}
		s.due = false
	}
	for _, key := range objectKeys {
		got, exists, _ := s.hub.Get(key)
		if exists {
			obj := got.(*corev1.ConfigMap)
			if s.ended[obj.UID] {
				s.t.Fatalf("%s is read with UID %s, which is known to be gone", key, obj.UID)
			}
			if versionOf(obj) < s.known[obj.UID] {
				s.t.Fatalf("%s is read at version %s, and known at %d", key, obj.ResourceVersion, s.known[obj.UID])
			}
			continue
		}
		for _, c := range s.history {
			if c.obj.Name == key.Name && s.known[c.obj.UID] >= c.version && !s.ended[c.obj.UID] && !s.overtaken(key, c.obj.UID) {
				s.t.Fatalf("%s is not there, and known with UID %s at version %d", key, c.obj.UID, s.known[c.obj.UID])
			}
		}
	}
}

// overtaken reports whether a later object of the name is known.
func (s *server) overtaken(key informer.Key, id types.UID) bool {
	later := false
	for _, c := range s.history {
		if c.obj.Name != key.Name {
			continue
		}
		if c.obj.UID == id {
			later = true
		} else if later && s.known[c.obj.UID] > 0 {
			return true
		}
	}
	return false
}

var objectKeys = []informer.Key{{Namespace: "a", Name: "x"}, {Namespace: "a", Name: "y"}}

// TestR11AnyOrderOfWritesEventsAndListingsIsReadAndWakesAsPromised interleaves own writes, writes
// of others, events, cut watches and listings that lag.
func TestR11AnyOrderOfWritesEventsAndListingsIsReadAndWakesAsPromised(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newServer(t)
		keys := rapid.SampledFrom(objectKeys)
		mayLag := rapid.Bool().Draw(t, "watches are cut")
		actions := map[string]func(*rapid.T){
			"": func(*rapid.T) { s.check() },
			"somebody writes": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				if obj, _ := s.carryOut(key, rapid.Bool().Draw(t, "delete")); obj != nil {
					s.foreign, s.reasons = append(s.foreign, s.history[len(s.history)-1]), s.reasons+1
				}
			},
			"send": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				if slices.ContainsFunc(s.open, func(r *request) bool { return r.key == key }) {
					t.Skip("a reconciliation writes an object once at a time")
				}
				r := &request{key: key, write: s.feed.Begin(key, s.author)}
				s.open = append(s.open, r)
				// What is deleted has been read: from the source, or as the answer to a write.
				old, exists := s.now[key]
				r.gone = exists && s.known[old.UID] > 0 && rapid.Bool().Draw(t, "delete")
				r.same = exists && !r.gone && rapid.IntRange(0, 2).Draw(t, "changes nothing") == 0
				if r.same {
					r.answer, r.base = old.DeepCopy(), old.ResourceVersion
				} else {
					r.answer, r.base = s.carryOut(key, r.gone)
				}
				s.deleted[r.answer.UID] = r.gone
				if r.base != informer.Created && rapid.Bool().Draw(t, "blind") {
					r.base = ""
				}
			},
			"answer": func(t *rapid.T) {
				if len(s.open) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(s.open)-1).Draw(t, "request")
				r := s.open[i]
				s.open = slices.Delete(s.open, i, i+1)
				s.finish(r, rapid.IntRange(0, 9).Draw(t, "lost") == 0)
			},
			"event": func(t *rapid.T) {
				if s.shown == len(s.history) {
					t.Skip()
				}
				s.show()
			},
		}
		actions["repeat"] = func(t *rapid.T) {
			if s.shown == 0 {
				t.Skip()
			}
			if c := s.history[rapid.IntRange(0, s.shown-1).Draw(t, "change")]; s.evented[c.version] {
				s.tell(c)
				s.reasons++
			}
		}
		if mayLag {
			actions["list"] = func(t *rapid.T) { s.list(rapid.IntRange(0, len(s.history)).Draw(t, "changes")) }
		}
		t.Repeat(actions)
		for _, r := range s.open {
			s.finish(r, false)
			s.check()
		}
		for s.shown < len(s.history) {
			s.show()
			s.check()
		}
		if s.listed {
			s.list(len(s.history))
			s.check()
		}
		for _, c := range s.foreign {
			if key := itemOf(c.obj).Key; s.visible[c.obj.UID] && !s.deleted[c.obj.UID] && s.woken[key] < c.version {
				t.Fatalf("%s was changed by somebody else at version %d, and the last wake read %d", key, c.version, s.woken[key])
			}
		}
		if !s.listed && s.wakes > s.reasons {
			t.Fatalf("%d wakes for %d reasons", s.wakes, s.reasons)
		}
		if stored := len(s.hub.List()); stored != len(s.now) {
			t.Fatalf("%d objects are stored, there are %d", stored, len(s.now))
		}
		if left := s.hub.OpenWrites(); left != 0 {
			t.Fatalf("%d writes have not ended", left)
		}
	})
}

// finish answers a request.
func (s *server) finish(r *request, lost bool) {
	switch {
	case r.answer == nil:
		r.write.Unknown()
	case lost:
		if !r.same {
			s.reasons++
		}
		r.write.Unknown()
	case r.gone:
		s.known[r.answer.UID], s.ended[r.answer.UID] = max(s.known[r.answer.UID], versionOf(r.answer)), true
		r.write.Gone(r.answer.UID)
	default:
		s.known[r.answer.UID], s.visible[r.answer.UID] = max(s.known[r.answer.UID], versionOf(r.answer)), true
		if r.base == "" && !r.same {
			s.reasons++ // It may have changed something.
		}
		r.write.Stored(itemOf(r.answer), r.base, true)
	}
}

func TestR11AKeptWriteWakesItsAuthor(t *testing.T) {
	for _, first := range []bool{true, false} {
		t.Run(fmt.Sprintf("kept first %t", first), func(t *testing.T) {
			hub, feed := informer.NewHub(informer.HubConfig{Name: "test", Compare: resourceversion.CompareResourceVersion})
			feed.Replace("", nil)
			author := &informer.Author{Framework: "f", Key: informer.Key{Name: "p"}}
			woken := map[string]int{}
			hub.Subscribe(func(e informer.Event) {
				for _, framework := range []string{"f", "g"} {
					for _, name := range []string{"p", "q"} {
						e.Wake(framework, informer.Key{Name: name}, func() { woken[framework+name]++ })
					}
				}
			})
			if first {
				author.KeepOwn()
			}
			feed.Begin(informer.Key{Namespace: "a", Name: "x"}, author).Stored(itemOf(configMap("a", "x", "u", "5")), informer.Created, true)
			if !first {
				if woken["fp"] != 0 {
					t.Errorf("woken %v", woken)
				}
				author.KeepOwn()
			}
			if want := map[string]int{"fp": 1, "fq": 1, "gp": 1, "gq": 1}; !maps.Equal(woken, want) {
				t.Errorf("woken %v, want %v", woken, want)
			}
		})
	}
}

// An object leaves the selection, and an own write, based on that state, brings it back before the
// source has shown that it left.
func TestR11AnObjectThatIsBroughtBackIntoTheSelectionByAWriteStays(t *testing.T) {
	for name, base := range map[string]string{"in the version that had left": "6", "in no version": ""} {
		t.Run(name, func(t *testing.T) {
			hub, feed := informer.NewHub(informer.HubConfig{Name: "test", Compare: resourceversion.CompareResourceVersion})
			feed.Replace("", nil)
			author, wakes := &informer.Author{Framework: "f", Key: informer.Key{Name: "primary"}}, 0
			hub.Subscribe(func(e informer.Event) { e.Wake("f", author.Key, func() { wakes++ }) })
			of := informer.Key{Namespace: "default", Name: "a"}
			at := func(version string) informer.Item {
				obj := &corev1.ConfigMap{}
				obj.Namespace, obj.Name, obj.UID, obj.ResourceVersion = of.Namespace, of.Name, "a", version
				return informer.Item{Key: of, Object: obj, Version: version}
			}
			wants := func(when string) {
				t.Helper()
				obj, exists, err := hub.Get(of)
				if err != nil || !exists || obj.(*corev1.ConfigMap).ResourceVersion != "7" {
					t.Errorf("%s the source has %v, %v", when, obj, err)
				}
			}
			feed.Set(at("5"))
			wakes = 0
			feed.Begin(of, author).Stored(at("7"), base, true)
			wants("once it was written")
			feed.Remove(at("6"))
			wants("once it is shown that it had left")
			feed.Set(at("7"))
			wants("once the write is shown")
			if wakes == 0 {
				t.Error("who wrote was not woken for what somebody else had changed")
			}
			if hub.OpenWrites() > 0 {
				t.Errorf("%d writes have not ended", hub.OpenWrites())
			}
		})
	}
}
