package natslease

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/internal/faults"
)

// Config describes a [Lock].
type Config struct {
	// JetStream is the connection. Required. A request waits for its answer no longer than its default timeout, 5 s, or half of the
	// RenewDeadline if that is less: an answer is lost when a server ends, or when nobody leads the stream at the moment.
	JetStream jetstream.JetStream
	// Bucket is the name of the bucket that holds the lease. It must exist by the time of the election, and its entries
	// must not expire sooner than the lease. Required.
	Bucket string
	// Key is the key of the lease, such as the name of the operator. Replicas with the same one elect one of them. It is used as
	// identity.LeaseName makes it. Required.
	Key string
	// Operator is the name of the operator whose lease it is, and FormerOperators are those that it had before. A lease of another
	// operator is refused: give one of them another Key. Default: identity.Program, the main package of the program.
	Operator        string
	FormerOperators []string
	// Identity tells replicas apart. Default: the host's name and a random part.
	Identity string
}

// defaultTimeout is for a JetStream whose options name none.
const defaultTimeout = 5 * time.Second

// OperatorAnnotation says which form it has, and names the operator whose lease it is.
const OperatorAnnotation = "operatorkit.io/operator"

// Record is the entry in which a lease is kept.
type Record struct {
	natsinformer.Meta `json:"metadata"`
	// Lease says who holds the lease. Its times are for people only.
	Lease resourcelock.LeaderElectionRecord `json:"lease"`
}

var _ resourcelock.Interface = (*Lock)(nil)

// Lock is a resourcelock.Interface that is an entry of a bucket. It belongs to one election and is not for concurrent use.
type Lock struct {
	identity string
	// timeout is how long a request may take.
	timeout time.Duration
	bucket  *natsinformer.Bucket[*Record]
	key     string
	// marks are the OperatorAnnotations of the operator's leases, of which the first is written.
	marks []string
	// last is the record that was read or written last, and nil before.
	last *Record
}

// New returns a lock. It sends no request. The error names each faulty field and wraps informer.ErrInvalidConfig.
func New(config Config) (*Lock, error) {
	var wrong faults.List
	wrong.If(config.JetStream == nil, "JetStream must not be nil")
	wrong.If(config.Bucket == "", "Bucket must not be empty")
	wrong.If(config.Key == "", "Key must not be empty")
	if err := wrong.Of("natslease.Config"); err != nil {
		return nil, err
	}
	bucket, err := natsinformer.NewBucket(natsinformer.BucketConfig[*Record]{JetStream: config.JetStream, Name: config.Bucket})
	if err != nil {
		return nil, err
	}
	var marks []string
	for _, operator := range append([]string{cmp.Or(config.Operator, identity.Program())}, config.FormerOperators...) {
		marks = append(marks, fmt.Sprintf("%s operator %q", identity.Form, operator))
	}
	if config.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown-host"
		}
		config.Identity = host + "_" + string(uuid.NewUUID())
	}
	timeout := cmp.Or(config.JetStream.Options().DefaultTimeout, defaultTimeout)
	return &Lock{identity: config.Identity, timeout: timeout, bucket: bucket, key: identity.LeaseName(config.Key), marks: marks}, nil
}

// Identity implements resourcelock.Interface.
func (l *Lock) Identity() string { return l.identity }

// Describe implements resourcelock.Interface: it names the bucket and the key.
func (l *Lock) Describe() string { return l.bucket.Name() + "/" + l.key }

// RecordEvent implements resourcelock.Interface. It does nothing: the operator logs what happens to its lease.
func (l *Lock) RecordEvent(string) {}

// Get implements resourcelock.Interface. The raw record changes with every write, because it ends with the revision. The lease of
// another operator is an error that names it.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	record, err := l.bucket.Get(ctx, l.key)
	if err != nil {
		return nil, nil, err
	}
	if whose := record.Annotations[OperatorAnnotation]; !slices.Contains(l.marks, whose) {
		return nil, nil, fmt.Errorf("lease %s is not one of this operator, %s, but says: %q: give one of them another key", l.Describe(), l.marks[0], whose)
	}
	raw, err := json.Marshal(record.Lease)
	if err != nil {
		return nil, nil, fmt.Errorf("encode lease %s: %w", l.Describe(), err)
	}
	l.last = record
	return &record.Lease, fmt.Appendf(raw, "@%d", record.Revision()), nil
}

// Create implements resourcelock.Interface.
func (l *Lock) Create(ctx context.Context, lease resourcelock.LeaderElectionRecord) error {
	record := &Record{Meta: natsinformer.Meta{Name: l.key, Annotations: map[string]string{OperatorAnnotation: l.marks[0]}}, Lease: lease}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	if err := l.bucket.Create(ctx, record); err != nil {
		return err
	}
	l.last = record
	return nil
}

// Update implements resourcelock.Interface. It is refused with an error for which apierrors.IsConflict holds when the entry
// has changed since it was read or written last.
func (l *Lock) Update(ctx context.Context, lease resourcelock.LeaderElectionRecord) error {
	if l.last == nil {
		return errors.New("update lease " + l.Describe() + ": get or create it first")
	}
	record := &Record{Meta: l.last.DeepCopy(), Lease: lease}
	record.Annotations[OperatorAnnotation] = l.marks[0]
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	if err := l.bucket.Update(ctx, record); err != nil {
		return err
	}
	l.last = record
	return nil
}
