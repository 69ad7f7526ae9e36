package informer

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// ledger is what this process has written and the source has not shown yet, by object. An object is dropped from it when the source
// has shown its last write, or something newer. The lock of deliveries guards it.
type ledger map[Key]*account

// account is what is known of the writes of one object.
type account struct {
	// uid is the object that writes are about, and shown the newest version of it that the source has shown, if any.
	uid   types.UID
	shown string
	// writes are those that have ended and that the source has not shown, the oldest first. With gone, the object is gone since.
	writes []written
	gone   bool
	// open are the writes that are under way.
	open []*Write
}

// written is a write that has ended: the version that was written, and the one on which it was based, if it said so.
type written struct{ base, version string }

// Created is the base of a write that has made an object.
const Created = "created"

// Write is a write of one object that is under way. One of its methods ends it, and must be called once.
type Write struct {
	feed    *Feed
	key     Key
	author  *Author
	waiting []*undecided
	// ended are the objects of the key that were shown to be gone meanwhile.
	ended []types.UID
}

// Begin notes that an object is about to be written: by author, or by nobody in particular if that is nil. It is called before the
// request, so that its event can be told from those of others if it comes before the answer.
func (f *Feed) Begin(key Key, author *Author) *Write {
	h := f.hub
	w := &Write{feed: f, key: key, author: author}
	h.delivery.Lock()
	defer h.delivery.Unlock()
	a := h.ledger.of(key)
	a.open = append(a.open, w)
	return w
}

// Stored ends a write whose answer is the item. The store has it when Stored returns, unless it has something newer, and its event was
// delivered. base is the version that the write said to be based on, [Created] if it made the object, and empty if it said nothing:
// then what others have changed may be a part of it, and what a listing shows counts as theirs. selected is false if the source
// does not select the object as it is now.
func (w *Write) Stored(item Item, base string, selected bool) {
	h := w.feed.hub
	h.delivery.Lock()
	defer h.delivery.Unlock()
	a := w.end()
	defer h.ledger.settle(w.key, a)
	defer w.decide(func(s sight) bool { return s.version == item.Version && (!s.gap || s.before == base) })

	id := uid(item.Object)
	if slices.Contains(w.ended, id) || a.gone && a.uid == id {
		return
	}
	old, exists := h.store.entries[w.key]
	switch {
	case exists && !h.newer(item.Version, old.version):
		return // It was shown already.
	case !exists && !selected:
		return
	case exists && !sameObject(old.object, item.Object):
		w.feed.delete(w.key, nil, Event{})
		exists = false
	}
	if a.uid != id || a.gone {
		a.uid, a.shown, a.writes, a.gone = id, "", nil, false
	}
	if exists && len(a.writes) == 0 {
		a.shown = old.version
	}
	a.writes = append(a.writes, written{base, item.Version})
	e := Event{author: w.author}
	switch {
	case selected:
		w.feed.put(item, e)
	case exists:
		w.feed.delete(w.key, item.Object, e)
	}
}

// Gone ends a write after which the object with that UID is gone, as after a deletion that nothing holds up.
func (w *Write) Gone(id types.UID) {
	h := w.feed.hub
	h.delivery.Lock()
	defer h.delivery.Unlock()
	a := w.end()
	defer h.ledger.settle(w.key, a)
	defer w.decide(func(s sight) bool { return s.gone == string(id) })

	old, exists := h.store.entries[w.key]
	if !exists || uid(old.object) != id || slices.Contains(w.ended, id) {
		return
	}
	if a.uid != id {
		a.uid, a.shown, a.writes = id, "", nil
	}
	if len(a.writes) == 0 {
		a.shown = old.version
	}
	a.gone = true
	w.feed.delete(w.key, nil, Event{author: w.author})
}

// Shown ends a write of which only the version is known.
func (w *Write) Shown(version string) {
	h := w.feed.hub
	h.delivery.Lock()
	defer h.delivery.Unlock()
	a := w.end()
	defer h.ledger.settle(w.key, a)
	w.decide(func(s sight) bool { return s.version == version && !s.gap })
}

// Unknown ends a write of which nobody knows whether it was carried out, or that was refused. If it was, it counts as somebody else's.
func (w *Write) Unknown() {
	h := w.feed.hub
	h.delivery.Lock()
	defer h.delivery.Unlock()
	a := w.end()
	defer h.ledger.settle(w.key, a)
	w.decide(func(sight) bool { return false })
}

// end takes the write off those that are under way.
func (w *Write) end() *account {
	a := w.feed.hub.ledger.of(w.key)
	a.open = slices.DeleteFunc(a.open, func(open *Write) bool { return open == w })
	return a
}

// decide decides of what was shown meanwhile whether it is the write, or else a reason to wake its author.
func (w *Write) decide(own func(sight) bool) {
	for _, u := range w.waiting {
		u.own = u.own || own(u.sight)
		u.left--
		switch {
		case u.left > 0:
		case u.own:
			w.author.pass(u.wake)
		default:
			u.wake()
		}
	}
}

func (l ledger) of(key Key) *account {
	a := l[key]
	if a == nil {
		a = &account{}
		l[key] = a
	}
	return a
}

// settle drops an account in which nothing is left.
func (l ledger) settle(key Key, a *account) {
	if len(a.open) == 0 && len(a.writes) == 0 && !a.gone {
		delete(l, key)
	}
}

// verdict is what the ledger says of something that a source shows.
type verdict uint8

const (
	// news is what the ledger knows nothing about.
	news verdict = iota
	// known is what was told already.
	known
	// foreign is a change that somebody else made before a write of ours, which is what is stored.
	foreign
)

// shows compares what the source shows of an object with what was written. gap is true for a listing.
func (a *account) shows(h *Hub, id types.UID, version string, gap bool) verdict {
	if a.uid != id {
		if last := a.last(); last != "" && !h.newer(version, last) {
			return known // An earlier life.
		}
		a.uid, a.shown, a.writes, a.gone = id, "", nil, false
		return news
	}
	if !a.gone && (len(a.writes) == 0 || h.newer(version, a.last())) {
		a.shown, a.writes = version, nil
		return news
	}
	if version == a.shown || a.shown != "" && !h.newer(version, a.shown) {
		return known
	}
	i := slices.IndexFunc(a.writes, func(w written) bool { return w.version == version })
	result := known
	if i < 0 || gap && !a.follows(i) {
		result = foreign
	}
	a.shown = version
	a.writes = slices.DeleteFunc(a.writes, func(w written) bool { return !h.newer(w.version, version) })
	return result
}

// follows tells whether there is nothing between what was shown last and a write but writes of our own.
func (a *account) follows(i int) bool {
	before := a.shown
	for _, w := range a.writes[:i+1] {
		if w.base != before && w.base != Created {
			return false
		}
		before = w.version
	}
	return true
}

// last is the newest version that is known from writing.
func (a *account) last() string {
	if len(a.writes) == 0 {
		return a.shown
	}
	return a.writes[len(a.writes)-1].version
}

// showsGone compares that the source shows the end of an object, or that it is not selected any more, with what was written.
func (a *account) showsGone(h *Hub, id types.UID, version string) verdict {
	for _, w := range a.open {
		w.ended = append(w.ended, id)
	}
	switch {
	case a.uid != id && a.last() != "":
		return known // An earlier life.
	case a.gone:
		a.writes, a.gone = nil, false
		return known
	case len(a.writes) == 0 || h.newer(version, a.last()):
		a.writes = nil
		return news
	}
	return a.shows(h, id, version, false)
}
