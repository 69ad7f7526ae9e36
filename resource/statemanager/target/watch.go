package target

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/panics"
)

// Kind is objects of a cluster that are watched.
type Kind struct {
	// GroupVersionKind is their kind. The cluster need not have it yet.
	schema.GroupVersionKind
	// Selector limits them by their labels. Default: all.
	Selector labels.Selector
	// Whole keeps whole objects as *unstructured.Unstructured, and not only *metav1.PartialObjectMetadata, which is far
	// smaller and notices every change as well. Default: false.
	Whole bool
}

// Objects is what a watch knows of a cluster. What Get and List return is the caller's own. informer.Source describes the
// methods.
type Objects interface {
	WaitForSync(ctx context.Context) error
	Get(key Key) (obj any, exists bool, err error)
	List() []any
	Status() informer.Status
}

type watchKey struct {
	kind     schema.GroupVersionKind
	selector string
	whole    bool
}

func (k Kind) key() watchKey {
	key := watchKey{kind: k.GroupVersionKind, whole: k.Whole}
	if k.Selector != nil {
		key.selector = k.Selector.String()
	}
	return key
}

func (k Kind) object() client.Object {
	if k.Whole {
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(k.GroupVersionKind)
		return obj
	}
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(k.GroupVersionKind)
	return obj
}

// watched is a watch with its users.
type watched struct {
	source *informer.Kubernetes
	stop   context.CancelFunc
	users  map[Key]struct{}
}

// Watch makes the kinds all that a user watches on the cluster: what it watched before and is not among them is not watched
// any more. What changes gives a [Notice]. A watch is shared by all its users, begins with the first and ends with the last
// one; it waits for a cluster that does not answer and for a kind that the cluster does not have, and goes on after a change
// of the kubeconfig with whatever is different then. Watch first and read afterwards, so that nothing is missed. The error
// says that a kind can't be watched, or that the user has not acquired the cluster; then nothing has changed.
func (c *Cluster) Watch(user Key, kinds ...Kind) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		return fmt.Errorf("watch %s: %w", describe(c.key), c.closed)
	}
	if _, known := c.users[user]; !known {
		return fmt.Errorf("watch %s for %s: %w", describe(c.key), user, ErrReleased)
	}
	wanted := make(map[watchKey]*watched, len(kinds))
	var fresh []*watched
	for _, kind := range kinds {
		key := kind.key()
		if wanted[key] != nil {
			continue
		}
		w := c.watched[key]
		if w == nil {
			var err error
			if w, err = c.newWatched(kind); err != nil {
				return fmt.Errorf("watch %s: %w", describe(c.key), err)
			}
			fresh = append(fresh, w)
		}
		wanted[key] = w
	}
	c.watchOnly(user, wanted)
	for _, w := range fresh {
		c.startWatch(w)
	}
	return nil
}

// Objects returns what the watch of a kind knows; false if nobody watches it.
func (c *Cluster) Objects(kind Kind) (Objects, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w, ok := c.watched[kind.key()]
	if !ok {
		return nil, false
	}
	return w.source, true
}

// watchOnly makes wanted all that a user watches. The caller holds the lock.
func (c *Cluster) watchOnly(user Key, wanted map[watchKey]*watched) {
	for key, w := range c.watched {
		if wanted[key] != nil {
			continue
		}
		delete(w.users, user)
		if len(w.users) == 0 {
			delete(c.watched, key)
			w.stop()
		}
	}
	for key, w := range wanted {
		w.users[user] = struct{}{}
		c.watched[key] = w
	}
}

func (c *Cluster) newWatched(kind Kind) (*watched, error) {
	source, err := informer.NewKubernetes(informer.KubernetesConfig{
		Client: c.patient, Object: kind.object(), Name: fmt.Sprintf("%s of %s", kind.GroupKind(), describe(c.key)),
		LabelSelector: kind.Selector, Logger: c.clusters.config.Logger,
	})
	if err != nil {
		return nil, err
	}
	return &watched{source: source, users: map[Key]struct{}{}, stop: func() {}}, nil
}

// startWatch runs a watch until it is stopped. The caller holds the lock.
func (c *Cluster) startWatch(w *watched) {
	ctx, stop := context.WithCancel(c.ctx)
	w.stop = stop
	w.source.Subscribe(func(e informer.Event) { c.happened(w, e) })
	c.clusters.wg.Go(func() { c.follow(ctx, w.source) })
	c.clusters.wg.Go(func() {
		if w.source.WaitForSync(ctx) == nil {
			c.tellWatchers(w, Notice{Occasion: WatchBegun, Kind: w.source.GroupVersionKind()})
		}
	})
}

// follow runs a source, from the beginning with every other kubeconfig: that may be of another cluster, whose resource
// versions mean something else.
func (c *Cluster) follow(ctx context.Context, source *informer.Kubernetes) {
	for {
		conn, err := c.await(ctx)
		if err != nil {
			return
		}
		run, stop := context.WithCancel(ctx)
		forget := context.AfterFunc(conn.ctx, stop)
		_ = source.Run(run)
		forget()
		stop()
	}
}

// happened tells those whom an event concerns. The backlog concerns nobody: WatchBegun stands for it.
func (c *Cluster) happened(w *watched, e informer.Event) {
	if e.Backlog {
		return
	}
	c.tellWatchers(w, Notice{Occasion: ObjectChanged, Kind: w.source.GroupVersionKind(), Object: e.Key}, c.owners(e)...)
}

// owners asks Config.Owners; no owners at all stand for everybody.
func (c *Cluster) owners(e informer.Event) (concerned []func(Key) bool) {
	owners := c.clusters.config.Owners
	if owners == nil {
		return nil
	}
	var named []Key
	defer func() {
		if r := recover(); r != nil {
			c.clusters.config.Logger.Errorf(c.ctx, errors.New(panics.Describe(r)), "Owners panicked for %s, everybody is told", e.Key)
			concerned = nil
		}
	}()
	for _, state := range []any{e.Old, e.Object} {
		if obj, ok := state.(client.Object); ok {
			named = append(named, owners(c.key, obj)...)
		}
	}
	return []func(Key) bool{func(user Key) bool { return slices.Contains(named, user) }}
}

// tellWatchers gives a notice to the users of a watch that pass all filters.
func (c *Cluster) tellWatchers(w *watched, notice Notice, filters ...func(Key) bool) {
	c.mu.Lock()
	users := slices.Collect(maps.Keys(w.users))
	notice.Cluster, notice.State = c.key, c.health.state
	c.mu.Unlock()
	for _, pass := range filters {
		users = slices.DeleteFunc(users, func(user Key) bool { return !pass(user) })
	}
	c.clusters.notices.tell(notice, users)
}
