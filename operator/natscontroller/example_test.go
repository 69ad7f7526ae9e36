package natscontroller_test

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/logging"
	"github.com/operatorkit/operatorkit/operator/natscontroller"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
)

// greeter is a controller in the manner of the original: it embeds the runtime and has a SyncHandler of its own.
type greeter struct {
	*natscontroller.ControllerRuntime[*Gateway]
	stop func()
}

func (g *greeter) SyncHandler(key string) error {
	fmt.Println("syncing", key)
	g.stop()
	return nil
}

func (g *greeter) Clean() { fmt.Println("cleaned up") }

// A controller runs until its context ends. The NATS server is one in the program itself here.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	fail := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	dir, err := os.MkdirTemp("", "")
	fail(err)
	defer func() { _ = os.RemoveAll(dir) }()
	server, err := natsserver.Run(ctx, natsserver.Config{Dir: dir})
	fail(err)
	defer server.Stop()
	conn, err := nats.Connect(server.URL())
	fail(err)
	defer conn.Close()
	js, err := jetstream.New(conn)
	fail(err)
	_, err = js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "gateways"})
	fail(err)
	logger, err := logging.New(logging.Config{Writer: io.Discard})
	fail(err)

	gateways, err := natsinformer.NewBucket(natsinformer.BucketConfig[*Gateway]{JetStream: js, Name: "gateways"})
	fail(err)
	source, err := natsinformer.NewSource(natsinformer.SourceConfig[*Gateway]{Bucket: gateways, Logger: logger})
	fail(err)
	runtime, err := natscontroller.NewControllerRuntime(natscontroller.Config[*Gateway]{
		Name: "gateway-controller", Kind: "Gateway", Logger: logger, Primary: source,
	})
	fail(err)
	controller := &greeter{ControllerRuntime: runtime, stop: stop}
	controller.SetCustomController(controller)

	fail(gateways.Create(ctx, &Gateway{Meta: natsinformer.Meta{Name: "eu/shop"}}))
	fmt.Println("stopped:", controller.Start(ctx))
	// Output:
	// syncing eu/shop
	// cleaned up
	// stopped: <nil>
}
