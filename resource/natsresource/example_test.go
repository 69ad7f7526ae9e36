package natsresource_test

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/giantswarm/micrologger"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/resource/natsresource"
)

// A resource that keeps a route for each host of a gateway, and the watch that comes with it. Both go into a framework
// whose source are the gateways.
func ExampleNew() {
	newRoutes := func(js jetstream.JetStream, logger micrologger.Logger) (framework.Resource, framework.Watch, error) {
		bucket, err := natsinformer.NewBucket(natsinformer.BucketConfig[*route]{JetStream: js, Name: "routes"})
		if err != nil {
			return nil, framework.Watch{}, err
		}
		source, err := natsinformer.NewSource(natsinformer.SourceConfig[*route]{
			Bucket: bucket, Logger: logger, Indexers: natsresource.OwnerIndexers(),
		})
		if err != nil {
			return nil, framework.Watch{}, err
		}
		routes, err := natsresource.New(natsresource.Config[*gateway, *route]{
			Name:   "routes",
			Kind:   "Gateway",
			Bucket: bucket,
			Source: source,
			Logger: logger,
			Desired: func(_ context.Context, g *gateway) ([]*route, error) {
				var want []*route
				for _, name := range slices.Sorted(maps.Keys(g.Routes)) {
					want = append(want, &route{Meta: natsinformer.Meta{Name: g.Name + "." + name}, Host: g.Routes[name]})
				}
				return want, nil
			},
			// Whoever serves the routes writes their status.
			Keep: func(current, desired *route) { desired.Status = current.Status },
		})
		return routes, framework.Watch{Source: source, Map: natsresource.OwnerMap("Gateway")}, err
	}

	_, _, err := newRoutes(nil, nil)
	fmt.Println(err)
	// Output: invalid config: natsinformer.BucketConfig: JetStream must not be nil
}

// The primary of an entry is read from its metadata.
func ExampleOwnerMap() {
	child := &route{Meta: natsinformer.Meta{OwnerKind: "Gateway", OwnerKey: "shop/home"}}
	fmt.Println(natsresource.OwnerMap("Gateway")(context.Background(), child))
	fmt.Println(natsresource.OwnerMap("Portal")(context.Background(), child))
	// Output:
	// [/shop/home]
	// []
}

// An entry of somebody else is never taken over.
func ExampleRefusedError() {
	err := &natsresource.RefusedError{
		Key:    natsresource.Key{Bucket: "routes", Name: "home"},
		Reason: "it belongs to Gateway shop",
	}
	fmt.Println(err)
	// Output: refusing to take over entry home of bucket routes: it belongs to Gateway shop: delete it or choose another name
}
