package natsinformer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/jitter"
)

const (
	// minPause and maxPause bound the pause between two attempts to follow the bucket. It doubles
	// from the minimum to the maximum, and ends when the connection is back.
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
)

// Source is an [informer.Source] of the entities in a bucket. The Name of their informer.Keys is
// the key of the entry. All methods are safe for concurrent use.
type Source[T Entity] struct {
	*informer.Hub
	feed   *informer.Feed
	config SourceConfig[T]
	bucket *Bucket[T]
	counts counts

	// keepDeleted and forgetDeleted are true once the methods of these names were called.
	keepDeleted, forgetDeleted atomic.Bool

	// mirror is used only by the work of Run, which runs once at a time.
	mirror *mirror[T]
}

// NewSource returns a source that does nothing until Run is called. The error names each invalid
// field and wraps [informer.ErrInvalidConfig].
func NewSource[T Entity](config SourceConfig[T]) (*Source[T], error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	s := &Source[T]{config: config, bucket: config.Bucket}
	if err := s.counts.register(config.Registerer, config.Name); err != nil {
		return nil, fmt.Errorf("%w of a source of NATS entries: Registerer: %w", informer.ErrInvalidConfig, err)
	}
	s.Hub, s.feed = informer.NewHub(informer.HubConfig{
		Name:     config.Name,
		Indexers: config.Indexers, Logger: config.Logger,
		Copy:    func(obj any) (any, error) { return s.read(obj.(T)) },
		Compare: resourceversion.CompareResourceVersion, Compacted: true,
		Last: func(stored any, end string) any {
			_, marker := parseVersion(end)
			return s.mirror.last(stored.(T), marker)
		},
	})
	s.mirror = newMirror(s.bucket, s.feed, config, &s.counts)
	s.mirror.keeps = func() bool { return s.keepDeleted.Load() || !s.forgetDeleted.Load() }
	return s, nil
}

// ForgetDeleted makes the source drop the last states of deleted entities and repeat no deletions:
// a deletion is announced once, like a purge. It is for sources that are not the primaries of a
// framework, and has no effect if KeepDeleted is called. Call it before Run.
func (s *Source[T]) ForgetDeleted() { s.forgetDeleted.Store(true) }

// KeepDeleted makes the source keep, and repeat to new subscribers, every deletion that still has a
// marker in the bucket. This is the default, but KeepDeleted also overrides ForgetDeleted. It is
// for code that processes deletions and causes calls of Remove. Call it before Run.
func (s *Source[T]) KeepDeleted() { s.keepDeleted.Store(true) }

// Bucket returns the bucket that the source follows.
func (s *Source[T]) Bucket() *Bucket[T] { return s.bucket }

// Status implements [informer.Source].
func (s *Source[T]) Status() informer.Status {
	status := s.Hub.Status()
	if full := s.bucket.full.Load(); full != nil {
		status.Degraded = full.err
	}
	return status
}

// read makes the private copy of a stored entity that Get returns.
func (s *Source[T]) read(entity T) (T, error) {
	if err := entity.EntityMeta().DecodeError(); err != nil {
		var none T
		return none, err
	}
	return s.bucket.clone(entity)
}

// Lookup returns a private copy of the entity of a key, like Get.
func (s *Source[T]) Lookup(key string) (entity T, exists bool, err error) {
	obj, exists, err := s.Get(informer.Key{Name: key})
	entity, _ = obj.(T)
	return entity, exists, err
}

// Entities returns private copies of all entities, like List.
func (s *Source[T]) Entities() []T { return typed[T](s.List()) }

// EntitiesByIndex returns private copies of the entities that an index files under value, like
// ByIndex.
func (s *Source[T]) EntitiesByIndex(index, value string) ([]T, error) {
	objs, err := s.ByIndex(index, value)
	return typed[T](objs), err
}

func typed[T any](objs []any) []T {
	entities := make([]T, 0, len(objs))
	for _, obj := range objs {
		entities = append(entities, obj.(T))
	}
	return entities
}

