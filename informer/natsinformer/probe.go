package natsinformer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// minProbeTimeout is the least time that the server has to answer a probe.
const minProbeTimeout = time.Second

// probe is what is remembered from one look at the bucket to the next.
type probe struct {
	// received counts what a listing has received.
	received int
	// last is the answer before, and nil before the first one.
	last *answer
}

// question is what the store knows when the server is asked for the state of the bucket.
type question struct {
	received int
	// seen is the sequence up to which changes have been seen.
	seen uint64
	// keys is how many keys are known that stay until they are removed.
	keys int
}

type answer struct {
	question question
	state    bucketState
	err      error
}

func (s *session[T]) question() question {
	return question{received: s.probe.received, seen: s.source.mirror.seen, keys: s.source.mirror.staying(s.opened.markerTTL > 0)}
}

func (s *session[T]) ask(ctx context.Context, q question) answer {
	ctx, cancel := context.WithTimeout(ctx, max(s.source.config.ProbeInterval, minProbeTimeout))
	defer cancel()
	status, err := s.kv.Status(ctx)
	if err != nil {
		return answer{question: q, err: fmt.Errorf("inspect bucket %s: %w", s.source.bucket.Name(), s.source.bucket.denied(err))}
	}
	return answer{question: q, state: stateOf(status)}
}

// judge returns an error if the session must end, because the watch can't be right any more.
func (s *session[T]) judge(a answer) error {
	switch {
	case errors.Is(a.err, jetstream.ErrStreamNotFound):
		return a.err
	case a.err != nil:
		// The watch may be good still, and is compared as soon as there is an answer.
		s.source.feed.Fail("", a.err)
		return nil
	case !a.state.created.Equal(s.before.created) || a.state.lastSeq < s.before.lastSeq:
		return s.startOver("the bucket was made anew")
	case a.state.lastSeq < a.question.seen:
		return s.startOver("the server knows less than it has shown")
	}
	s.source.bucket.hasRoom(a.state)
	last := s.probe.last
	s.probe.last = &a
	if s.listing != nil {
		if last != nil && last.question.received == a.question.received {
			return fmt.Errorf("list bucket %s: %w", s.source.bucket.Name(), errListingStalled)
		}
		return nil
	}
	s.source.feed.Contact("")
	switch seen := s.source.mirror.seen; {
	case last != nil && last.state.lastSeq > seen && last.question.seen == seen:
		return s.startOver("the watch is stuck")
	case a.state.keys < a.question.keys:
		return s.startOver("entries have vanished")
	}
	return nil
}

func (s *session[T]) startOver(reason string) error {
	s.source.config.Logger.Log("level", "info", "message", "bucket is listed again", "reason", reason)
	return errStartOver
}
