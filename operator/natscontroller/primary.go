package natscontroller

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
)

// absent stands for the entry of a key that was enqueued and has none. It goes to SyncHandler alone.
type absent struct{ key string }

// maxAbsent is how many announcements of one absent key may wait: one that is being worked on, and one for what happened
// since.
const maxAbsent = 2

// primary is the source of the primaries as the framework sees it. Beyond the source itself it can announce keys without an
// entry, and knows the deletions that are not processed yet.
type primary[T natsinformer.Entity] struct {
	*natsinformer.Source[T]

	mu sync.Mutex
	// handler is the framework's, and nil while that does not listen.
	handler informer.Handler
	// early are the keys that were enqueued before the framework listened.
	early map[string]struct{}
	// asked are the keys that are to be looked at later, with when that is.
	asked map[string]time.Time
	// absent counts the announcements of keys without an entry that are not processed, since they had one.
	absent map[string]int
	// gone are the keys whose deletion was announced and is not processed.
	gone map[string]struct{}
	// handles tells whether the deletion of an entity is processed by anything. It is nil before the controller is assembled.
	handles func(obj any) bool
	// removed are the entries whose deletion was processed while they were still there.
	removed map[string]types.UID
}

func newPrimary[T natsinformer.Entity](source *natsinformer.Source[T]) *primary[T] {
	return &primary[T]{
		Source: source, early: map[string]struct{}{}, asked: map[string]time.Time{}, absent: map[string]int{}, gone: map[string]struct{}{},
		removed: map[string]types.UID{},
	}
}

// Subscribe implements informer.Source. There is one subscriber: the framework.
func (p *primary[T]) Subscribe(h informer.Handler) (unsubscribe func()) {
	end := p.Source.Subscribe(func(e informer.Event) {
		p.note(e)
		h(e)
	})
	p.mu.Lock()
	early := p.early
	p.handler, p.early = h, map[string]struct{}{}
	p.mu.Unlock()
	for key := range early {
		p.announceAbsent(key)
	}
	return func() {
		p.mu.Lock()
		p.handler = nil
		p.mu.Unlock()
		end()
	}
}

// ask notes that a key is looked at after a delay, unless that is so earlier.
func (p *primary[T]) ask(key string, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	due := time.Now().Add(delay)
	if before, ok := p.asked[key]; !ok || due.Before(before) {
		p.asked[key] = due
	}
}

// pending returns the keys that are to be looked at later.
func (p *primary[T]) pending() map[string]time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.asked)
}

// Get implements informer.Source. A key without an entry that is looked at because that was asked for is announced.
func (p *primary[T]) Get(key informer.Key) (obj any, exists bool, err error) {
	obj, exists, err = p.Source.Get(key)
	if err == nil && p.isDue(key.Name) && !exists {
		p.announceAbsent(key.Name)
	}
	return obj, exists, err
}

// isDue tells, once, whether the time has come at which a key is to be looked at.
func (p *primary[T]) isDue(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	due, asked := p.asked[key]
	if !asked || due.After(time.Now()) {
		return false
	}
	delete(p.asked, key)
	return true
}

// announceAbsent has the framework process the key although it has no entry. It does nothing if it has one. Before the
// framework listens, it is put off.
func (p *primary[T]) announceAbsent(key string) {
	if handler := p.admitAbsent(key); handler != nil {
		handler(informer.Event{Type: informer.Deleted, Key: informer.Key{Name: key}, Object: absent{key}})
	}
}

// admitAbsent returns the handler that is to be told of an absent key, or nil.
func (p *primary[T]) admitAbsent(key string) informer.Handler {
	_, exists, _ := p.Source.Get(informer.Key{Name: key})
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.handler == nil:
		p.early[key] = struct{}{}
		return nil
	case exists, p.absent[key] == maxAbsent:
		return nil
	}
	p.absent[key]++
	return p.handler
}

// Remove implements informer.Remover.
func (p *primary[T]) Remove(ctx context.Context, obj any) error {
	if o, ok := obj.(absent); ok {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.absent[o.key]--; p.absent[o.key] <= 0 {
			delete(p.absent, o.key)
		}
		return nil
	}
	entity, ok := obj.(T)
	if !ok {
		return p.Source.Remove(ctx, obj)
	}
	key := entity.GetName()
	p.mu.Lock()
	_, processed := p.gone[key]
	if !processed {
		p.removed[key] = entity.GetUID()
	}
	p.mu.Unlock()

	err := p.Source.Remove(ctx, entity)
	if err == nil && processed {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.gone, key)
	}
	return err
}

// note remembers a deletion until it has been processed, or the key has an entry again. One that nothing processes is not remembered.
// Announcements of a key that gets an entry are dropped and not processed: they count no more.
func (p *primary[T]) note(e informer.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := e.Key.Name
	delete(p.absent, key)
	if e.Type != informer.Deleted {
		delete(p.gone, key)
		return
	}
	uid, ok := p.removed[key]
	delete(p.removed, key)
	if m, isMeta := e.Object.(informer.Meta); ok && isMeta && m.GetUID() == uid {
		return
	}
	if p.handles == nil || p.handles(e.Object) {
		p.gone[key] = struct{}{}
	}
}

// isBeingDeleted tells whether the framework still has to process a deletion of this key.
func (p *primary[T]) isBeingDeleted(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.gone[key]
	return ok
}
