package natsinformer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/operatorkit/operatorkit/informer"
)

// ErrBehind is in the chain of the error for a key if, for longer than BucketConfig.CatchUpTimeout,
// the answers of the servers were older than the state that a Source of the bucket has shown. It
// says nothing about the key: try again.
var ErrBehind = errors.New("the answer is older than what was seen")

const (
	// minCatchUpPause and maxCatchUpPause bound the pause between two requests to servers that are
	// behind. It doubles from the minimum to the maximum.
	minCatchUpPause = 5 * time.Millisecond
	maxCatchUpPause = 500 * time.Millisecond

	bucketSubjects = "$KV.%s."
	// streamPrefix and the name of a bucket are the name of its stream.
	streamPrefix = "KV_"
	// operationHeader is the header with which clients mark deletions. deleteOperation is its value
	// for a plain deletion.
	operationHeader = "KV-Operation"
	deleteOperation = "DEL"
	// removedReason is the jetstream.MarkerReasonHeader of the marker that a server writes for a
	// deleted message.
	removedReason = "Remove"
)

// opened is a bucket with its cached properties.
type opened struct {
	kv jetstream.KeyValue
	js jetstream.JetStream
	// leader reads from the leader of the stream. kv does not if direct gets are allowed.
	leader nats.JetStreamContext
	// stream is the name of the stream, subjects is the prefix of a key in the subject of an entry,
	// and puts is that prefix for publishing.
	stream, subjects, puts string
	// markerTTL is how long purge markers stay; 0 means forever.
	markerTTL time.Duration
	// history is how many values of a key are kept, and maxValue is their maximum size.
	history  int64
	maxValue int32
}

// open returns the cached bucket, or reads it.
func (b *Bucket[T]) open(ctx context.Context) (*opened, error) {
	if bucket := b.opened.Load(); bucket != nil {
		return bucket, nil
	}
	bucket, _, err := b.inspect(ctx)
	if err == nil {
		b.opened.Store(bucket)
	}
	return bucket, err
}

// inspect reads the current state of the bucket. A mirror is an error if its entries have other
// subjects than expected.
func (b *Bucket[T]) inspect(ctx context.Context) (*opened, bucketState, error) {
	js := b.config.JetStream
	kv, err := js.KeyValue(ctx, b.config.Name)
	if err != nil {
		return nil, bucketState{}, fmt.Errorf("open bucket %s: %w", b.config.Name, b.denied(err))
	}
	status, err := kv.Status(ctx)
	if err != nil {
		return nil, bucketState{}, fmt.Errorf("inspect bucket %s: %w", b.config.Name, b.denied(err))
	}
	leader, err := js.Conn().JetStream(sameAPI(js.Options())...)
	if err != nil {
		return nil, bucketState{}, fmt.Errorf("open bucket %s: %w", b.config.Name, err)
	}
	info := status.(*jetstream.KeyValueBucketStatus).StreamInfo()
	o := &opened{
		kv: kv, js: js, leader: leader, stream: info.Config.Name, subjects: fmt.Sprintf(bucketSubjects, b.config.Name),
		markerTTL: status.LimitMarkerTTL(), history: status.History(), maxValue: info.Config.MaxMsgSize,
	}
	o.puts = prefixOf(js.Options()) + o.subjects
	if m := info.Config.Mirror; m != nil {
		origin := strings.TrimPrefix(m.Name, streamPrefix)
		if m.External == nil || m.External.APIPrefix == "" {
			return nil, bucketState{}, fmt.Errorf("open bucket %s: %w: its entries have the subjects of stream %s: open the bucket %s itself",
				b.config.Name, errMirror, m.Name, origin)
		}
		// Entries of a mirror in another domain have the subjects that they have there.
		o.subjects = fmt.Sprintf(bucketSubjects, origin)
		o.puts = m.External.APIPrefix + "." + o.subjects
	}
	return o, stateOf(info), nil
}

// state reads the current state of the bucket.
func (o *opened) state(ctx context.Context) (bucketState, error) {
	status, err := o.kv.Status(ctx)
	if err != nil {
		return bucketState{}, err
	}
	return stateOf(status.(*jetstream.KeyValueBucketStatus).StreamInfo()), nil
}

// prefixOf returns the prefix of the subjects of entries in another domain, or behind another API
// prefix.
func prefixOf(options jetstream.JetStreamOptions) string {
	if options.Domain != "" {
		return "$JS." + options.Domain + ".API."
	}
	if prefix := strings.TrimSuffix(options.APIPrefix, ".") + "."; options.APIPrefix != "" && prefix != jetstream.DefaultAPIPrefix {
		return prefix
	}
	return ""
}

