package natsinformer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

var (
	errIncomplete = errors.New("fewer keys were listed than there are")
	errRecreated  = errors.New("the bucket was made anew")
)

// bucketState is what a bucket says of itself.
type bucketState struct {
	// created tells a bucket from others of its name.
	created time.Time
	// lastSeq is the highest sequence that was given to a message.
	lastSeq uint64
	// keys is how many keys there are, those that have a marker alone included. It is -1 for buckets that get their
	// entries from other ones, where it may count what is no key.
	keys int
	// history is how many values of a key are kept.
	history int64
	// replicated is true if several servers have the bucket.
	replicated bool
}

func stateOf(status jetstream.KeyValueStatus) bucketState {
	state := bucketState{keys: -1, history: status.History()}
	bucket, ok := status.(*jetstream.KeyValueBucketStatus)
	if !ok {
		return state
	}
	info := bucket.StreamInfo()
	state.created, state.lastSeq, state.replicated = info.Created, info.State.LastSeq, info.Config.Replicas > 1
	if info.Config.Mirror == nil && len(info.Config.Sources) == 0 {
		state.keys = int(info.State.NumSubjects) //nolint:gosec // a number of keys in memory
	}
	return state
}

// verify returns an error if a listing can't be all that was in the bucket, of which before was the state when the listing
// began.
func (b *Bucket[T]) verify(ctx context.Context, kv jetstream.KeyValue, before bucketState, l *listing) error {
	status, err := kv.Status(ctx)
	if err != nil {
		return fmt.Errorf("inspect bucket: %w", err)
	}
	after := stateOf(status)
	if !after.created.Equal(before.created) || after.lastSeq < before.lastSeq {
		return errRecreated
	}
	// Keys may come and go while they are listed, but what was there before and is there now was there all along.
	if at := len(l.newest); at < before.keys && at < after.keys {
		return fmt.Errorf("%w: %d of %d", errIncomplete, at, after.keys)
	}
	return nil
}
