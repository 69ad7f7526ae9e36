package natsinformer

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/operatorkit/operatorkit/internal/cut"
	"github.com/operatorkit/operatorkit/internal/faults"
)

// BucketConfig describes a [Bucket].
type BucketConfig[T Entity] struct {
	// JetStream is the connection. Required.
	JetStream jetstream.JetStream
	// Name is the name of the bucket. Required.
	Name string
	// Codec encodes and decodes the values. Default: JSON.
	Codec Codec[T]
	// Fence is called before every write; its error refuses the write. A controller with several
	// replicas sets it to the Check of its operator.Fence, so that a leader that has lost its lease
	// without noticing can't write. Default: none.
	Fence func() error
	// CatchUpTimeout is how long a read is repeated while the answers of the servers are older than
	// the state of the key that a Source of the bucket has shown. After that the read returns an
	// error that wraps ErrBehind. Default: DefaultCatchUpTimeout (10 seconds).
	CatchUpTimeout time.Duration
}

// DefaultCatchUpTimeout is the default of BucketConfig.CatchUpTimeout. It is longer than a stream
// takes to elect a leader.
const DefaultCatchUpTimeout = 10 * time.Second

// Bucket is a typed view of a JetStream key-value bucket. It stores nothing: every call asks the
// server, and a bucket that is created or recreated later is found then. All methods are safe for
// concurrent use, but must not be called from a handler of one of its sources.
//
// Errors are those of Kubernetes clients: apierrors.IsNotFound for a key without a value,
// IsAlreadyExists for a key with one, and IsConflict if the revision of the entry differs from that
// of the given entity. The server's own errors are in the chain. Errors for data that is too large
// ([ErrTooLarge]) or has no room ([ErrFull]) are permanent, as by framework.Permanent. If the
// server has denied a request, nats.ErrPermissionViolation is in the chain.
//
// Reads are answered by the leader of the bucket's stream. They are never older than the state of
// the key that a running Source of the bucket has shown, or that was written through the Bucket:
// see ErrBehind. A write is in the stores of these sources when it returns.
type Bucket[T Entity] struct {
	config BucketConfig[T]
	copier *copier
	// opened is the bucket once it has been found. It contains only subjects, so it stays valid if
	// the bucket is recreated.
	opened atomic.Pointer[opened]
	// followers are the running sources of the bucket, each a follower.
	followers sync.Map
	// full is the last write that was refused because the bucket was full. It is nil once there is
	// room.
	full atomic.Pointer[refusal]
}

// NewBucket returns the view. It sends no request. The error names each invalid field and wraps
// informer.ErrInvalidConfig.
func NewBucket[T Entity](config BucketConfig[T]) (*Bucket[T], error) {
	var wrong faults.List
	wrong.If(config.JetStream == nil, "JetStream must not be nil")
	wrong.If(config.Name == "", "Name must not be empty")
	wrong.If(!embedsMeta[T](), "T must be a pointer to a struct that embeds natsinformer.Meta by value, is %s", reflect.TypeFor[T]())
	wrong.If(config.CatchUpTimeout < 0, "CatchUpTimeout must not be negative, is %s", config.CatchUpTimeout)
	if err := wrong.Of("natsinformer.BucketConfig"); err != nil {
		return nil, err
	}
	if config.CatchUpTimeout == 0 {
		config.CatchUpTimeout = DefaultCatchUpTimeout
	}
	if config.Codec == nil {
		config.Codec = JSON[T]{}
	}
	b := &Bucket[T]{config: config}
	b.copier = &copier{copy: b.copyOuter}
	return b, nil
}

// Name returns the name of the bucket.
func (b *Bucket[T]) Name() string { return b.config.Name }

// Fenced reports whether a Fence is called before every write.
func (b *Bucket[T]) Fenced() bool { return b.config.Fence != nil }

