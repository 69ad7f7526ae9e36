package framework

import (
	"context"
	"io"
	"testing"

	"github.com/giantswarm/micrologger"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework/internal/queue"
	"github.com/operatorkit/operatorkit/informer"
)

// BenchmarkSpans is a reconciliation of a CRUD resource that changes nothing, from the queue to the end.
func BenchmarkSpans(b *testing.B) {
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		b.Fatal(err)
	}
	resource, err := NewCRUDResource(CRUDResourceConfig{Logger: logger, Ops: settledOps{"settled"}})
	if err != nil {
		b.Fatal(err)
	}
	key := informer.Key{Namespace: "default", Name: "a"}
	for _, bench := range []struct {
		name    string
		sampler sdktrace.Sampler
	}{{name: "none"}, {"not sampled", sdktrace.NeverSample()}, {"sampled", sdktrace.AlwaysSample()}} {
		b.Run(bench.name, func(b *testing.B) {
			source := informer.NewPush("objects")
			if err := source.Update(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}); err != nil {
				b.Fatal(err)
			}
			config := Config{Source: source, Resources: []Resource{resource}, Logger: logger}
			if bench.sampler != nil {
				config.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSampler(bench.sampler), sdktrace.WithSpanProcessor(dropped{}))
			}
			f, err := New(config)
			if err != nil {
				b.Fatal(err)
			}
			ctx, activity := f.activities.add(b.Context(), false)
			b.ReportAllocs()
			for b.Loop() {
				f.queue.Add(key, queue.Fresh, wakeup{Trigger: Trigger{Cause: CauseEnqueue}})
				e, _ := f.queue.Next()
				activity.begin(e.Key, 0)
				if f.tracer != nil {
					activity.because(e, 0)
				}
				f.reconcileEntry(ctx, e)
				activity.end()
				f.queue.Done(e)
			}
		})
	}
}

// dropped is where spans go.
type dropped struct{}

func (dropped) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (dropped) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (dropped) Shutdown(context.Context) error                  { return nil }
func (dropped) ForceFlush(context.Context) error                { return nil }
