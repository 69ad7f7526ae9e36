package natsinformer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

var (
	errIncomplete = errors.New("fewer keys were listed than the stream has subjects: if this lasts, it has messages that are no entries of the bucket")
	errRecreated  = errors.New("the bucket was made anew")
	errAwaited    = errors.New("the bucket gets its entries from others and does not have all of them yet")
	errMirror     = errors.New("the bucket is a mirror in the account of its origin")
)

// bucketState is the state that a bucket reports.
type bucketState struct {
	// created distinguishes a bucket from others of its name.
	created time.Time
	// lastSeq is the highest sequence assigned so far.
	lastSeq uint64
	// keys is the number of subjects. It includes keys that have only a marker, and other subjects
	// of the stream.
	keys int
	// awaited describes the messages that the bucket still lacks from the buckets it copies. It is
	// empty if it lacks none.
	awaited string
	// bytes and maxBytes are the size and its limit. Without a limit maxBytes is not positive.
	bytes    uint64
	maxBytes int64
	// replicated is true if several servers store the bucket.
	replicated bool
}

func stateOf(info *jetstream.StreamInfo) bucketState {
	state := bucketState{
		created: info.Created, lastSeq: info.State.LastSeq, replicated: info.Config.Replicas > 1,
		bytes: info.State.Bytes, maxBytes: info.Config.MaxBytes,
		keys: int(info.State.NumSubjects), //nolint:gosec // a number of keys in memory
	}
	for _, origin := range slices.Concat(info.Sources, []*jetstream.StreamSourceInfo{info.Mirror}) {
		switch {
		case origin == nil:
		case origin.Active < 0:
			state.awaited = fmt.Sprintf("its server has not reached stream %s yet", origin.Name)
		case origin.Lag > 0:
			state.awaited = fmt.Sprintf("%d messages of stream %s are missing", origin.Lag, origin.Name)
		}
	}
	return state
}

// verify returns an error if a listing can't be the complete content of the bucket. before is the
// state of the bucket when the listing started.
func (o *opened) verify(ctx context.Context, before bucketState, l *listing) error {
	after, err := o.state(ctx)
	if err != nil {
		return fmt.Errorf("inspect bucket: %w", err)
	}
	if !after.created.Equal(before.created) || after.lastSeq < before.lastSeq {
		return errRecreated
	}
	if awaited := cmp.Or(before.awaited, after.awaited); awaited != "" {
		return fmt.Errorf("%w: %s", errAwaited, awaited)
	}
	// Keys may come and go during the listing, but keys that exist before and after it existed
	// throughout.
	if at := len(l.newest); at < before.keys && at < after.keys {
		return fmt.Errorf("%w: %d of %d", errIncomplete, at, after.keys)
	}
	return nil
}
