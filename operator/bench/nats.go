package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
	"github.com/operatorkit/operatorkit/resource/natsresource"
)

const (
	primariesBucket = "primaries"
	childrenBucket  = "children"
	// entryKind is the kind of the primaries in the buckets.
	entryKind = "Primary"
)

// entry is a primary in a bucket, or the child of one.
type entry struct {
	natsinformer.Meta `json:"metadata"`
	Page              string `json:"page"`
}

// Copy implements informer.Copier, as types do of which there are many.
func (e *entry) Copy() any {
	c := *e
	c.Meta = e.DeepCopy()
	return &c
}

// newEntry returns a primary as it is before it is created.
func newEntry(i int, page string) *entry {
	return &entry{Meta: natsinformer.Meta{Name: "entry-" + strconv.Itoa(i)}, Page: page}
}

// childOf is what a primary's child should be.
func childOf(primary *entry) *entry {
	return &entry{Meta: natsinformer.Meta{Name: primary.Name}, Page: primary.Page}
}

// natsServer is a NATS server in this process, with its store on disk, and a connection that all contenders share, as far
// away as the row wants.
type natsServer struct {
	server *natsserver.Server
	conn   *nats.Conn
	js     jetstream.JetStream
	dir    string
}

func newNATSServer(ctx context.Context, roundTrip time.Duration) (_ *natsServer, err error) {
	s := &natsServer{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "bench-nats-"); err != nil {
		return nil, err
	}
	if s.server, err = natsserver.Run(ctx, natsserver.Config{Dir: s.dir}); err != nil {
		return nil, err
	}
	if s.conn, err = nats.Connect(s.server.URL(), nats.SetCustomDialer(distantDialer{roundTrip})); err != nil {
		return nil, fmt.Errorf("connect to %s: %w", s.server.URL(), err)
	}
	s.js, err = jetstream.New(s.conn)
	return s, err
}

// close ends the connection and the server, and removes what they stored.
func (s *natsServer) close() error {
	if s.conn != nil {
		s.conn.Close()
	}
	if s.server != nil {
		s.server.Stop()
	}
	return os.RemoveAll(s.dir)
}

// fresh makes an empty bucket in place of the one of that name, if there is one.
func (s *natsServer) fresh(ctx context.Context, bucket string) (jetstream.KeyValue, error) {
	if err := s.js.DeleteKeyValue(ctx, bucket); err != nil && !errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, fmt.Errorf("delete bucket %s: %w", bucket, err)
	}
	return s.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: bucket})
}

// fill makes a bucket of that many primaries, and returns them.
func (s *natsServer) fill(ctx context.Context, n int) ([]*entry, error) {
	kv, err := s.fresh(ctx, primariesBucket)
	if err != nil {
		return nil, err
	}
	entries := make([]*entry, n)
	err = inParallel(ctx, 10, n, func(ctx context.Context, i int) error {
		entries[i] = newEntry(i, "Page "+strconv.Itoa(i))
		data, err := json.Marshal(entries[i])
		if err != nil {
			return err
		}
		_, err = kv.Create(ctx, entries[i].Name, data)
		return err
	})
	return entries, err
}

func (s *natsServer) bucket(name string) (*natsinformer.Bucket[*entry], error) {
	return natsinformer.NewBucket(natsinformer.BucketConfig[*entry]{JetStream: s.js, Name: name})
}

func (s *natsServer) source(bucket *natsinformer.Bucket[*entry]) (*natsinformer.Source[*entry], error) {
	logger, err := operatorKitLogger()
	if err != nil {
		return nil, err
	}
	return natsinformer.NewSource(natsinformer.SourceConfig[*entry]{
		Bucket: bucket, Logger: logger, Indexers: natsresource.OwnerIndexers(),
	})
}

// keeperName is the name of the framework of a childKeeper.
const keeperName = "children"

// childKeeper is an operator that keeps a child in one bucket for each primary in another.
type childKeeper struct {
	framework *framework.Framework
	children  *natsinformer.Source[*entry]
	counter   *reconciliationCounter
}

func (s *natsServer) childKeeper(workers int) (*childKeeper, error) {
	buckets, sources := map[string]*natsinformer.Bucket[*entry]{}, map[string]*natsinformer.Source[*entry]{}
	for _, name := range []string{primariesBucket, childrenBucket} {
		var err error
		if buckets[name], err = s.bucket(name); err != nil {
			return nil, err
		}
		if sources[name], err = s.source(buckets[name]); err != nil {
			return nil, err
		}
	}
	logger, err := operatorKitLogger()
	if err != nil {
		return nil, err
	}
	c := &childKeeper{children: sources[childrenBucket], counter: &reconciliationCounter{}}
	child, err := natsresource.New(natsresource.Config[*entry, *entry]{
		Name: "child", Kind: entryKind, Bucket: buckets[childrenBucket], Source: c.children, Logger: logger,
		Desired: func(_ context.Context, primary *entry) ([]*entry, error) { return []*entry{childOf(primary)}, nil },
	})
	if err != nil {
		return nil, err
	}
	c.framework, err = newFramework(framework.Config{
		Name:    keeperName,
		Source:  sources[primariesBucket],
		Workers: workers,
		Watches: []framework.Watch{{Source: c.children, Map: natsresource.OwnerMap(entryKind)}},
	}, c.counter, child)
	return c, err
}