// GetLive implements [informer.LiveReader].
func (s *Source[T]) GetLive(ctx context.Context, key informer.Key) (obj any, exists bool, err error) {
	if key.Namespace != "" {
		return nil, false, nil
	}
	entity, err := s.bucket.Get(ctx, key.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, errors.Is(err, ErrUndecodable), err
	}
	return entity, true, nil
}

// SelectsLive implements [informer.LiveSelector].
func (s *Source[T]) SelectsLive(_ context.Context, obj any) (bool, error) {
	return s.config.Filter(obj.(T).GetName()), nil
}

// Behind implements [informer.Comparer]: it reads the last sequence of the bucket, and waits until
// everything up to it is announced. No key is behind then.
func (s *Source[T]) Behind(ctx context.Context, _ func(informer.Key) bool) (map[informer.Key]informer.Lag, error) {
	return nil, s.mirror.catchUp(ctx, 0)
}

// Run implements [informer.Source]. It returns nil when ctx ends. A closed connection never comes
// back: then Run returns an error for which errors.Is(err, nats.ErrConnectionClosed) holds, so that
// the operator ends and is restarted.
func (s *Source[T]) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var watching sync.WaitGroup
	conn := s.bucket.config.JetStream.Conn()
	ends := conn.StatusChanged(nats.CLOSED)
	defer conn.RemoveStatusListener(ends)
	closed := conn.IsClosed()
	if !closed {
		watching.Go(func() {
			select {
			case <-ends:
				closed = true
				cancel()
			case <-ctx.Done():
			}
		})
		s.feed.Run(ctx, s.work)
	}
	cancel()
	watching.Wait()
	if !closed {
		return nil
	}
	err := fmt.Errorf("follow bucket %s: %w", s.bucket.Name(), nats.ErrConnectionClosed)
	if last := conn.LastError(); last != nil && !errors.Is(last, nats.ErrConnectionClosed) {
		err = fmt.Errorf("%w: %w", err, last)
	}
	s.feed.Fail("", err)
	return err
}

// warnOfEnd logs a warning if the connection will not reconnect forever.
func (s *Source[T]) warnOfEnd(conn *nats.Conn) {
	if conn.Opts.AllowReconnect && conn.Opts.MaxReconnect < 0 {
		return
	}
	s.config.Logger.Log("level", "warning", "message", "the connection is given up after a long outage, which ends the source: connect with nats.MaxReconnects(-1)",
		"maxReconnects", conn.Opts.MaxReconnect, "allowReconnect", conn.Opts.AllowReconnect)
}

func (s *Source[T]) work(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer s.bucket.follow(s.mirror)()
	s.warnOfEnd(s.bucket.config.JetStream.Conn())
	wg.Go(func() { s.feed.Resync(ctx, s.config.Resync) })
	out, pause := false, minPause
	for {
		session := &session[T]{source: s}
		err := session.run(ctx, func() {
			if out {
				s.config.Logger.Log("level", "info", "message", "bucket can be followed again")
			}
			out, pause = false, minPause
		})
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errStartOver):
			continue
		}
		s.feed.Fail("", err)
		if !out {
			s.config.Logger.Errorf(ctx, err, "bucket can't be followed, retrying")
		}
		out = true
		s.pause(ctx, pause, err)
		pause = min(2*pause, maxPause)
	}
}

// pause waits before the next attempt after err, for d ±10 % at random, or until the connection is
// back.
func (s *Source[T]) pause(ctx context.Context, d time.Duration, err error) {
	conn := s.bucket.config.JetStream.Conn()
	back := conn.StatusChanged(nats.CONNECTED)
	defer conn.RemoveStatusListener(back)
	if errors.Is(err, errDisconnected) && conn.IsConnected() {
		return
	}
	timer := time.NewTimer(jitter.Of(d))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-back:
	case <-timer.C:
	}
}
