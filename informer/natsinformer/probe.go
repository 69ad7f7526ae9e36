package natsinformer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// minProbeTimeout is the shortest time that the server has to answer a probe.
const minProbeTimeout = time.Second

// look is the state of the bucket, with the state known before the request.
type look struct {
	// received is how much of a listing had arrived. Everything up to announced was announced.
	received  int
	announced uint64
	// keys is how many of the known keys stay until they are removed.
	keys int

	state bucketState
	err   error
}

func (s *session[T]) newLook() *look {
	m := s.source.mirror
	return &look{received: s.received, announced: m.announced, keys: m.staying(s.opened.markerTTL > 0)}
}

func (l *look) ask(ctx context.Context, bucket *opened, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	l.state, l.err = bucket.state(ctx)
}

// judge returns an error if the session must end because its watch can't be right.
func (s *session[T]) judge(now *look) error {
	bucket := s.source.bucket
	switch {
	case errors.Is(now.err, jetstream.ErrStreamNotFound):
		return fmt.Errorf("inspect bucket %s: %w", bucket.Name(), now.err)
	case now.err != nil:
		// The watch may still be good. It is compared as soon as there is an answer.
		s.source.feed.Fail("", fmt.Errorf("inspect bucket %s: %w", bucket.Name(), bucket.denied(now.err)))
		return nil
	case !now.state.created.Equal(s.before.created) || now.state.lastSeq < s.before.lastSeq:
		return s.startOver("the bucket was made anew")
	case now.state.lastSeq < now.announced:
		return s.startOver("the server knows less than it has shown")
	}
	bucket.hasRoom(now.state)
	last := s.last
	s.last = now
	if s.listing != nil {
		if last != nil && last.received == now.received {
			return fmt.Errorf("list bucket %s: %w", bucket.Name(), errListingStalled)
		}
		return nil
	}
	s.source.feed.Contact("")
	switch announced := s.source.mirror.announced; {
	case last != nil && last.state.lastSeq > announced && last.announced == announced:
		return s.startOver("the watch is stuck")
	case now.state.keys < now.keys:
		return s.startOver("entries have vanished")
	}
	return nil
}

func (s *session[T]) startOver(reason string) error {
	s.source.config.Logger.Log("level", "info", "message", "bucket is listed again", "reason", reason)
	return errStartOver
}
