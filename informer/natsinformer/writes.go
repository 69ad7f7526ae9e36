package natsinformer

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/operatorkit/operatorkit/informer"
)

// revisionDigits is how many digits a revision takes in a version.
const revisionDigits = 20

// versionOf is what the store has as the version of an item: a number, like a resource version, in which all revisions of a bucket
// come after those of the buckets that had its name before. bucketNumber counts these from 1.
func versionOf(bucketNumber int, revision uint64) string {
	return fmt.Sprintf("%d%0*d", bucketNumber, revisionDigits, revision)
}

// parseVersion is the opposite of versionOf. Both are 0 for an empty text.
func parseVersion(text string) (bucketNumber int, revision uint64) {
	if end := len(text) - revisionDigits; end > 0 {
		bucketNumber, _ = strconv.Atoi(text[:end])
		revision, _ = strconv.ParseUint(text[end:], 10, 64)
	}
	return bucketNumber, revision
}

// writes are one write that is under way, for each source of the bucket.
type writes[T Entity] []*write[T]

// begin tells the sources that a key is about to be written.
func (b *Bucket[T]) begin(ctx context.Context, key string) (begun writes[T]) {
	author := informer.AuthorOf(ctx)
	b.followers.Range(func(f, _ any) bool {
		if w := f.(follower[T]).begin(key, author); w != nil {
			begun = append(begun, w)
		}
		return true
	})
	return begun
}

// unknown ends the writes that have not ended, also when a fence or a codec has panicked: one that never ends would keep every later
// change from its author.
func (begun writes[T]) unknown() {
	for _, w := range begun {
		w.Unknown()
	}
}

// write is a write that is under way, for the source of a mirror.
type write[T Entity] struct {
	*informer.Write
	mirror *mirror[T]
	key    string
	// bucketNumber and newest are what the source knew when the write began.
	bucketNumber int
	newest       uint64
}

// begin implements follower.
func (m *mirror[T]) begin(key string, author *informer.Author) *write[T] {
	if !m.config.Filter(key) {
		return nil
	}
	m.mu.RLock()
	w := &write[T]{mirror: m, key: key, bucketNumber: m.bucketNumber, newest: m.newest}
	m.mu.RUnlock()
	w.Write = m.feed.Begin(informer.Key{Name: key}, author)
	return w
}

// isKnown reports whether a revision that the write was given is of the bucket that the source knows. It may be of another one if it
// is not new: revisions only grow.
func (w *write[T]) isKnown(revision uint64) bool {
	m := w.mirror
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bucketNumber != w.bucketNumber || revision <= w.newest {
		return false
	}
	m.newest = max(m.newest, revision)
	return true
}

// stored ends the write, which put data in place of the revision base, or of nothing if that is 0.
func (w *write[T]) stored(ctx context.Context, base, revision uint64, data []byte) {
	entity, err := w.mirror.entity(w.key, revision, data)
	if err != nil || !w.isKnown(revision) {
		w.await(ctx)
		return
	}
	on := informer.Created
	if base > 0 {
		on = versionOf(w.bucketNumber, base)
	}
	w.Stored(informer.Item{Key: informer.Key{Name: w.key}, Object: entity, Version: versionOf(w.bucketNumber, revision)}, on, true)
}

// ended ends the write, which put a marker in place of the revision base.
func (w *write[T]) ended(ctx context.Context, base, revision uint64, how removal) {
	if !w.isKnown(revision) {
		w.await(ctx)
		return
	}
	w.Ended(versionOf(w.bucketNumber, revision), versionOf(w.bucketNumber, base), how == byDelete && w.mirror.keeps())
}

// await has the bucket listed, and waits for that.
func (w *write[T]) await(ctx context.Context) {
	m := w.mirror
	defer w.Unknown()
	ctx, cancel := context.WithTimeout(ctx, m.bucket.config.CatchUpTimeout)
	defer cancel()
	listings := m.counts.listings.Load()
	select {
	case m.again <- struct{}{}:
	default:
	}
	if err := m.catchUp(ctx, listings); err != nil {
		m.config.Logger.Errorf(ctx, err, "entry %s was written and the bucket could not be listed after that: what is read may be older", w.key)
	}
}

// removal is a way to remove an entry.
type removal struct {
	verb, operation string
	// history tells that the earlier values are removed too. The marker may have a lifetime then.
	history bool
}

var (
	byDelete = removal{verb: "delete", operation: deleteOperation}
	byPurge  = removal{verb: "purge", operation: "PURGE", history: true}
)

// mark puts a marker in the place of the newest message of a key, which must have that revision, and returns the one of the marker. It
// does what the client library does, which does not tell.
func (o *opened) mark(ctx context.Context, how removal, key string, revision uint64) (uint64, error) {
	if !IsKey(key) {
		return 0, jetstream.ErrInvalidKey
	}
	if err := o.fits(key); err != nil {
		return 0, err
	}
	msg := nats.NewMsg(o.puts + key)
	msg.Header.Set(operationHeader, how.operation)
	options := []jetstream.PublishOpt{jetstream.WithExpectLastSequencePerSubject(revision)}
	if how.history {
		msg.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
		if o.markerTTL > 0 {
			options = append(options, jetstream.WithMsgTTL(o.markerTTL))
		}
	}
	ack, err := o.js.PublishMsg(ctx, msg, options...)
	if err != nil {
		var refused *jetstream.APIError
		if errors.As(err, &refused) &&
			(refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant) {
			err = fmt.Errorf("%w: %w", err, jetstream.ErrKeyRevisionMismatch)
		}
		return 0, err
	}
	return ack.Sequence, nil
}