// Get returns the entity of a key.
func (b *Bucket[T]) Get(ctx context.Context, key string) (T, error) {
	var none T
	msg, err := b.read(ctx, key)
	if err == nil && !msg.value {
		err = jetstream.ErrKeyNotFound
	}
	if err != nil {
		return none, b.failed("get", key, err)
	}
	return b.decode(key, msg.revision, msg.data)
}

// Create stores a new entity under its name. It sets the entity's UID, Generation and
// CreationTimestamp if they are not set, and its revision.
func (b *Bucket[T]) Create(ctx context.Context, entity T) error {
	entity.EntityMeta().stamp(uuid.NewUUID(), time.Now())
	return b.write(ctx, "create", entity, 0)
}

// Update replaces the stored entity: the entry must still have the revision that was read. It sets
// the new revision. The last known state of an entity that is gone can't be stored.
func (b *Bucket[T]) Update(ctx context.Context, entity T) error {
	if entity.EntityMeta().gone {
		return b.failed("update", entity.GetName(), jetstream.ErrKeyNotFound)
	}
	if entity.EntityMeta().revision == 0 {
		return fmt.Errorf("update %s in bucket %s: the entity has no revision: get it from the bucket first, or create it",
			entity.GetName(), b.config.Name)
	}
	entity.EntityMeta().stamp(uuid.NewUUID(), time.Now())
	return b.write(ctx, "update", entity, entity.EntityMeta().revision)
}

// RequestDeletion requests the deletion of an entity by setting its DeletionTimestamp. The
// reconciler of the bucket's entities then cleans up and removes the entry. It is not an error if
// the entity is gone or its deletion was requested before.
func (b *Bucket[T]) RequestDeletion(ctx context.Context, key string) error {
	for {
		entity, err := b.Get(ctx, key)
		if apierrors.IsNotFound(err) || err == nil && entity.GetDeletionTimestamp() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		now := metav1.NewTime(time.Now().UTC().Truncate(time.Second))
		entity.EntityMeta().DeletionTimestamp = &now
		err = b.Update(ctx, entity)
		if !apierrors.IsConflict(err) {
			return err
		}
	}
}

// Delete removes an entity at once, whatever its finalizers, and keeps the earlier values of its
// key in the history. The entry must still have the entity's revision. An entry that is gone is not
// an error.
func (b *Bucket[T]) Delete(ctx context.Context, entity T) error {
	return b.remove(ctx, byDelete, entity)
}

// Purge removes an entity at once, whatever its finalizers, and the history of its key. The entry
// must still have the entity's revision. An entry that is gone is not an error. A marker for
// watchers remains, forever or, if the bucket has a LimitMarkerTTL, for that long.
func (b *Bucket[T]) Purge(ctx context.Context, entity T) error {
	return b.remove(ctx, byPurge, entity)
}

// write encodes an entity, stores it in place of the revision base, or as a new entry if base is 0,
// and sets its revision.
func (b *Bucket[T]) write(ctx context.Context, verb string, entity T, base uint64) error {
	key := entity.GetName()
	bucket, err := b.open(ctx)
	if err != nil {
		return err
	}
	data, err := b.config.Codec.Encode(entity)
	if err != nil {
		return fmt.Errorf("%s %s in bucket %s: encode: %w", verb, key, b.config.Name, err)
	}
	begun := b.begin(ctx, key)
	defer begun.unknown()
	revision, err := b.put(ctx, bucket, key, data, base)
	meta := entity.EntityMeta()
	if isFull(err) && meta.DeletionTimestamp != nil && base > 0 {
		// A write that leads to a removal makes its own room.
		if err = b.drop(ctx, bucket, key, base); err == nil {
			revision, err = b.put(ctx, bucket, key, data, base)
		}
	}
	if err != nil {
		return b.failed(verb, key, b.limited(ctx, bucket, key, len(data), err))
	}
	b.full.Store(nil)
	meta.revision, meta.gone, meta.copier = revision, false, b.copier
	if meta.original != nil {
		meta.original = data
	}
	for _, w := range begun {
		w.stored(ctx, base, revision, data)
	}
	return nil
}

