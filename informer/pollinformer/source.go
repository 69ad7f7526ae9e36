package pollinformer

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/jitter"
	"github.com/operatorkit/operatorkit/internal/panics"
)

// Source is an [informer.Source] that lists on a timer. Its objects are values of type T.
type Source[T any] struct {
	*informer.Hub
	feed   *informer.Feed
	config Config[T]
	writes writes
	// listing has room for the one List in progress, refreshing for the one that updates the store.
	listing, refreshing chan struct{}
}

var (
	_ informer.LiveReader   = (*Source[any])(nil)
	_ informer.LiveSelector = (*Source[any])(nil)
	_ informer.Comparer     = (*Source[any])(nil)
)

// New returns a source that does nothing until Run is called. The error names each invalid field
// and wraps [informer.ErrInvalidConfig].
func New[T any](config Config[T]) (*Source[T], error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	s := &Source[T]{config: config, writes: newWrites(), listing: make(chan struct{}, 1), refreshing: make(chan struct{}, 1)}
	s.Hub, s.feed = informer.NewHub(informer.HubConfig{
		Name: config.Name,
		Copy: func(obj any) (any, error) { return config.Copy(obj.(T)), nil },
	})
	return s, nil
}

// Run implements [informer.Source]. It lists at once and then at each interval, and returns nil.
func (s *Source[T]) Run(ctx context.Context) error {
	s.feed.Run(ctx, s.poll)
	return nil
}

func (s *Source[T]) poll(ctx context.Context) {
	logger := s.config.Logger.With("source", s.Name())
	failing := false
	for {
		err := s.refresh(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.feed.Fail("", err)
			if !failing {
				logger.Errorf(ctx, err, "source can't be listed, retrying")
			}
		case failing:
			logger.Log("level", "info", "message", "source can be listed again")
		}
		failing = err != nil

		timer := time.NewTimer(jitter.Of(s.config.Interval))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// refresh lists once and passes the result to the store. It leaves the store alone if that fails.
func (s *Source[T]) refresh(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("list %s: %s\n%s", s.Name(), panics.Describe(r), debug.Stack())
		}
	}()
	select {
	case s.refreshing <- struct{}{}:
		defer func() { <-s.refreshing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	s.writes.listBegins()
	values, err := s.list(ctx)
	if err != nil {
		return fmt.Errorf("list %s: %w", s.Name(), err)
	}
	items := make(map[informer.Key]informer.Item, len(values))
	for key, value := range values {
		items[key], err = s.item(key, value)
		if err != nil {
			return err
		}
	}
	return s.replace(items)
}

// replace makes the listed items the content of the store, except for keys written meanwhile.
func (s *Source[T]) replace(items map[informer.Key]informer.Item) error {
	s.writes.mu.Lock()
	defer s.writes.mu.Unlock()
	for key := range s.writes.meanwhile {
		delete(items, key)
		stored, exists, err := s.Get(key)
		if err == nil && exists {
			items[key], err = s.item(key, stored.(T))
		}
		if err != nil {
			return err
		}
	}
	s.feed.Replace("", slices.Collect(maps.Values(items)))
	return nil
}

func (s *Source[T]) item(key informer.Key, value T) (informer.Item, error) {
	version, err := s.config.Version(value)
	if err != nil {
		return informer.Item{}, fmt.Errorf("version of %s in %s: %w", key, s.Name(), err)
	}
	return informer.Item{Key: key, Object: value, Version: version}, nil
}

// list also returns an error if List has exceeded its time and returned a part of the things
// without one.
func (s *Source[T]) list(ctx context.Context) (map[informer.Key]T, error) {
	select {
	case s.listing <- struct{}{}:
		defer func() { <-s.listing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	values, err := s.config.List(ctx)
	if err == nil {
		err = ctx.Err()
	}
	return values, err
}

// GetLive implements [informer.LiveReader]: it calls Config.Get, or lists.
func (s *Source[T]) GetLive(ctx context.Context, key informer.Key) (obj any, exists bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("get %s of %s: %s\n%s", key, s.Name(), panics.Describe(r), debug.Stack())
		}
	}()
	value, exists, err := s.get(ctx, key)
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("get %s of %s: %w", key, s.Name(), err)
	case !exists:
		return nil, false, nil
	}
	return s.config.Copy(value), true, nil
}

func (s *Source[T]) get(ctx context.Context, key informer.Key) (value T, exists bool, err error) {
	if s.config.Get == nil {
		values, err := s.list(ctx)
		value, exists = values[key]
		return value, exists, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	return s.config.Get(ctx, key)
}

// Behind implements [informer.Comparer] by an additional list, after which no key is behind.
func (s *Source[T]) Behind(ctx context.Context, _ func(informer.Key) bool) (map[informer.Key]informer.Lag, error) {
	return nil, s.refresh(ctx)
}

// SelectsLive implements [informer.LiveSelector]: everything that exists is selected.
func (s *Source[T]) SelectsLive(context.Context, any) (bool, error) { return true, nil }
