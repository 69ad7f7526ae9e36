package informer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrElsewhere is in the chain of the error for an object of which it is not known whether it exists, because the source holds another
// part of the objects, see [Kubernetes.Limit].
var ErrElsewhere = errors.New("another replica has the objects of this namespace")

// Part is a part of the objects of a source: those of some namespaces.
type Part struct {
	// Has tells whether the objects of a namespace belong to the part. It is quick, always gives the same answer, and may be called
	// from several goroutines.
	Has func(namespace string) bool
	// Selector is the same for the API server (ListOptions.shardSelector). One that does not filter by it, as before Kubernetes 1.36, sends
	// everything, and what does not belong to the part is dropped. It must not be empty.
	Selector string
	// Applies tells whether the source is to be limited at all. It is asked before the source lists, until it has answered; while it fails,
	// the source can't list. Default: it is.
	Applies func() (bool, error)
}

// scope is whether a source is limited, as far as that is known.
type scope uint8

const (
	scopeUnknown scope = iota
	scopePart
	scopeWhole
)

// limits is to which part of the objects a Kubernetes source is limited.
type limits struct {
	// changing is held while that changes, and not by who asks.
	changing sync.Mutex

	mu    sync.Mutex
	scope scope
	// part is nil until the source is limited for the first time.
	part *Part
	// generation counts how often the part has grown. grown is closed when it does so again, and shrunk when it has become smaller.
	generation    int
	grown, shrunk chan struct{}
}

// limit is how the source is limited now.
type limit struct {
	scope         scope
	part          *Part
	generation    int
	grown, shrunk <-chan struct{}
}

func (l *limits) now() limit {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.grown == nil {
		l.grown, l.shrunk = make(chan struct{}), make(chan struct{})
	}
	return limit{l.scope, l.part, l.generation, l.grown, l.shrunk}
}

// Limit makes the source hold a part of the objects, until it is called again with another one. A source that has to hold everything, by
// HoldAll, because there is a [Reader] of it, or because its objects have no namespaces, goes on to do so. operator.ShardingConfig is who limits.
//
// What leaves the part is forgotten, without an event. grows says that the part has something that the one before had not. That is
// listed, together with everything else, and announced as backlog; the rest loses no event by it and gets none twice. listed, which must
// not block or call the source, is called once everything that belongs to the part was announced, unless Limit is called again before.
//
// Get of an object outside of the part is an error ([ErrElsewhere]); List, ByIndex, Behind and HasAll know what belongs to the part. GetLive
// and SelectsLive know no parts.
func (k *Kubernetes) Limit(part Part, grows bool, listed func()) {
	k.limits.changing.Lock()
	done := k.limit(&part, grows, listed)
	k.limits.changing.Unlock()
	if done {
		listed()
	}
}

// HoldAll makes the source hold everything that it selects from now on, whatever Limit says: objects in all namespaces are looked for in it.
func (k *Kubernetes) HoldAll() {
	l := &k.limits
	l.changing.Lock()
	defer l.changing.Unlock()
	if now := l.now(); now.part != nil && now.scope != scopeWhole {
		k.limit(nil, true, nil)
	}
	l.set(scopeWhole)
}

// limit changes the part, nil being everything. It is true if all of it has been listed. The caller holds changing.
func (k *Kubernetes) limit(part *Part, grows bool, listed func()) (done bool) {
	l := &k.limits
	now := l.now()
	if now.scope == scopeWhole {
		grows = false
	}
	if grows {
		now.generation++
	}
	var has func(Key) bool
	if part != nil && now.scope != scopeWhole {
		has = func(key Key) bool { return part.Has(key.Namespace) }
	}
	// What a stream lists that begins anew must be waited for.
	done = k.feed.limit(has, now.generation, listed)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.part, l.generation = part, now.generation
	switch {
	case grows:
		close(l.grown)
		l.grown = make(chan struct{})
	case has != nil:
		close(l.shrunk)
		l.shrunk = make(chan struct{})
	}
	return done
}

func (l *limits) set(s scope) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.scope = s
}

// Holds tells whether the source holds the objects of a namespace, or of all of them for an empty one, as far as it selects them.
func (k *Kubernetes) Holds(namespace string) bool {
	l := k.limits.now()
	return l.part == nil || l.scope == scopeWhole || namespace != "" && l.part.Has(namespace)
}

// Namespaced asks the API server, once, whether the objects have namespaces. It is an error as long as their kind is not defined.
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

// selector returns by what the API server is to filter, and nothing for everything.
func (k *Kubernetes) selector() (string, error) {
	l := k.limits.now()
	if l.part == nil || l.scope == scopeWhole {
		return "", nil
	}
	if l.scope == scopeUnknown {
		decided, err := k.decide(l.part)
		if err != nil || decided == scopeWhole {
			return "", err
		}
	}
	return l.part.Selector, nil
}

// ServerFilters asks the API server whether it leaves out of lists and watches what does not belong to the part. It is false for a source
// that holds everything.
func (k *Kubernetes) ServerFilters(ctx context.Context) (bool, error) {
	selector, err := k.selector()
	if err != nil || selector == "" {
		return false, err
	}
	list := &unstructured.UnstructuredList{} // Lists of metadata do not say it.
	list.SetGroupVersionKind(k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List"))
	options := &client.ListOptions{Namespace: k.namespaces()[0], Limit: 1, Raw: &metav1.ListOptions{ShardSelector: selector}}
	if err := k.client.List(ctx, list, options); err != nil {
		return false, fmt.Errorf("list %s: %w", k.Name(), err)
	}
	_, filters, err := unstructured.NestedFieldNoCopy(list.Object, "metadata", "shardInfo")
	return filters, err
}

// decide finds out whether the source can be limited.
func (k *Kubernetes) decide(part *Part) (scope, error) {
	applies, err := k.Namespaced()
	if err == nil && applies && part.Applies != nil {
		applies, err = part.Applies()
	}
	if err != nil {
		return scopeUnknown, err
	}
	k.limits.changing.Lock()
	defer k.limits.changing.Unlock()
	decided := k.limits.now().scope
	if decided == scopeUnknown {
		decided = scopePart
		if !applies {
			decided = scopeWhole
			k.feed.unlimit()
		}
		k.limits.set(decided)
	}
	return decided, nil
}

// shortWatch is how long a watch lasts at least that ends because the part has become smaller: the reflector lists anew after a shorter one
// that has shown nothing.
const shortWatch = 2 * time.Second

// narrowing has a watch end, so that the next one goes on with a narrower selector, some time after the part has become smaller.
func narrowing(w watch.Interface, shrunk <-chan struct{}) watch.Interface {
	begun := time.Now()
	ctx, cancel := context.WithCancel(context.Background())
	n := &narrowedWatch{Interface: w, cancel: cancel}
	n.waiting.Go(func() {
		select {
		case <-ctx.Done():
			return
		case <-shrunk:
		}
		select {
		case <-ctx.Done():
		case <-time.After(shortWatch - time.Since(begun)):
			w.Stop()
		}
	})
	return n
}

type narrowedWatch struct {
	watch.Interface
	cancel  context.CancelFunc
	waiting sync.WaitGroup
}

func (n *narrowedWatch) Stop() {
	n.cancel()
	n.waiting.Wait()
	n.Interface.Stop()
}