// put stores a value in place of the revision base, or as a new one if base is 0. It returns the
// value's revision.
func (b *Bucket[T]) put(ctx context.Context, bucket *opened, key string, data []byte, base uint64) (uint64, error) {
	if err := bucket.fits(key); err != nil {
		return 0, err
	}
	if err := b.allowed(); err != nil {
		return 0, err
	}
	revision, err := bucket.kv.Update(ctx, key, data, base)
	if base > 0 || !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return revision, err
	}
	msg, err := bucket.newest(ctx, bucket.subjects+key)
	switch {
	case err != nil:
		return 0, err
	case msg.value:
		return 0, jetstream.ErrKeyExists
	}
	// It is a marker, perhaps one that the next leader has written.
	if err := b.allowed(); err != nil {
		return 0, err
	}
	revision, err = bucket.kv.Update(ctx, key, data, msg.revision)
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return 0, jetstream.ErrKeyExists // Another client was faster.
	}
	return revision, err
}

// allowed calls the fence. It must be called right before each request that writes: earlier steps
// may take longer than a lease.
func (b *Bucket[T]) allowed() error {
	if b.config.Fence == nil {
		return nil
	}
	return b.config.Fence()
}

// remove removes an entity. A key without a value is not an error.
func (b *Bucket[T]) remove(ctx context.Context, how removal, entity T) error {
	key, revision := entity.GetName(), entity.EntityMeta().revision
	if revision == 0 {
		return fmt.Errorf("%s %s in bucket %s: the entity has no revision: get it from the bucket first", how.verb, key, b.config.Name)
	}
	err := b.removeRevision(ctx, how, key, revision)
	if apierrors.IsConflict(err) {
		if _, now := b.Get(ctx, key); apierrors.IsNotFound(now) {
			return nil
		}
	}
	return err
}

// removeRevision replaces the newest message of a key, which must have that revision, by a marker.
func (b *Bucket[T]) removeRevision(ctx context.Context, how removal, key string, revision uint64) error {
	bucket, err := b.open(ctx)
	if err != nil {
		return err
	}
	begun := b.begin(ctx, key)
	defer begun.unknown()
	if err := b.allowed(); err != nil {
		return b.failed(how.verb, key, err)
	}
	marker, err := bucket.mark(ctx, how, key, revision)
	if isFull(err) {
		marker, err = b.markFull(ctx, bucket, how, key, revision)
	}
	if err != nil {
		if !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			// It may be another bucket by now, in which markers have no lifetime.
			b.opened.Store(nil)
		}
		return b.failed(how.verb, key, b.limited(ctx, bucket, key, 0, err))
	}
	for _, w := range begun {
		w.ended(ctx, revision, marker, how)
	}
	return nil
}

// failed converts an error of the server to the matching Kubernetes error.
func (b *Bucket[T]) failed(verb, key string, err error) error {
	entries := schema.GroupResource{Resource: "entries of bucket " + b.config.Name}
	err, key = b.denied(err), cut.Text(key, maxKeyShown)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		err = fmt.Errorf("%w (%w)", apierrors.NewNotFound(entries, key), err)
	case errors.Is(err, jetstream.ErrKeyRevisionMismatch):
		err = fmt.Errorf("%w (%w)", apierrors.NewConflict(entries, key, errors.New("it has another revision by now")), err)
	case errors.Is(err, jetstream.ErrKeyExists):
		err = fmt.Errorf("%w (%w)", apierrors.NewAlreadyExists(entries, key), err)
	}
	return fmt.Errorf("%s %s in bucket %s: %w", verb, key, b.config.Name, err)
}

// Stored returns an entity as it would be read back after a write: a copy that went through the
// codec, with the same revision. It sends no request.
func (b *Bucket[T]) Stored(entity T) (T, error) {
	data, err := b.config.Codec.Encode(entity)
	if err != nil {
		var none T
		return none, fmt.Errorf("encode %s: %w", entity.GetName(), err)
	}
	return b.decode(entity.GetName(), entity.EntityMeta().revision, data)
}
