package informer_test

import (
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/informer"
)

// compactedLog is the model of a log. Its source is shown the newest version of each key, and not
// always the earlier ones.
type compactedLog struct {
	t    *rapid.T
	hub  *informer.Hub
	feed *informer.Feed
	// history has every change in order, and shown is how many of them the source was shown or has
	// missed.
	history []*logged
	shown   int
	open    []*underWay
	author  *informer.Author
	// known is the newest change of a key that was shown or answered.
	known map[informer.Key]*logged
	woken map[informer.Key]int
	// wakes is how often the author was woken, and reasons how often it may have been. due is true
	// from a wake until the next read.
	wakes, reasons int
	due, listed    bool
}

// logged is a change: obj is what there is since, and nil for an end.
type logged struct {
	key     informer.Key
	version int
	obj     *corev1.ConfigMap
	foreign bool
	// True if the source was shown this change, and not only later ones. An end counts if the
	// source had the object that it ended.
	told bool
	// answered is true if it is a write that was answered.
	answered bool
}

// underWay is a write of the author.
type underWay struct {
	write  *informer.Write
	change *logged
	base   string
}

func newCompactedLog(t *rapid.T) *compactedLog {
	l := &compactedLog{
		t: t, author: &informer.Author{Framework: "f", Key: informer.Key{Name: "primary"}}, known: map[informer.Key]*logged{}, woken: map[informer.Key]int{},
	}
	l.hub, l.feed = informer.NewHub(informer.HubConfig{Name: "test", Compare: resourceversion.CompareResourceVersion, Compacted: true})
	l.feed.Replace("", nil)
	l.hub.Subscribe(func(e informer.Event) {
		e.Wake("f", l.author.Key, func() {
			if !l.due {
				l.wakes++ // A queue has a key once.
			}
			l.due = true
		})
	})
	return l
}

// newest is the last of the first changes that is one of a key, or nil.
func (l *compactedLog) newest(key informer.Key, changes int) *logged {
	for _, c := range slices.Backward(l.history[:changes]) {
		if c.key == key {
			return c
		}
	}
	return nil
}

// write executes a change of a key and returns it with its base. It returns nil if there is nothing
// to end.
func (l *compactedLog) write(key informer.Key, end, foreign bool) (*logged, string) {
	before := l.newest(key, len(l.history))
	exists := before != nil && before.obj != nil
	if end && !exists {
		return nil, ""
	}
	c := &logged{key: key, version: len(l.history) + 2, foreign: foreign}
	version, base := strconv.Itoa(c.version), informer.Created
	switch {
	case exists:
		base = strconv.Itoa(before.version)
		c.obj = before.obj.DeepCopy()
		c.obj.ResourceVersion = version
	default:
		c.obj = configMap(key.Namespace, key.Name, "uid"+version, version)
	}
	if end {
		c.obj = nil
	}
	l.history = append(l.history, c)
	return c, base
}

func (l *compactedLog) saw(c *logged) {
	if known := l.known[c.key]; known == nil || known.version < c.version {
		l.known[c.key] = c
	}
}

// show shows the source a change.
func (l *compactedLog) show(c *logged) {
	obj, exists, _ := l.hub.Get(c.key)
	c.told = c.obj != nil || exists && versionOf(obj.(*corev1.ConfigMap)) < c.version
	l.saw(c)
	if c.obj == nil {
		l.feed.End(c.key, strconv.Itoa(c.version), false)
		return
	}
	l.feed.Set(itemOf(c.obj))
}

// list shows the source all there was after a number of changes.
func (l *compactedLog) list(changes int) {
	var items []informer.Item
	for _, key := range objectKeys {
		c := l.newest(key, changes)
		switch {
		case c == nil:
		case c.obj == nil:
			l.show(c)
		default:
			c.told = true
			l.saw(c)
			items = append(items, itemOf(c.obj))
		}
	}
	l.shown, l.listed = changes, true
	l.feed.ReplaceAsOf("", items, strconv.Itoa(changes+1))
}

// finish answers a write.
func (l *compactedLog) finish(s *underWay, lost bool) {
	s.change.answered = !lost
	switch version := strconv.Itoa(s.change.version); {
	case lost:
		l.reasons++
		s.write.Unknown()
	case s.change.obj == nil:
		l.saw(s.change)
		s.write.Ended(version, s.base, false)
	default:
		l.saw(s.change)
		s.write.Stored(itemOf(s.change.obj), s.base, true)
	}
}

