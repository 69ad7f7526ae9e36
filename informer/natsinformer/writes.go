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

// revisionDigits is the number of digits of a revision in a version.
const revisionDigits = 20

// versionOf returns the version of an item in the store: a number, like a resource version, in
// which all revisions of a bucket are higher than those of earlier buckets of its name.
// bucketNumber counts the buckets from 1.
func versionOf(bucketNumber int, revision uint64) string {
	return fmt.Sprintf("%d%0*d", bucketNumber, revisionDigits, revision)
}

// parseVersion is the inverse of versionOf. Both results are 0 for an empty text.
func parseVersion(text string) (bucketNumber int, revision uint64) {
	if end := len(text) - revisionDigits; end > 0 {
		bucketNumber, _ = strconv.Atoi(text[:end])
		revision, _ = strconv.ParseUint(text[end:], 10, 64)
	}
	return bucketNumber, revision
}

// writes represents one write in progress, for each source of the bucket.
type writes[T Entity] []*write[T]

// begin notifies the sources that a key is about to be written.
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

// unknown ends the writes that have not ended, even if a fence or a codec has panicked: a write
// that never ends would hide every later change from its author.
func (begun writes[T]) unknown() {
	for _, w := range begun {
		w.Unknown()
	}
}

// write is a write in progress, for the source of a mirror.
type write[T Entity] struct {
	*informer.Write
	mirror *mirror[T]
	key    string
	// bucketNumber and newest are the source's values when the write started.
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

// isKnown reports whether the revision of the write belongs to the bucket that the source knows.
// Revisions only grow, so a revision that is not new may belong to another bucket.
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

// stored ends the write, which put data in place of the revision base, or created the entry if base
// is 0.
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

// await requests a listing of the bucket, and waits for it.
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
	// history is true if the earlier values are removed too. The marker may have a lifetime then.
	history bool
}

var (
	byDelete = removal{verb: "delete", operation: deleteOperation}
	byPurge  = removal{verb: "purge", operation: "PURGE", history: true}
)

// mark replaces the newest message of a key, which must have that revision, by a marker, and
// returns the marker's revision. It does the same as the client library, which does not return the
// revision.
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
