package natsinformer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/giantswarm/micrologger"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

func ExampleSource() {
	if err := follow(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// added main [example.com]
	// updated main [example.com example.org]
	// deleted main [example.com example.org]
}

// follow follows the bucket of an embedded server.
func follow(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	server, err := natsserver.Run(ctx, natsserver.Config{Dir: dir})
	if err != nil {
		return err
	}
	defer server.Stop()
	conn, err := nats.Connect(server.URL(), nats.MaxReconnects(-1))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	if _, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "gateways", History: 5}); err != nil {
		return err
	}
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		return err
	}

	bucket, err := natsinformer.NewBucket(natsinformer.BucketConfig[*Gateway]{JetStream: js, Name: "gateways"})
	if err != nil {
		return err
	}
	source, err := natsinformer.NewSource(natsinformer.SourceConfig[*Gateway]{Bucket: bucket, Logger: logger})
	if err != nil {
		return err
	}
	gone := make(chan struct{})
	source.Subscribe(func(e informer.Event) {
		fmt.Println(e.Type, e.Key.Name, e.Object.(*Gateway).Hosts)
		if e.Type == informer.Deleted {
			close(gone)
		}
	})
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error)
	go func() { done <- source.Run(ctx) }()
	if err := source.WaitForSync(ctx); err != nil {
		stop()
		return err
	}

	gateway := &Gateway{Meta: natsinformer.Meta{Name: "main"}, Hosts: []string{"example.com"}}
	err = bucket.Create(ctx, gateway)
	if err == nil {
		gateway.Hosts = append(gateway.Hosts, "example.org")
		err = bucket.Update(ctx, gateway)
	}
	if err == nil {
		err = bucket.Delete(ctx, gateway)
	}
	if err == nil {
		<-gone
	}
	stop()
	return errors.Join(err, <-done)
}
