package natslease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
)

// Config describes a [Lock].
type Config struct {
	// JetStream is the connection. Required.
	JetStream jetstream.JetStream
	// Bucket is the name of the bucket that holds the lease. It must exist by the time of the election, and its entries
	// must not expire sooner than the lease. Required.
	Bucket string
	// Key is the key of the lease, such as the name of the operator. Replicas with the same one elect one of them. It is used as
	// identity.LeaseName makes it. Required.
	Key string
	// Identity tells replicas apart. Default: the host's name and a random part.
	Identity string
}

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
	bucket   *natsinformer.Bucket[*Record]
	key      string
	// last is the record that was read or written last, and nil before.
	last *Record
}

// New returns a lock. It sends no request. The error names each faulty field and wraps informer.ErrInvalidConfig.
func New(config Config) (*Lock, error) {
	var faults []string
	if config.JetStream == nil {
		faults = append(faults, "JetStream must not be nil")
	}
	if config.Bucket == "" {
		faults = append(faults, "Bucket must not be empty")
	}
	if config.Key == "" {
		faults = append(faults, "Key must not be empty")
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("%w: natslease.Config: %s", informer.ErrInvalidConfig, strings.Join(faults, "; "))
	}
	bucket, err := natsinformer.NewBucket(natsinformer.BucketConfig[*Record]{JetStream: config.JetStream, Name: config.Bucket})
	if err != nil {
		return nil, err
	}
	if config.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown-host"
		}
		config.Identity = host + "_" + string(uuid.NewUUID())
	}
	return &Lock{identity: config.Identity, bucket: bucket, key: identity.LeaseName(config.Key)}, nil
}

// Identity implements resourcelock.Interface.
func (l *Lock) Identity() string { return l.identity }

// Describe implements resourcelock.Interface: it names the bucket and the key.
func (l *Lock) Describe() string { return l.bucket.Name() + "/" + l.key }

// RecordEvent implements resourcelock.Interface. It does nothing: the operator logs what happens to its lease.
func (l *Lock) RecordEvent(string) {}

// Get implements resourcelock.Interface. The raw record changes with every write, because it ends with the revision.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, err := l.bucket.Get(ctx, l.key)
	if err != nil {
		return nil, nil, err
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
	record := &Record{Meta: natsinformer.Meta{Name: l.key}, Lease: lease}
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
	if err := l.bucket.Update(ctx, record); err != nil {
		return err
	}
	l.last = record
	return nil
}
