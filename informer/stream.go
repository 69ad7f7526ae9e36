package informer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The delays before a stream tries again: shortest and longest, each before a random addition of up
// to its own length.
const (
	minRetryDelay = 200 * time.Millisecond
	maxRetryDelay = 10 * time.Second
)

// stream is one run of the list and watch of one namespace.
type stream struct {
	k         *Kubernetes
	namespace string
	// down is true from a failure to the next contact.
	down atomic.Bool
	// listing is read-locked by the reflector's lists, which the reflector does not wait for, and
	// locked when ended is set.
	listing sync.RWMutex
	ended   bool
}

func newStream(k *Kubernetes, namespace string) *stream {
	return &stream{k: k, namespace: namespace}
}

// run lists and watches until ctx ends, or until the part that the source is limited to grows.
func (s *stream) run(ctx context.Context) {
	ctx, cancel := s.k.untilGrown(ctx)
	defer cancel()
	logger := newReflectorLog(s.k.config.Logger.With("source", s.k.Name()))
	expected, err := s.k.newObject()
	if err != nil {
		_ = s.failed(ctx, err)
		<-ctx.Done()
		return
	}
	reflector := cache.NewReflectorWithOptions(
		cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
			ListWithContextFunc:  s.list,
			WatchFuncWithContext: s.watch,
		}, s.k.config.Client),
		expected,
		&reflectorStore{k: s.k, namespace: s.namespace, contact: s.contact},
		cache.ReflectorOptions{
			Name:            s.k.Name(),
			TypeDescription: s.k.gvk.String(),
			Logger:          &logger,
			Clock:           interruptibleClock{ctx: ctx},
			Backoff: &wait.Backoff{
				Duration: minRetryDelay,
				Cap:      maxRetryDelay,
				Factor:   2,
				Jitter:   1,
				Steps:    10,
			},
		},
	)
	reflector.RunWithContext(klog.NewContext(ctx, logger))
	s.listing.Lock()
	s.ended = true
	s.listing.Unlock()
}

func (s *stream) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	s.listing.RLock()
	defer s.listing.RUnlock()
	if s.ended {
		return nil, context.Canceled
	}

	list, err := s.k.newList()
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	s.k.trackWrites()
	if options.ResourceVersion == "0" {
		// "Any version" may be older than a state that this or another process has seen or written.
		options.ResourceVersion = ""
	}
	o := s.options(options)
	o.Limit, o.Continue = options.Limit, options.Continue
	if err := s.k.config.Client.List(ctx, list, o); err != nil {
		return nil, s.failed(ctx, fmt.Errorf("list %s: %w", s.k.Name(), err))
	}
	if err := s.accept(list.GetResourceVersion()); err != nil {
		return nil, s.failed(ctx, fmt.Errorf("list %s: %w", s.k.Name(), err))
	}
	s.contact()
	return list, nil
}

func (s *stream) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	list, err := s.k.newList()
	if err != nil {
		return nil, s.failed(ctx, err)
	}
	s.k.trackWrites()
	w, err := s.k.config.Client.Watch(ctx, list, s.options(options))
	if err == nil {
		s.contact()
		return drainedWatch{watch.Filter(w, func(e watch.Event) (watch.Event, bool) { return s.usable(ctx, e) })}, nil
	}
	wrapped := fmt.Errorf("watch %s: %w", s.k.Name(), err)
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		// Not an outage: the reflector lists again.
	case options.SendInitialEvents != nil && isRefusal(err):
		// A server without streaming lists. The reflector falls back to a list, and its result
		// counts.
	default:
		wrapped = s.failed(ctx, wrapped)
	}
	if utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err) {
		// The reflector recognises these only when they are not wrapped.
		return nil, err
	}
	return nil, wrapped
}

// usable reports whether the reflector can use an event. The reflector would skip an unusable one
// and only log it.
func (s *stream) usable(ctx context.Context, e watch.Event) (watch.Event, bool) {
	sort := ""
	switch e.Type {
	case watch.Bookmark:
		return s.bookmark(ctx, e), true
	case watch.Added, watch.Modified, watch.Deleted:
		if _, err := meta.Accessor(e.Object); err == nil {
			return e, true
		}
		sort = fmt.Sprintf("event %s with a %T, which has no metadata", e.Type, e.Object)
	case watch.Error:
		// It ends the watch, which is then resumed: the list is too old, or the server has sent
		// something unreadable. A watch that we end ourselves may return it too.
		err := apierrors.FromObject(e.Object)
		if ctx.Err() == nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			s.k.unusable(fmt.Sprintf("event ERROR (%s)", apierrors.ReasonForError(err)), err)
		}
		return e, true
	default:
		sort = fmt.Sprintf("event of the unknown type %q", e.Type)
	}
	s.k.unusable(sort, errors.New(sort))
	return e, false
}

// bookmark returns the bookmark. It returns an error instead if the bookmark ends a streamed list
// that is older than the state seen before.
func (s *stream) bookmark(ctx context.Context, e watch.Event) watch.Event {
	m, err := meta.Accessor(e.Object)
	if err != nil || m.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
		return e
	}
	if err := s.accept(m.GetResourceVersion()); err != nil {
		err = s.failed(ctx, fmt.Errorf("list %s: %w", s.k.Name(), err))
		// The reflector then lists without streaming, and the result is checked too.
		status := apierrors.NewInternalError(err).Status()
		return watch.Event{Type: watch.Error, Object: &status}
	}
	return e
}

