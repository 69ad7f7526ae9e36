package informer

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrElsewhere is in the chain of the error for an object of which it is not known whether it exists, because the source
// holds another part of the objects, see [Kubernetes.Limit].
var ErrElsewhere = errors.New("another replica has the objects of this namespace")

// limits is to which part of the objects a Kubernetes source is limited.
type limits struct {
	// changing is held while that changes, and not by who asks.
	changing sync.Mutex

	mu sync.Mutex
	// has is nil while the source holds everything, and whole is set if it always does.
	has   func(Key) bool
	whole bool
	// grown is closed when the source has to list again because it holds more than before.
	grown chan struct{}
}

// growth returns what is closed when the source has to list again.
func (l *limits) growth() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.grown == nil {
		l.grown = make(chan struct{})
	}
	return l.grown
}

// Limit makes the source hold only the objects whose keys has accepts, until it is called again. A source that has to
// hold everything, by HoldAll or because there is a [Reader] of it, continues to do so. has is quick, always gives the
// same answer, and may be called from several goroutines.
//
// Objects that has does not accept any more are forgotten without an event. grows says that it accepts objects which
// were not accepted before. The source lists again then, and announces them as backlog; of the others no event is lost
// and none is repeated. listed, which must not block or call the source, is called once everything that has accepts was
// announced, unless Limit is called again before.
//
// Get of an object that is not accepted is an error ([ErrElsewhere]); List, ByIndex, Behind and HasAll know accepted
// objects. GetLive and SelectsLive know all.
func (k *Kubernetes) Limit(has func(key Key) bool, grows bool, listed func()) {
	k.limits.changing.Lock()
	done := k.limit(has, grows, listed)
	k.limits.changing.Unlock()
	if done {
		listed()
	}
}

// HoldAll makes the source hold everything that it selects from now on, whatever Limit says: objects in all namespaces
// are looked for in it.
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

// limit changes the part, nil being everything. It is true if all of it has been listed. The caller holds changing.
func (k *Kubernetes) limit(has func(key Key) bool, grows bool, listed func()) (done bool) {
	l := &k.limits
	l.mu.Lock()
	if l.whole && has != nil {
		has, grows = nil, false
	}
	l.has = has
	l.mu.Unlock()
	// What a stream lists that starts again must be waited for.
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

// Holds reports whether the source holds the objects of a namespace, or of all of them for an empty one, as far as it
// selects them.
func (k *Kubernetes) Holds(namespace string) bool {
	k.limits.mu.Lock()
	has := k.limits.has
	k.limits.mu.Unlock()
	return has == nil || namespace != "" && has(Key{Namespace: namespace})
}

// Namespaced asks the API server, once, whether the objects have namespaces. It is an error as long as their kind is not
// defined.
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
