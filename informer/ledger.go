package informer

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// ledger is what this process has written and the source has not shown yet, by the name of the object. A name is dropped from it when
// the source has shown the last write, or something newer. Without [HubConfig].Compare nothing is kept of a write that has ended: who feeds
// the Hub holds back what is from before it. The lock of deliveries guards it.
type ledger map[Key]*account

// account is what is known of the writes of one name: the writes that are under way, and the objects that had the name and have been
// written, the oldest first. There is more than one if one was deleted and another one made before the source has shown that.
type account struct {
	open  []*Write
	lives []*life
}

// life is one object with its writes.
type life struct {
	uid types.UID
	// shown is the newest version that the source has shown, if any.
	shown string
	// writes are those that have ended and that the source has not shown, the oldest first. With gone, the object is gone since.
	writes []written
	gone   bool
}

// written is a write that has ended: the version that was written, and the one on which it was based, if it said so.
type written struct{ base, version string }

// on tells whether there is nothing of others between a version and the write.
func (w written) on(before string) bool { return w.base == Created || w.base != "" && w.base == before }

// Created is the base of a write that has made an object.
const Created = "created"

// changed is the base of a write of which it is known that it has changed the object, and not in which version it has found it.
const changed = "changed"

// made tells whether the write has made its version. One that says nothing of where it began, or that has found what it was to write, may
// be answered with a version that somebody else has made.
func (w written) made() bool { return w.base != "" && w.base != w.version }