// check asserts that no read returns a state older than a shown or answered one.
func (l *compactedLog) check() {
	for _, key := range objectKeys {
		got, exists, _ := l.hub.Get(key)
		version, known := 0, l.known[key]
		if exists {
			version = versionOf(got.(*corev1.ConfigMap))
		} else if known != nil {
			version = known.version
		}
		if l.due {
			l.woken[key] = version
		}
		switch {
		case known == nil:
		case exists && (version < known.version || known.obj == nil && version == known.version):
			l.t.Fatalf("%s is read at version %d, and known at %d", key, version, known.version)
		case !exists && known.obj != nil:
			l.t.Fatalf("%s is not there, and known at version %d", key, known.version)
		}
		if newest, there := l.feed.Newest(key); known != nil && (there != exists || there && newest.Version != strconv.Itoa(version)) {
			l.t.Fatalf("%s is known at version %q, there %t; it is read at %d, there %t", key, newest.Version, there, version, exists)
		}
	}
	l.due = false
}

// mustWake reports whether the author must be woken after a change: a readable change by others,
// unless the author has ended the object.
func (l *compactedLog) mustWake(c *logged) bool {
	if !c.foreign {
		return false
	}
	visible := c.told
	for _, later := range l.history[slices.Index(l.history, c)+1:] {
		if later.key == c.key && later.obj == nil && !later.foreign {
			return false
		}
		if later.key == c.key && later.version == c.version+1 {
			visible = visible || c.obj != nil && later.obj != nil && !later.foreign && (later.told || later.answered)
		}
	}
	return visible
}

// TestR11AnyOrderOfWritesAndOfWhatACompactedSourceShowsIsReadAndWakesAsPromised interleaves own
// writes, writes of others, incomplete events, and listings.
func TestR11AnyOrderOfWritesAndOfWhatACompactedSourceShowsIsReadAndWakesAsPromised(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newCompactedLog(t)
		keys := rapid.SampledFrom(objectKeys)
		mayCut := rapid.Bool().Draw(t, "watches are cut")
		actions := map[string]func(*rapid.T){
			"": func(*rapid.T) { l.check() },
			"somebody writes": func(t *rapid.T) {
				if c, _ := l.write(keys.Draw(t, "key"), rapid.Bool().Draw(t, "end"), true); c != nil {
					l.reasons++
				}
			},
			"send": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				if slices.ContainsFunc(l.open, func(s *underWay) bool { return s.change.key == key }) {
					t.Skip("a reconciliation writes an object once at a time")
				}
				s := &underWay{write: l.feed.Begin(key, l.author)}
				if s.change, s.base = l.write(key, rapid.Bool().Draw(t, "end"), false); s.change == nil {
					s.write.Unknown()
					return
				}
				l.open = append(l.open, s)
			},
			"answer": func(t *rapid.T) {
				if len(l.open) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(l.open)-1).Draw(t, "write")
				s := l.open[i]
				l.open = slices.Delete(l.open, i, i+1)
				l.finish(s, rapid.IntRange(0, 9).Draw(t, "lost") == 0)
			},
			"event": func(t *rapid.T) {
				if l.shown == len(l.history) {
					t.Skip()
				}
				c := l.history[l.shown]
				l.shown++
				if l.newest(c.key, len(l.history)) == c || !rapid.Bool().Draw(t, "left out") {
					l.show(c)
				}
			},
		}
		if mayCut {
			actions["list"] = func(t *rapid.T) { l.list(rapid.IntRange(l.shown, len(l.history)).Draw(t, "changes")) }
		}
		t.Repeat(actions)
		for _, s := range l.open {
			l.finish(s, false)
			l.check()
		}
		for _, c := range l.history[l.shown:] {
			l.show(c)
			l.check()
		}
		for _, c := range l.history {
			if l.mustWake(c) && l.woken[c.key] < c.version {
				t.Fatalf("%s was changed by somebody else at version %d, and the last wake read %d", c.key, c.version, l.woken[c.key])
			}
		}
		if !l.listed && l.wakes > l.reasons {
			t.Fatalf("%d wakes for %d reasons", l.wakes, l.reasons)
		}
		if left := l.hub.OpenWrites(); left != 0 {
			t.Fatalf("%d writes have not ended", left)
		}
	})
}
