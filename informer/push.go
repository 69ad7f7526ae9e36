package informer

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/operatorkit/operatorkit/internal/panics"
)

var _ Source = (*Push)(nil)

// ErrNoName is in the chain of the error for an object that has no name.
var ErrNoName = errors.New("object has no name")

// PushOption changes a [Push] source.
type PushOption func(*Push)

// WithKeyFunc sets the function that returns the key of an object, for objects that are not
// Kubernetes objects. An empty name is an error. Default: its namespace and name.
func WithKeyFunc(key func(obj any) (Key, error)) PushOption {
	return func(p *Push) { p.key = key }
}

// Push is a [Source] that its caller feeds, for example from the handlers of an existing informer.
// It is synced from the start, and Run has nothing to do. A deletion that arrives while there is no
// subscriber is kept for the next one, unless an object of the name arrives first.
//
// Deletions and other changes may arrive out of order, as from an informer with a channel for each.
// For objects with UIDs, a late deletion does not affect the next object of the name, and a late
// state, which is recognised by its resource version, does not restore a deleted object.
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

// Update stores an object and announces it as Added or Updated. If the stored object has the same
// resource version, it is announced again, as backlog. Update does nothing if the object was
// deleted in a later version. The object must not be changed afterwards. Update returns an error if
// the object has no valid key.
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

// isLate reports whether a state of an object is older than its deletion.
func (p *Push) isLate(item Item) bool {
	end, _ := p.ended.Get(uid(item.Object))
	version, _ := end.(string)
	c, err := resourceversion.CompareResourceVersion(item.Version, version)
	return err == nil && c < 0
}

// Delete removes an object and announces it as Deleted, with obj as its last state. A
// cache.DeletedFinalStateUnknown represents the object it contains. An object that was never passed
// to Update is announced as well, because its deletion may be the only event about it. If another
// object has the name by now, it stays, and the deletion is announced unless it was before. Delete
// returns an error if the object has no valid key.
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

// Take applies an event of a watch: Update for Added and Modified, Delete for Deleted, and nothing
// for a Bookmark. It returns an error if the object has no valid key, or for any other event type.
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

// refuse notes unusable input, and returns the error about it.
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

// name returns the key of an object. A panic becomes an error.
func (p *Push) name(obj any) (key Key, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("its key: %s", panics.Describe(r))
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
