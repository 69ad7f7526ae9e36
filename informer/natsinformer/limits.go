package natsinformer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrTooLarge is in the chain of the error for a key or a value that is too large for the server.
// The same request never succeeds.
var ErrTooLarge = errors.New("too large")

// ErrFull is in the chain of the error for a write that has no room in the bucket. Purging an entry
// needs no room.
var ErrFull = errors.New("the bucket is full: raise its MaxBytes, or the limits of the account, or purge entries, which needs no room")

// FullPause is the pause after which a controller reconciles an object again if its entries had no
// room in a bucket.
const FullPause = time.Minute

const (
	// maxControlLine is the default max_control_line of a server, which does not report its own. It
	// closes the connection of a client that sends a longer line.
	maxControlLine = 4096
	// controlLineRest is the room for the rest of such a line, besides the subject and the inbox
	// for the answer: the end of the inbox's name, two sizes, and spaces.
	controlLineRest = 32
	// maxKeyShown is how many characters of a key an error shows. The text after the key has the
	// cause, and logs and events cut long texts.
	maxKeyShown = 256
	// messageRest is roughly the size of a message in a stream besides its subject and its data.
	messageRest = 256

	codeAccountExceeded   jetstream.ErrorCode = 10002
	codeMemoryExceeded    jetstream.ErrorCode = 10028
	codeStorageExceeded   jetstream.ErrorCode = 10047
	codeMessageTooLarge   jetstream.ErrorCode = 10054
	codeStreamStoreFailed jetstream.ErrorCode = 10077
)

// refusal is a write that was refused for lack of room.
type refusal struct {
	err  error
	size uint64
}

// fits returns an error if the key is too long to send a message.
func (o *opened) fits(key string) error {
	if limit := maxControlLine - controlLineRest - len(o.js.Conn().NewInbox()) - len(o.puts); len(key) > limit {
		return backoff.Permanent(fmt.Errorf("%w: the key has %d characters, and the server takes at most %d", ErrTooLarge, len(key), limit))
	}
	return nil
}

// isFull reports whether a write was refused for lack of room.
func isFull(err error) bool {
	var refused *jetstream.APIError
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.ErrorCode {
	case codeAccountExceeded, codeMemoryExceeded, codeStorageExceeded:
		return true
	case codeStreamStoreFailed:
		return strings.Contains(refused.Description, "maximum bytes exceeded") || strings.Contains(refused.Description, "maximum messages exceeded")
	}
	return false
}

// limited marks the error of a write as permanent, and adds the reason, if it exceeds a limit. size
// is the size of the value.
func (b *Bucket[T]) limited(ctx context.Context, bucket *opened, key string, size int, err error) error {
	var refused *jetstream.APIError
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return tooLarge(size, bucket.js.Conn().MaxPayload(), "max_payload of the server", err)
	case errors.As(err, &refused) && refused.ErrorCode == codeMessageTooLarge:
		if now, _, err := b.inspect(ctx); err == nil {
			bucket = now
		}
		return tooLarge(size, int64(bucket.maxValue), "MaxValueSize of the bucket", err)
	case isFull(err):
		b.full.Store(&refusal{err: ErrFull, size: uint64(len(bucket.puts) + len(key) + size + messageRest)}) //nolint:gosec // lengths
		return backoff.Permanent(fmt.Errorf("%w: %w", ErrFull, err))
	}
	return err
}

func tooLarge(size int, limit int64, what string, err error) error {
	return backoff.Permanent(fmt.Errorf("%w: the value has %d bytes, and the %s is %d: %w", ErrTooLarge, size, what, limit, err))
}

// hasRoom notes that the last refused write would now fit into the bucket.
func (b *Bucket[T]) hasRoom(state bucketState) {
	if r := b.full.Load(); r != nil && (state.maxBytes <= 0 || state.bytes+r.size <= uint64(state.maxBytes)) { //nolint:gosec // positive
		b.full.CompareAndSwap(r, nil)
	}
}

// drop removes the values of a key that are older than a revision. It needs no room.
func (b *Bucket[T]) drop(ctx context.Context, bucket *opened, key string, revision uint64) error {
	if err := b.allowed(); err != nil {
		return err
	}
	err := bucket.leader.PurgeStream(bucket.stream, &nats.StreamPurgeRequest{Subject: bucket.subjects + key, Sequence: revision}, nats.Context(ctx))
	if err != nil {
		return fmt.Errorf("make room in the full bucket: %w", err)
	}
	return nil
}

// markFull is mark for a bucket without room for the marker: it removes values first. If the bucket
// has a history, a deletion keeps the last value, because a source that starts later announces it.
// Without room even then, a purged entry is gone without a marker, and the result is 0.
func (b *Bucket[T]) markFull(ctx context.Context, bucket *opened, how removal, key string, revision uint64) (marker uint64, err error) {
	end, expected := revision+1, uint64(0)
	if !how.history && bucket.history > 1 {
		end, expected = revision, revision
	}
	if err := b.drop(ctx, bucket, key, end); err != nil {
		return 0, err
	}
	if err := b.allowed(); err != nil {
		return 0, err
	}
	marker, err = bucket.mark(ctx, how, key, expected)
	if expected == 0 && isFull(err) {
		return 0, nil
	}
	return marker, err
}

// denied adds the subject that the server has denied to the error of a request without an answer:
// the server reports a denial to the connection, and does not answer the request.
func (b *Bucket[T]) denied(err error) error {
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrTimeout) {
		return err
	}
	last := b.config.JetStream.Conn().LastError()
	if !errors.Is(last, nats.ErrPermissionViolation) {
		return err
	}
	inboxes := nats.InboxPrefix
	if prefix := b.config.JetStream.Conn().Opts.InboxPrefix; prefix != "" {
		inboxes = prefix
	}
	for _, subject := range []string{streamPrefix + b.config.Name, fmt.Sprintf(bucketSubjects, b.config.Name), inboxes} {
		if strings.Contains(last.Error(), subject) {
			return fmt.Errorf("%w: let the account of the connection do that (no answer: %v)", last, err) //nolint:errorlint // it is no matter of time
		}
	}
	return err
}
