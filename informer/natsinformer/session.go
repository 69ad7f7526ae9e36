package natsinformer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/operatorkit/operatorkit/internal/jitter"
)

var (
	errDisconnected = errors.New("not connected")
	errWatchEnded   = errors.New("the watch has ended")
	// errStartOver ends a session that is followed by another one immediately, without an outage.
	errStartOver = errors.New("the bucket is to be listed again")
)

// session follows the bucket once: it lists, and then watches until the watch fails.
type session[T Entity] struct {
	source *Source[T]
	opened *opened
	// before is the state of the bucket when the session started.
	before bucketState
	// listing is nil once it is complete.
	listing *listing
	// received is the number of entries that the listing has received. last is the previous probe
	// of the bucket, or nil.
	received int
	last     *look
}

// run follows the bucket until ctx ends, or returns why it can't continue. It calls listed when the
// store is up to date.
func (s *session[T]) run(ctx context.Context, listed func()) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)

	conn := s.source.bucket.config.JetStream.Conn()
	changes := conn.StatusChanged()
	wg.Go(func() { s.holdConnection(ctx, conn, changes, end) })
	if status := conn.Status(); status != nats.CONNECTED {
		return disconnected(conn, status)
	}
	err := s.follow(ctx, &wg, listed)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if status := conn.Status(); status != nats.CONNECTED && !errors.Is(err, errStartOver) {
		// The lost connection is the cause of any other error.
		return disconnected(conn, status)
	}
	return err
}

// holdConnection ends the session when its connection changes status.
func (s *session[T]) holdConnection(ctx context.Context, conn *nats.Conn, changes chan nats.Status, end context.CancelCauseFunc) {
	defer conn.RemoveStatusListener(changes)
	select {
	case <-ctx.Done():
	case status := <-changes:
		if status == nats.CONNECTED {
			end(errStartOver)
			return
		}
		err := disconnected(conn, status)
		s.source.feed.Fail("", err)
		end(err)
	}
}

func disconnected(conn *nats.Conn, status nats.Status) error {
	if err := conn.LastError(); err != nil {
		return fmt.Errorf("%w to NATS (%s): %w", errDisconnected, status, err)
	}
	return fmt.Errorf("%w to NATS (%s)", errDisconnected, status)
}

// follow lists and watches. The goroutines that it starts are in wg, and end with ctx.
func (s *session[T]) follow(ctx context.Context, wg *sync.WaitGroup, listed func()) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	updates, endWatch, err := watch(ctx, s.opened.kv, nil)
	if err != nil {
		return fmt.Errorf("watch bucket %s: %w", s.source.bucket.Name(), s.source.bucket.denied(err))
	}
	defer endWatch()

	ticker := time.NewTicker(s.source.config.ProbeInterval)
	defer ticker.Stop()
	relist := time.NewTimer(jitter.Of(s.source.config.Relist))
	defer relist.Stop()
	looks := make(chan *look, 1)
	asking := false
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case entry, open := <-updates:
			if !open {
				return fmt.Errorf("watch bucket %s: %w", s.source.bucket.Name(), errWatchEnded)
			}
			if err := s.receive(ctx, entry, listed); err != nil {
				return err
			}
		case <-ticker.C:
			if asking {
				continue
			}
			asking = true
			look := s.newLook()
			wg.Go(func() {
				look.ask(ctx, s.opened, max(s.source.config.ProbeInterval, minProbeTimeout))
				looks <- look
			})
		case look := <-looks:
			asking = false
			if err := s.judge(look); err != nil {
				return err
			}
		case <-relist.C:
			return errStartOver
		case <-s.source.mirror.again:
			return s.startOver("an entry was written, and the bucket may be another one by now")
		}
	}
}

// begin inspects the bucket before the listing starts.
func (s *session[T]) begin(ctx context.Context) (err error) {
	mirror, bucket := s.source.mirror, s.source.bucket
	select {
	case <-mirror.again:
	default:
	}
	mirror.mu.RLock()
	newest := mirror.newest
	mirror.mu.RUnlock()
	if s.opened, s.before, err = bucket.inspect(ctx); err != nil {
		return err
	}
	if err := mirror.follows(s.before, newest, bucket.config.CatchUpTimeout); err != nil {
		return fmt.Errorf("list bucket %s: %w", bucket.Name(), err)
	}
	bucket.opened.Store(s.opened)
	mirror.meet(s.before, newest)
	s.listing = newListing(s.before.lastSeq)
	return nil
}

// receive processes an entry from the watch.
func (s *session[T]) receive(ctx context.Context, entry jetstream.KeyValueEntry, listed func()) error {
	mirror := s.source.mirror
	if s.listing == nil {
		if entry != nil {
			mirror.apply(entry)
			s.source.feed.Contact("")
		}
		return nil
	}
	s.received++
	if !s.listing.add(entry) {
		return nil
	}
	bucket := s.source.bucket
	if complete, err := s.opened.covers(ctx, s.listing); err != nil || !complete {
		return err
	}
	if mirror.doubts(s.listing, s.before.replicated, bucket.config.CatchUpTimeout) {
		return fmt.Errorf("list bucket %s: %w", bucket.Name(), ErrBehind)
	}
	if err := s.opened.verify(ctx, s.before, s.listing); err != nil {
		return fmt.Errorf("list bucket %s: %w", bucket.Name(), err)
	}
	deleted, err := s.deletedBefore(ctx)
	if err != nil {
		return fmt.Errorf("read the history of deleted entries in bucket %s: %w", bucket.Name(), err)
	}
	mirror.replace(s.listing, deleted)
	s.listing = nil
	s.source.counts.listings.Add(1)
	listed()
	return nil
}
