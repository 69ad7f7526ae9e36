package informer

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrElsewhere is in the chain of the error for an object that may or may not exist: the source
// holds another part of the objects, see [Kubernetes.Limit].
var ErrElsewhere = errors.New("another replica has the objects of this namespace")

// limits is the part of the objects to which a Kubernetes source is limited.
type limits struct {
	// changing is held while the part changes. Reads of the part don't take it.
	changing sync.Mutex

	mu sync.Mutex
	// has is nil while the source holds everything. whole is true if it always does.
	has   func(Key) bool
	whole bool
	// grown is closed when the source has to list again because it holds more than before.
	grown chan struct{}
}

// growth returns a channel that is closed when the source has to list again.
func (l *limits) growth() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.grown == nil {
		l.grown = make(chan struct{})
	}
	return l.grown
}

// Limit makes the source hold only the objects with keys that has accepts, until Limit is called
// again. A source that has to hold everything, by HoldAll or because it has a [Reader], continues
// to do so. has must be quick, always give the same answer, and be safe for concurrent use.
//
// Objects that has no longer accepts are dropped without an event. grows says that has accepts
// objects which were not accepted before. The source then lists again, and announces these objects
// as backlog. For other objects, no event is lost or repeated. listed must not block or call the
// source. It is called once everything that has accepts was announced, unless Limit is called again
// before.
//
// Get of an object that is not accepted returns an error that wraps [ErrElsewhere]. List, ByIndex,
// Behind and HasAll cover accepted objects. GetLive and SelectsLive cover all.
func (k *Kubernetes) Limit(has func(key Key) bool, grows bool, listed func()) {
	k.limits.changing.Lock()
	done := k.limit(has, grows, listed)
	k.limits.changing.Unlock()
	if done {
		listed()
	}
}

// HoldAll makes the source hold everything that it selects from now on, whatever Limit says,
// because objects in all namespaces are read from it.
func (k *Kubernetes) HoldAll() {
	l := &k.limits
	l.changing.Lock()
	defer l.changing.Unlock()
	l.mu.Lock()
	limited := l.has != nil
	l.whole = true
	l.mu.Unlock()
	if limited {
		k.limit(nil, true, nil)
	}
}

// limit changes the part; a nil has means everything. done is true if all of it has been listed.
// The caller holds changing.
func (k *Kubernetes) limit(has func(key Key) bool, grows bool, listed func()) (done bool) {
	l := &k.limits
	l.mu.Lock()
	if l.whole && has != nil {
		has, grows = nil, false
	}
	l.has = has
	l.mu.Unlock()
	// Streams restart below. The feed must already wait for their lists.
	done = k.feed.limit(has, grows, listed)
	if grows {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.grown != nil {
			close(l.grown)
		}
		l.grown = make(chan struct{})
	}
	return done
}

// Holds reports whether the source holds every selected object of a namespace. An empty namespace
// means all namespaces.
func (k *Kubernetes) Holds(namespace string) bool {
	k.limits.mu.Lock()
	has := k.limits.has
	k.limits.mu.Unlock()
	return has == nil || namespace != "" && has(Key{Namespace: namespace})
}

// Namespaced reports whether the objects have namespaces. It asks the API server once. It returns
// an error while their kind is not defined.
func (k *Kubernetes) Namespaced() (bool, error) {
	obj, err := k.newObject()
	if err != nil {
		return false, err
	}
	namespaced, err := k.client.IsObjectNamespaced(obj)
	if err != nil {
		return false, fmt.Errorf("find out whether a %s has a namespace: %w", k.gvk.GroupKind(), err)
	}
	return namespaced, nil
}

// untilGrown returns a context that ends when the source has to list again.
func (k *Kubernetes) untilGrown(ctx context.Context) (context.Context, context.CancelFunc) {
	grown := k.limits.growth()
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-grown:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel()
		waiting.Wait()
	}
}