// Write is a write of one object that is under way. One of its methods ends it, and must be called once.
type Write struct {
	feed    *Feed
	key     Key
	author  *Author
	waiting []*undecided
	causes  []*Cause
	// ended are the objects of the key that were shown to be gone meanwhile, and told those of which that was announced.
	ended, told []types.UID
	// shownEnd is the version of the last end of an object of the key that was shown meanwhile, in a source that is compacted.
	shownEnd string
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
// delivered. base is the version that the write said to be based on, [Created] if it made the object, and empty if it said nothing. If it
// said nothing, or is answered with the version that it was based on, it may have changed nothing, and the version be one that somebody else
// has made: that is stored too, and is a reason for everybody. selected is false if the source does not select the object as it is now.
func (w *Write) Stored(item Item, base string, selected bool) {
	h := w.feed.hub
	h.delivery.Lock()
	defer h.delivery.Unlock()
	a := w.end()
	defer h.ledger.settle(w.key, a)
	selected = selected && h.holds(w.key)
	now := written{base, item.Version}
	e := Event{sight: sight{version: item.Version}}
	if now.made() {
		e.author = w.author
	}
	defer w.decide(func(s sight) bool {
		return now.made() && s.version == item.Version && (!s.gap || now.on(s.before))
	})

	id := h.life(item.Object)
	l := a.life(id)
	old, exists := h.store.entries[w.key]
	switch {
	case l != nil && (l.gone || len(l.writes) > 0 && !h.newer(item.Version, l.last())):
		l.overtaken(h, now)
		return
	case w.passed(item.Version, old.version, exists):
		if selected && !slices.Contains(w.told, id) && (!exists || h.life(old.object) != id) {
			h.deliver(Event{Type: Deleted, Key: w.key, Object: h.last(item.Object, "")}) // It came and went without being shown.
		}
		return
	case exists && !h.newer(item.Version, old.version):
		if h.compare != nil && selected {
			a.begin(h, id, "").overtaken(h, now)
		}
		return
	case !exists && !selected:
		return
	case exists && h.compacted && (base == Created || !sameObject(old.object, item.Object)):
		// That tells all that others did before.
		w.feed.delete(w.key, nil, Event{sight: sight{gone: string(uid(old.object))}})
		l = a.begin(h, id, "")
		l.writes, l.shown = nil, item.Version
		w.feed.put(item, e)
		return
	case exists && !sameObject(old.object, item.Object):
		a.begin(h, uid(old.object), old.version).gone = true
		w.feed.delete(w.key, nil, Event{sight: sight{gone: string(uid(old.object))}})
		exists = false
	}
	shown := ""
	if exists {
		shown = old.version
	}
	l = a.begin(h, id, shown)
	l.writes = append(l.writes, now)
	switch {
	case selected:
		w.feed.put(item, e)
	case exists:
		w.feed.delete(w.key, item.Object, e)
	}
}

// passed tells whether the source has shown a version, or something newer in its place, before its write was answered. One that is compacted
// may leave a version out because a newer one of the name is on its way: then only what was shown of the name counts.
func (w *Write) passed(version, stored string, exists bool) bool {
	h := w.feed.hub
	if h.compacted {
		return exists && !h.newer(version, stored) || w.shownEnd != "" && !h.newer(version, w.shownEnd)
	}
	return h.reached(w.key.Namespace, version)
}

// Ended ends a write that has removed the object, in a source that is compacted: version is that of its end, base and keep are as in Stored and
// in [Feed.End].
func (w *Write) Ended(version, base string, keep bool) {
	h := w.feed.hub
	h.delivery.Lock()
	defer h.delivery.Unlock()
	a := w.end()
	defer h.ledger.settle(w.key, a)
	end := written{base, version}
	defer w.decide(func(s sight) bool { return (s.version == version || s.gone != "") && end.on(s.before) })

	l := a.life("")
	old, exists := h.store.entries[w.key]
	switch {
	case l != nil && len(l.writes) > 0 && !h.newer(version, l.last()):
		l.overtaken(h, end)
		return
	case !exists && h.reached(w.key.Namespace, version), exists && !h.newer(version, old.version):
		return
	}
	l = a.begin(h, "", old.version)
	l.writes = append(l.writes, end)
	if exists {
		w.feed.end(w.key, version, keep, Event{author: w.author})
	}
}

// Gone ends a write after which the object with that UID is gone, as after a deletion that nothing holds up. shows is true if the source
// shows all objects sooner or later, so that one that it has not shown yet is waited for.
func (w *Write) Gone(id types.UID, shows bool) {
	h := w.feed.hub
	h.delivery.Lock()
	defer h.delivery.Unlock()
	a := w.end()
	defer h.ledger.settle(w.key, a)
	defer w.decide(func(s sight) bool { return s.gone == string(id) })
	h.ended.Add(id, nil)
	shows = shows && h.holds(w.key)

	for _, open := range a.open {
		open.ended = append(open.ended, id)
	}
	old, exists := h.store.entries[w.key]
	l := a.life(id)
	stored := exists && uid(old.object) == id
	if slices.Contains(w.ended, id) || l == nil && !stored && !shows {
		return
	}
	shown := ""
	if stored {
		shown = old.version
	}
	a.begin(h, id, shown).gone = true
	if stored {
		w.feed.delete(w.key, nil, Event{author: w.author})
	}
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

// decide decides of what was shown meanwhile whether it is the write, or else a reason to wake its author. What it is, it has caused.
func (w *Write) decide(own func(sight) bool) {
	for _, c := range w.causes {
		if own(c.sight) {
			c.span.Store(w.author.Span)
		}
	}
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

// settle drops what nothing is left of.
func (l ledger) settle(key Key, a *account) {
	a.lives = slices.DeleteFunc(a.lives, func(l *life) bool { return len(l.writes) == 0 && !l.gone })
	if len(a.open) == 0 && len(a.lives) == 0 {
		delete(l, key)
	}
}

// life returns the object of that UID, or nil.
func (a *account) life(id types.UID) *life {
	for _, l := range a.lives {
		if l.uid == id {
			return l
		}
	}
	return nil
}

// begin returns the object of that UID. Without writes of it, shown is what the source has shown of it last. Where versions have no order
// it is not kept: what the source shows next counts.
func (a *account) begin(h *Hub, id types.UID, shown string) *life {
	l := a.life(id)
	if l == nil {
		l = &life{uid: id}
		if h.compare != nil {
			a.lives = append(a.lives, l)
		}
	}
	if len(l.writes) == 0 && shown != "" {
		l.shown = shown
	}
	return l
}

// before returns up to which version of an object all is known to be shown or our own, if stored is the one that the store has.
func (a *account) before(id types.UID, stored string) string {
	l := a.life(id)
	switch {
	case l == nil:
		return stored
	case l.follows(len(l.writes) - 1):
		return l.last()
	}
	return ""
}

// earlier tells whether a version of another object is older than one that is known from writing.
func (a *account) earlier(h *Hub, version string) bool {
	return slices.ContainsFunc(a.lives, func(l *life) bool { return l.last() != "" && !h.newer(version, l.last()) })
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
	l := a.life(id)
	if l == nil {
		if a.earlier(h, version) {
			h.ended.Add(id, nil)
			return foreign // An object that somebody else had made before, and that is gone since.
		}
		return news
	}
	if !l.gone && (len(l.writes) == 0 || h.newer(version, l.last())) {
		l.writes = nil
		return news
	}
	if version == l.shown || l.shown != "" && !h.newer(version, l.shown) {
		return known
	}
	i := slices.IndexFunc(l.writes, func(w written) bool { return w.version == version })
	result := known
	if i < 0 || gap && !l.follows(i) {
		result = foreign
	}
	l.shown = version
	l.writes = slices.DeleteFunc(l.writes, func(w written) bool { return !h.newer(w.version, version) })
	return result
}

// showsGone compares that the source shows the end of an object, or that it is not selected any more, with what was written.
func (a *account) showsGone(h *Hub, id types.UID, version string) verdict {
	for _, w := range a.open {
		w.ended = append(w.ended, id)
	}
	l := a.life(id)
	switch {
	case l == nil && a.earlier(h, version):
		return foreign
	case l == nil:
		return news
	case l.gone:
		l.writes, l.gone = nil, false
		return known
	case len(l.writes) == 0 || h.newer(version, l.last()):
		l.writes = nil
		return news
	}
	return a.shows(h, id, version, false)
}

// listed notes which of the objects of the name a listing has. It ends the others, unless they may be newer than the listing.
func (a *account) listed(h *Hub, version string, has func(*life) bool) {
	for _, l := range a.lives {
		newer := version != "" && l.last() != "" && h.newer(l.last(), version)
		if !has(l) && !newer && (!l.gone || len(a.open) == 0) {
			l.writes, l.gone = nil, false
		}
	}
}

// overtaken notes a write that was answered later than one that came after it. What may be somebody else's is told when it is shown.
func (l *life) overtaken(h *Hub, earlier written) {
	if !earlier.made() || l.shown != "" && !h.newer(earlier.version, l.shown) {
		return // It was shown already, or will be.
	}
	at := slices.IndexFunc(l.writes, func(w written) bool { return h.newer(w.version, earlier.version) })
	if at < 0 {
		at = len(l.writes)
	}
	l.writes = slices.Insert(l.writes, at, earlier)
}

// follows tells whether there is nothing between what was shown last and a write but writes of our own.
func (l *life) follows(i int) bool {
	before := l.shown
	for _, w := range l.writes[:i+1] {
		if !w.on(before) {
			return false
		}
		before = w.version
	}
	return true
}

// last is the newest version that is known.
func (l *life) last() string {
	if len(l.writes) == 0 {
		return l.shown
	}
	return l.writes[len(l.writes)-1].version
}
