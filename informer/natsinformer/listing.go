package natsinformer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// listPatience is how long a listing may go without another entry. If its last entry is removed
	// on the way, a listing does not notice its end.
	listPatience = 5 * time.Second
	// drainPatience is for a watch that the client library fails to end.
	drainPatience = 5 * time.Second
)

var errListingStalled = errors.New("the listing has stalled")

// listing has the entries that a watch delivers first: the newest of each key.
//
// The client library's end mark is not trusted, except for an empty bucket: the library counts
// messages, and if it has to recreate its consumer in between it gets other messages than it has
// counted. Instead the listing uses the number of pending messages that the server sends with each
// message.
type listing struct {
	newest map[string]jetstream.KeyValueEntry
	// reached is the highest revision.
	reached uint64
	// target is the last sequence of the stream before the watch started. Under a constant stream
	// of changes there is always a pending message. A message newer than the target shows that all
	// older ones have been delivered.
	target uint64
}

func newListing(target uint64) *listing {
	return &listing{newest: map[string]jetstream.KeyValueEntry{}, target: target}
}

// add adds an entry from the watch. It reports whether the listing has everything that the
// delivering server had. That server may be behind.
func (l *listing) add(entry jetstream.KeyValueEntry) (ended bool) {
	if entry == nil {
		return len(l.newest) == 0
	}
	l.newest[entry.Key()] = entry
	l.reached = max(l.reached, entry.Revision())
	return entry.Delta() == 0 || entry.Revision() >= l.target
}

// watch starts a watch of the keys, or of all keys if there are none. end stops it; it must be
// called.
func watch(ctx context.Context, kv jetstream.KeyValue, keys []string, options ...jetstream.WatchOpt) (updates <-chan jetstream.KeyValueEntry, end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	watcher, err := kv.WatchFiltered(ctx, keys, options...)
	if err != nil {
		cancel()
		return nil, nil, err
	}
	return watcher.Updates(), func() {
		// The library unsubscribes when the context ends, without waiting for the server as Stop
		// does. It closes the channel once its remaining messages are delivered, so they must be
		// read.
		cancel()
		drain(watcher.Updates())
	}, nil
}

func drain(updates <-chan jetstream.KeyValueEntry) {
	patience := time.NewTimer(drainPatience)
	defer patience.Stop()
	for {
		select {
		case _, open := <-updates:
			if !open {
				return
			}
		case <-patience.C:
			return
		}
	}
}

// covers reports whether a listing that has ended contains everything that the leader of the stream
// had when it started. If not, the rest will come through the same watch.
func (o *opened) covers(ctx context.Context, l *listing) (bool, error) {
	if l.reached >= l.target {
		return true, nil
	}
	// Messages at the end may have been removed.
	newest, err := o.newest(ctx, o.subjects+">")
	if err != nil {
		return false, fmt.Errorf("look for the newest entry: %w", err)
	}
	return l.reached >= newest.revision, nil
}

// list watches until the listing is complete. each is called for every entry. If there are keys,
// the target is the newest entry of one of them.
func (o *opened) list(ctx context.Context, keys []string, l *listing, each func(jetstream.KeyValueEntry), options ...jetstream.WatchOpt) error {
	updates, end, err := watch(ctx, o.kv, keys, options...)
	if err != nil {
		return err
	}
	defer end()
	patience := time.NewTimer(listPatience)
	defer patience.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-patience.C:
			return errListingStalled
		case entry, open := <-updates:
			if !open {
				return errWatchEnded
			}
			if entry != nil {
				each(entry)
			}
			if l.add(entry) {
				if len(keys) > 0 && l.reached < l.target {
					// The server that lists is behind, or the newest entry has been removed.
					return ErrBehind
				}
				if complete, err := o.covers(ctx, l); err != nil || complete {
					return err
				}
			}
			patience.Reset(listPatience)
		}
	}
}

// List returns all entities, in the order of their revisions. Undecodable ones are omitted and
// named by an error that is returned together with the others and wraps [ErrUndecodable]. With any
// other error the result is empty.
func (b *Bucket[T]) List(ctx context.Context) ([]T, error) {
	bucket, before, err := b.inspect(ctx)
	if err != nil {
		return nil, err
	}
	l := newListing(before.lastSeq)
	if err := bucket.list(ctx, nil, l, func(jetstream.KeyValueEntry) {}); err != nil {
		return nil, fmt.Errorf("list bucket %s: %w", b.config.Name, err)
	}
	if err := bucket.verify(ctx, before, l); err != nil {
		return nil, fmt.Errorf("list bucket %s: %w", b.config.Name, err)
	}
	var entities []T
	var faults []error
	for _, entry := range l.inOrder() {
		if entry.Operation() != jetstream.KeyValuePut {
			continue
		}
		entity, err := b.decode(entry.Key(), entry.Revision(), entry.Value())
		if err != nil {
			faults = append(faults, err)
			continue
		}
		entities = append(entities, entity)
	}
	return entities, errors.Join(faults...)
}

// inOrder returns the newest entries in the order of their revisions.
func (l *listing) inOrder() []jetstream.KeyValueEntry {
	return slices.SortedFunc(maps.Values(l.newest), func(a, b jetstream.KeyValueEntry) int {
		return cmp.Compare(a.Revision(), b.Revision())
	})
}
