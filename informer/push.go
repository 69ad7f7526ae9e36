package informer

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

var _ Source = (*Push)(nil)

// ErrNoName is in the chain of the error for an object that has no name.
var ErrNoName = errors.New("object has no name")

// PushOption changes a [Push] source.
type PushOption func(*Push)

// WithKeyFunc sets what names an object, for objects that are not Kubernetes objects. An empty name is an error.
// Default: its namespace and name.
func WithKeyFunc(key func(obj any) (Key, error)) PushOption {
	return func(p *Push) { p.key = key }
}

// Push is a [Source] that is told what happens, for example by the handlers of an informer that belongs to somebody else.
// It is synced from the beginning, and has nothing to do in Run. A deletion of which it is told while nobody is subscribed is kept for
// who subscribes next, unless an object of the name comes before.
//
// A deletion may be told earlier or later than other changes, as by an informer that has a channel for each. Of objects with UIDs, one that
// comes late takes nothing from the next object of the name, and a state that comes late, which its resource version tells, brings nothing back.
type Push struct {
	*Hub
	feed *Feed
	key  func(obj any) (Key, error)
}

// NewPush returns an empty source of that name.
func NewPush(name string, options ...PushOption) *Push {
	p := &Push{key: metaKey}
	p.Hub, p.feed = NewHub(HubConfig{Name: name})
	p.keepUnheard = true
	for _, option := range options {
		option(p)
	}
	p.feed.Replace("", nil)
	return p
}

// Update stores an object and announces it as Added or Updated; again, as backlog, when it has the resource version that
// is stored already. It does nothing when the object was deleted in a later version. The object must not be changed afterwards. The error
// says that it can't be named.
func (p *Push) Update(obj any) error {
	key, err := p.name(obj)
	if err != nil {
		return p.refuse("update", fmt.Sprintf("a %T", obj), err)
	}
	p.feed.Contact("")
	item := Item{Key: key, Object: obj, Version: versionOf(obj)}
	p.delivery.Lock()
	defer p.delivery.Unlock()
	if !p.isLate(item) && !p.feed.show(item, false) {
		p.announce(key)
	}
	return nil
}

// isLate tells whether a state of an object is from before its deletion.
func (p *Push) isLate(item Item) bool {
	end, _ := p.ended.Get(uid(item.Object))
	version, _ := end.(string)
	c, err := resourceversion.CompareResourceVersion(item.Version, version)
	return err == nil && c < 0
}

// Delete removes an object and announces it as Deleted, with obj as its last state. A cache.DeletedFinalStateUnknown
// stands for the object it contains. An object that was never handed over is announced all the same, because its
// deletion may be all that is told of it. When another object has the name by now, that stays, and the deletion is announced unless it
// was before. The error says that it can't be named.
func (p *Push) Delete(obj any) error {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	key, err := p.name(obj)
	if err != nil {
		return p.refuse("deletion", fmt.Sprintf("a %T", obj), err)
	}
	p.feed.Contact("")
	p.delivery.Lock()
	defer p.delivery.Unlock()
	stored, exists := p.store.entries[key]
	replaced := exists && !sameObject(stored.object, obj)
	_, ended := p.ended.Get(uid(obj))
	known := replaced && ended
	if !known && (replaced || !p.feed.showGone(Item{Key: key, Object: obj, Version: versionOf(obj)})) {
		p.deliver(Event{Type: Deleted, Key: key, Object: obj})
	}
	p.end(uid(obj), versionOf(obj))
	return nil
}

// versionOf returns the resource version of an object, if it has one.
func versionOf(obj any) string {
	if o, ok := obj.(interface{ GetResourceVersion() string }); ok {
		return o.GetResourceVersion()
	}
	return ""
}

// Take does what an event of a watch says: Update for Added and Modified, Delete for Deleted, and nothing for a Bookmark. The error says
// that its object can't be named, or that its type is another one.
func (p *Push) Take(e watch.Event) error {
	switch e.Type {
	case watch.Added, watch.Modified:
		return p.Update(e.Object)
	case watch.Deleted:
		return p.Delete(e.Object)
	case watch.Bookmark:
		return nil
	}
	return p.refuse("event", fmt.Sprintf("type %q", e.Type), errors.New("it must be ADDED, MODIFIED, DELETED or BOOKMARK"))
}

// refuse notes what can't be used, and returns the error about it.
func (p *Push) refuse(what, sort string, err error) error {
	err = fmt.Errorf("%s with %s of source %s: %w", what, sort, p.Name(), err)
	p.feed.Unusable(what+" with "+sort, err)
	return err
}

// Run waits for the end of ctx and returns nil.
func (p *Push) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// name asks for the key of an object. A panic is an error.
func (p *Push) name(obj any) (key Key, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("its key: %s", DescribePanic(r))
		}
	}()
	key, err = p.key(obj)
	if err == nil && key.Name == "" {
		err = fmt.Errorf("%w: %T", ErrNoName, obj)
	}
	return key, err
}

func metaKey(obj any) (Key, error) {
	o, err := meta.Accessor(obj)
	if err != nil {
		return Key{}, fmt.Errorf("%T is not a Kubernetes object, give NewPush a key function: %w", obj, err)
	}
	return Key{Namespace: o.GetNamespace(), Name: o.GetName()}, nil
}