// sameAPI returns the options for another client of the same JetStream.
func sameAPI(from jetstream.JetStreamOptions) (options []nats.JSOpt) {
	if from.DefaultTimeout > 0 {
		options = append(options, nats.MaxWait(from.DefaultTimeout))
	}
	switch {
	case from.APIPrefix != "":
		options = append(options, nats.APIPrefix(from.APIPrefix))
	case from.Domain != "":
		options = append(options, nats.Domain(from.Domain))
	}
	return options
}

// message is the newest message of a key. Without a message its revision is 0.
type message struct {
	revision uint64
	data     []byte
	// value is true for a value, and deleted for the marker of a plain deletion.
	value, deleted bool
}

// newest asks the leader of the stream for the newest message of a subject.
func (o *opened) newest(ctx context.Context, subject string) (message, error) {
	msg, err := o.leader.GetLastMsg(o.stream, subject, nats.Context(ctx))
	if errors.Is(err, nats.ErrMsgNotFound) {
		return message{}, nil
	}
	if err != nil {
		return message{}, err
	}
	operation, reason := msg.Header.Get(operationHeader), msg.Header.Get(jetstream.MarkerReasonHeader)
	return message{
		revision: msg.Sequence, data: msg.Data,
		value:   operation == "" && reason == "",
		deleted: operation == deleteOperation || operation == "" && reason == removedReason,
	}, nil
}

// shown is the state of a key that a source has shown.
type shown struct {
	// revision is the revision of the value or of the marker.
	revision uint64
	// live is true for a value.
	live bool
	// created identifies the bucket that had it.
	created time.Time
}

// follower is a source of the bucket.
type follower[T Entity] interface {
	// shown returns the newest state of a key that the source has shown or that was written.
	shown(key string) (shown, bool)
	// begin notes that a key is about to be written. It returns nil if the source filters the key
	// out.
	begin(key string, author *informer.Author) *write[T]
}

// follow makes every read of a key at least as new as the state that f has shown, and reports
// writes through the bucket to f, until stop is called.
func (b *Bucket[T]) follow(f follower[T]) (stop func()) {
	b.followers.Store(f, struct{}{})
	return func() { b.followers.Delete(f) }
}

// shown returns the newest state of a key that a source has shown.
func (b *Bucket[T]) shown(key string) (newest shown) {
	b.followers.Range(func(f, _ any) bool {
		if s, ok := f.(follower[T]).shown(key); ok && s.revision > newest.revision {
			newest = s
		}
		return true
	})
	return newest
}

// read returns the newest message of a key. It is at least as new as the state that was shown: a
// leader that was just elected, or has not noticed yet that it no longer leads, is asked again.
func (b *Bucket[T]) read(ctx context.Context, key string) (message, error) {
	if !IsKey(key) {
		return message{}, jetstream.ErrInvalidKey
	}
	bucket, err := b.open(ctx)
	if err != nil {
		return message{}, err
	}
	// state is the state of the bucket before the request. It is read only if the first answer was
	// behind.
	var state bucketState
	bound := time.Now().Add(b.config.CatchUpTimeout)
	for pause := minCatchUpPause; ; pause = min(2*pause, maxCatchUpPause) {
		msg, err := bucket.newest(ctx, bucket.subjects+key)
		if err != nil {
			return message{}, err
		}
		seen := b.shown(key)
		if !msg.olderThan(seen, state) {
			return msg, nil
		}
		if time.Now().After(bound) {
			return message{}, fmt.Errorf("%w: it has revision %d, and revision %d was seen %s ago", ErrBehind, msg.revision, seen.revision, b.config.CatchUpTimeout)
		}
		if err := wait(ctx, pause); err != nil {
			return message{}, err
		}
		if _, state, err = b.inspect(ctx); err != nil {
			return message{}, err
		}
	}
}

// olderThan reports whether the answer of a server may be older than the state seen. state is the
// state of the bucket at some time before the answer, and zero if it was not read.
func (m message) olderThan(seen shown, state bucketState) bool {
	switch {
	case m.revision > seen.revision, m.revision == seen.revision && m.revision > 0:
		return false
	case !state.created.IsZero() && !state.created.Equal(seen.created):
		// It is another bucket, which the source has not noticed yet.
		return false
	case m.revision > 0 && state.replicated:
		return true
	case m.revision == 0 && !seen.live:
		return false
	}
	// The answer is empty or an older value. If the server ever had the message seen, it has
	// vanished without a trace.
	return state.lastSeq < seen.revision
}

// wait waits, unless ctx ends before.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