// accept returns an error if a listing of this version is older than a state shown in this run or
// an earlier one.
func (s *stream) accept(version string) error {
	if seen := s.k.shownUpTo(s.namespace); IsOlder(version, seen) {
		return fmt.Errorf("the listing is of resource version %s, and %s was seen before: the API server lags, or was set back to a backup; "+
			"in the latter case restart the operator", version, seen)
	}
	return nil
}

func (s *stream) options(raw metav1.ListOptions) *client.ListOptions {
	return &client.ListOptions{
		Namespace:     s.namespace,
		LabelSelector: s.k.config.LabelSelector,
		FieldSelector: s.k.config.FieldSelector,
		Raw:           &raw,
	}
}

func (s *stream) contact() {
	s.k.feed.Contact(s.namespace)
	if s.down.Swap(false) {
		s.k.config.Logger.Log("level", "info", "message", "source is connected again", "source", s.k.Name(), "namespace", s.namespace)
	}
}

// failed notes an outage, and logs its start. It is called where requests fail, because the
// reflector does not report all failures. It returns err as a notedError.
func (s *stream) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return notedError{err}
	}
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		s.k.feed.Contact(s.namespace)
	}
	s.k.feed.Fail(s.namespace, err)
	if !s.down.Swap(true) {
		text := "source has lost contact, retrying"
		switch {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
			text = "source can't be read, retrying: the API server does not serve the kind: is its custom resource definition installed, with this version?"
		case !s.k.Status().Synced:
			text = "source can't be read yet, retrying"
		}
		s.k.config.Logger.With("source", s.k.Name(), "namespace", s.namespace).Errorf(ctx, err, "%s", text)
	}
	return notedError{err}
}

// notedError is an error that is logged already, so the reflector's message about it is for
// debugging only.
type notedError struct{ error }

func (e notedError) Unwrap() error { return e.error }

// isRefusal is true for an answer that a later attempt would get again.
func isRefusal(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && !apierrors.IsTooManyRequests(err)
}

// drainedWatch is a watch with a Stop that waits for the end of its goroutine.
type drainedWatch struct{ watch.Interface }

func (w drainedWatch) Stop() {
	w.Interface.Stop()
	for range w.ResultChan() {
	}
}

// interruptibleClock is the real clock, except that After fires at the latest when ctx ends. The
// reflector does not check its context in one such place.
type interruptibleClock struct {
	clock.RealClock
	ctx context.Context
}

func (c interruptibleClock) After(d time.Duration) <-chan time.Time {
	fired := make(chan time.Time, 2)
	ready := make(chan struct{})
	var timer *time.Timer
	forget := context.AfterFunc(c.ctx, func() {
		<-ready
		timer.Stop()
		fired <- time.Now()
	})
	timer = time.AfterFunc(d, func() {
		<-ready
		forget()
		fired <- time.Now()
	})
	close(ready)
	return fired
}

var (
	_ cache.TransformingStore      = (*reflectorStore)(nil)
	_ cache.ReflectorBookmarkStore = (*reflectorStore)(nil)
)

// reflectorStore passes the objects that the reflector receives for one namespace to the feed. None
// of its methods returns an error, because the reflector would log it together with the object.
type reflectorStore struct {
	k         *Kubernetes
	namespace string
	contact   func()
}

// item returns the item to store for a received object. Anything that is not an object is logged.
func (s *reflectorStore) item(received any) (Item, bool) {
	item, ok := s.k.prepare.item(received)
	if !ok {
		err := fmt.Errorf("received a %T, which is not an object", received)
		s.k.unusable(err.Error(), err)
	}
	return item, ok
}

func (s *reflectorStore) Add(obj any) error {
	s.contact()
	if item, ok := s.item(obj); ok {
		s.k.feed.Set(item)
	}
	return nil
}

func (s *reflectorStore) Update(obj any) error { return s.Add(obj) }

func (s *reflectorStore) Delete(obj any) error {
	s.contact()
	if item, ok := s.item(obj); ok {
		s.k.feed.Remove(item)
	}
	return nil
}

func (s *reflectorStore) Replace(objs []any, version string) error {
	s.contact()
	items := make([]Item, 0, len(objs))
	for _, obj := range objs {
		if item, ok := s.item(obj); ok {
			items = append(items, item)
		}
	}
	s.k.feed.ReplaceAsOf(s.namespace, items, version)
	return nil
}

// Bookmark is a sign of life from the server.
func (s *reflectorStore) Bookmark(string) error {
	s.contact()
	return nil
}

// Resync does nothing: the source resyncs by itself, for all namespaces at once and across
// reconnects.
func (s *reflectorStore) Resync() error { return nil }

// Transformer makes the objects that a streamed list collects as small as stored ones.
func (s *reflectorStore) Transformer() cache.TransformFunc { return s.k.prepare.transform }
