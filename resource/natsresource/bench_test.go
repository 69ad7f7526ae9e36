package natsresource_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/informer/natsinformer"
	"github.com/operatorkit/operatorkit/operator/operatortest/natsserver"
	"github.com/operatorkit/operatorkit/resource/natsresource"
)

// BenchmarkAPatchOfManyEntries computes the patches of a primary with 1,000 entries and of one with 16,000, all of which are as they
// should be. The metric x/entry says how many times as long an entry takes among the many.
func BenchmarkAPatchOfManyEntries(b *testing.B) {
	few, many := manyEntries(b, 1000), manyEntries(b, 16000)
	var short, long time.Duration
	for b.Loop() {
		short += few()
		long += many()
	}
	b.ReportMetric(float64(long)/float64(short)/16, "x/entry")
	b.ReportMetric(long.Seconds()/float64(b.N), "s/16000")
}

// manyEntries returns a function that computes the patch of a primary with n entries, and says how long that takes.
func manyEntries(b *testing.B, n int) func() time.Duration {
	b.Helper()
	_, js := natsserver.Start(b).Connect(b)
	bucket, err := natsinformer.NewBucket(natsinformer.BucketConfig[*route]{JetStream: js, Name: "routes"})
	if err != nil {
		b.Fatal(err)
	}
	logger, err := micrologger.New(micrologger.Config{IOWriter: &bytes.Buffer{}})
	if err != nil {
		b.Fatal(err)
	}
	hub, feed := informer.NewHub(informer.HubConfig{
		Name: "bucket routes", Indexers: natsresource.OwnerIndexers(), Copy: func(obj any) (any, error) { return obj, nil },
	})
	var desired []*route
	var items []informer.Item
	for i := range n {
		r := newRoute(fmt.Sprintf("r%05d", i), "host")
		desired = append(desired, r)
		there := *r
		there.OwnerKind, there.OwnerKey = "Gateway", "home"
		there.Annotations = map[string]string{
			natsresource.MadeByAnnotation:  identity.Form + " " + identity.From(b.Context()).Mark("routes").String(),
			natsresource.AppliedAnnotation: r.Name + "#",
		}
		items = append(items, informer.Item{Key: informer.Key{Name: r.Name}, Object: &there})
	}
	feed.Replace("", items)
	ops, err := natsresource.New(config{
		Name: "routes", Bucket: bucket, Source: hub, Logger: logger, Kind: "Gateway",
		Desired: func(context.Context, *gateway) ([]*route, error) { return desired, nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	return func() time.Duration {
		start := time.Now()
		p, err := framework.PlanUpdate(b.Context(), home(), []framework.Resource{ops})
		if err != nil || p.Counts().Any() || p.Resources[0].Error != "" {
			b.Fatalf("got %v, %+v; want nothing to do", err, p)
		}
		return time.Since(start)
	}
}
