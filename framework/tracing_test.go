package framework_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

// newTraces returns a provider whose spans are in the exporter once they have ended.
func newTraces(t *testing.T, options ...sdktrace.TracerProviderOption) (*sdktrace.TracerProvider, *tracetest.InMemoryExporter) {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(append(options, sdktrace.WithSyncer(exporter))...)
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	return provider, exporter
}

// outline writes spans as a tree, with what they say: each line is a span, below the one that it is a part of.
func outline(spans tracetest.SpanStubs) (lines []string) {
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	known := map[trace.SpanID]bool{}
	for _, s := range spans {
		known[s.SpanContext.SpanID()] = true
	}
	var write func(parent trace.SpanID, indent string)
	write = func(parent trace.SpanID, indent string) {
		for _, s := range spans {
			if s.Parent.SpanID() != parent && (parent.IsValid() || known[s.Parent.SpanID()]) {
				continue
			}
			line := indent + s.Name
			for _, a := range s.Attributes {
				if key := strings.TrimPrefix(string(a.Key), "operatorkit."); key != "framework" && key != "resource" && key != "step" {
					line += fmt.Sprintf(" %s=%s", key, a.Value.String())
				}
			}
			if s.Status.Description != "" {
				line += " " + s.Status.Code.String() + ": " + s.Status.Description
			}
			lines = append(lines, line)
			write(s.SpanContext.SpanID(), indent+"  ")
		}
	}
	write(trace.SpanID{}, "")
	return lines
}

// named returns the spans of a name, in the order in which they ended.
func named(spans tracetest.SpanStubs, name string) (found tracetest.SpanStubs) {
	for _, s := range spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

func TestSpansTellOfAReconciliationAndItsSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider, exporter := newTraces(t)
		source := informer.NewPush("objects")
		pages := &describedOps{name: "pages", applied: &journal{}, on: func(ctx context.Context, step framework.Step) error {
			time.Sleep(time.Second) // so that no two begin at once
			if step == framework.StepGetDesiredState {
				_, span := trace.SpanFromContext(ctx).TracerProvider().Tracer("author").Start(ctx, "an author's own")
				span.End()
			}
			return nil
		}}
		last := &resource{name: "last", created: func(ctx context.Context, _ any) error {
			secretscontext.Add(ctx, secretValue)
			return fmt.Errorf("can't log in with %s", secretValue)
		}}
		f := newFramework(t, framework.Config{Name: "test", Source: source, Workers: 1, TracerProvider: provider, BackOffFactory: everyMinute},
			&resource{name: "first", created: func(context.Context, any) error { time.Sleep(time.Second); return nil }}, planned(t, pages), last)
		defer running(t, f)()
		synctest.Wait()
		put(t, source, configMap("a"))
		synctest.Wait()
		put(t, source, configMap("a", "changed", "yes"))
		time.Sleep(30 * time.Second)
		synctest.Wait()

		failure := `Error: resource "last": ensure created: can't log in with (sensitive)`
		about := "update test kind=ConfigMap namespace=default name=a loop=%d triggers=%s trigger_count=%d queue_wait_seconds=%d result=error Error: update of ConfigMap default/a: " +
			strings.TrimPrefix(failure, "Error: ")
		steps := []string{
			"  first ensure_created",
			"  pages ensure_created",
			"    pages get_current_state",
			"    pages get_desired_state",
			"      an author's own",
			"    pages new_update_patch",
			"    pages apply_create_change",
			"    pages apply_update_change",
			"    pages apply_delete_change",
			"  last ensure_created Error: can't log in with (sensitive)",
		}
		want := append([]string{fmt.Sprintf(about, 1, `["change from objects (added)"]`, 1, 0)}, steps...)
		want = append(want, fmt.Sprintf(about, 2, `["change from objects (updated)"]`, 1, 4))
		want = append(want, steps...)
		if diff := cmp.Diff(want, outline(exporter.GetSpans())); diff != "" {
			t.Errorf("spans (-want +got):\n%s", diff)
		}
	})
}

func TestASpanIsLinkedToTheReconciliationThatHasCausedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider, exporter := newTraces(t)
		source := informer.NewPush("objects")
		look := 0
		f := newFramework(t, framework.Config{Name: "test", Source: source, Workers: 1, TracerProvider: provider, BackOffFactory: everyMinute},
			&resource{name: "r", created: func(ctx context.Context, _ any) error {
				look++
				switch look {
				case 1:
					return errBoom
				case 2:
					requeuecontext.SetAfter(ctx, time.Hour)
				}
				return nil
			}})
		defer running(t, f)()
		put(t, source, configMap("a")) // the first look, which fails, and the second one, which asks for the fourth
		time.Sleep(2 * time.Minute)
		put(t, source, configMap("a", "changed", "yes")) // the third one
		time.Sleep(2 * time.Hour)
		f.EnqueueAfter(keyOf("a"), time.Minute) // the fifth one
		time.Sleep(time.Hour)
		synctest.Wait()

		spans := named(exporter.GetSpans(), "update test")
		var got []string
		for i, s := range spans {
			for _, l := range s.Links {
				to := slices.IndexFunc(spans, func(s tracetest.SpanStub) bool { return s.SpanContext.SpanID() == l.SpanContext.SpanID() })
				got = append(got, fmt.Sprintf("look %d by look %d: %s", i+1, to+1, l.Attributes[0].Value.String()))
			}
		}
		if diff := cmp.Diff([]string{"look 2 by look 1: retry", "look 4 by look 2: requeue by r"}, got); diff != "" || len(spans) != 5 {
			t.Errorf("links of %d spans (-want +got):\n%s", len(spans), diff)
		}
	})
}

func TestTheTraceOfAReconciliationIsInItsLogAndItsRecordIfItIsSampled(t *testing.T) {
	for name, sampler := range map[string]sdktrace.Sampler{"sampled": sdktrace.AlwaysSample(), "not sampled": sdktrace.NeverSample(), "without traces": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				source, observed := informer.NewPush("objects"), &records{}
				config := framework.Config{Source: source, Observer: observed, Logger: logTo(t, &log), BackOffFactory: everyMinute}
				id := ""
				provider, exporter := newTraces(t, sdktrace.WithSampler(sampler))
				if sampler != nil {
					config.TracerProvider = provider
				}
				f := newFramework(t, config, &resource{name: "r", created: func(ctx context.Context, _ any) error {
					config.Logger.LogCtx(ctx, "level", "info", "message", "said")
					return errBoom
				}})
				stop := running(t, f)
				put(t, source, configMap("a"))
				synctest.Wait()
				stop()
				if spans := exporter.GetSpans(); name == "sampled" {
					id = spans[0].SpanContext.TraceID().String()
				} else if len(spans) > 0 {
					t.Errorf("there are spans: %v", outline(spans))
				}
				told := 0
				for line := range strings.Lines(log.String()) {
					of := strings.Contains(line, `"message":"said"`) || strings.Contains(line, `"message":"reconciliation failed"`)
					if of && id != "" && strings.Contains(line, `"trace_id":"`+id+`"`) || of && id == "" && !strings.Contains(line, "trace_id") {
						told++
					}
				}
				if told != 2 {
					t.Errorf("%d messages tell the trace %q, want 2:\n%s", told, id, &log)
				}
				if got := observed.last(t).TraceID; got != id {
					t.Errorf("the record has the trace %q, want %q", got, id)
				}
			})
		})
	}
}

// Whatever is done for the object, its span ends.
func TestASpanEndsHoweverItsReconciliationDoes(t *testing.T) {
	plain := func(do func(context.Context, any) error) func(*framework.Config) {
		return func(c *framework.Config) {
			c.Resources = []framework.Resource{&resource{name: "r", created: do}}
		}
	}
	for name, test := range map[string]struct {
		config func(*framework.Config)
		want   string
	}{
		"well":       {plain(nil), "result=success"},
		"by a panic": {plain(func(context.Context, any) error { panic("in EnsureCreated") }), "result=error Error: update of ConfigMap default/a: resource \"r\": ensure created: panic: "},
		"as a plan":  {func(c *framework.Config) { plain(nil)(c); c.PlanOnly = true }, "result=planned"},
		"by a panic of the source": {func(c *framework.Config) {
			plain(nil)(c)
			c.Source = &explosive{c.Source.(*informer.Push)}
		}, "result=error Error: update of ConfigMap default/a: panic: "},
		"without a resource set": {func(c *framework.Config) {
			c.ResourceSets = []framework.ResourceSetConfig{{Name: "none", Handles: func(any) bool { return false }, Resources: []framework.Resource{&resource{name: "r"}}}}
		}, "result=ignored reason=no resource set handles it"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				provider, exporter := newTraces(t)
				source := informer.NewPush("objects")
				config := framework.Config{Name: "test", Source: source, Logger: quiet(t), TracerProvider: provider, BackOffFactory: everyMinute}
				test.config(&config)
				f, err := framework.New(config)
				if err != nil {
					t.Fatal(err)
				}
				defer running(t, f)()
				put(t, source, configMap("a"))
				synctest.Wait()
				spans := outline(named(exporter.GetSpans(), "update test"))
				if len(spans) != 1 || !strings.Contains(spans[0], "queue_wait_seconds=0 "+test.want) {
					t.Errorf("spans are %q, want one with %q", spans, test.want)
				}
			})
		})
	}
}

// explosive is a source that panics when a finalizer is put on an object.
type explosive struct{ *informer.Push }

func (explosive) AddFinalizer(context.Context, any, string) (any, error) { panic("in AddFinalizer") }
func (explosive) RemoveFinalizer(context.Context, any, string) error     { return nil }

// The span that a framework is run in lasts as long as that; who drives another one waits for it.
func TestASpanIsAPartOfThatOfWhoDrivesTheFrameworkAndNotOfTheOneItIsRunIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		provider, exporter := newTraces(t)
		driven := newFramework(t, framework.Config{Name: "driven", Source: informer.NewPush("driven"), Driven: true, TracerProvider: provider}, &resource{name: "page"})
		source := informer.NewPush("objects")
		f := newFramework(t, framework.Config{Name: "test", Source: source, TracerProvider: provider}, &resource{name: "r", created: func(ctx context.Context, _ any) error {
			_, err := driven.ReconcileObject(ctx, configMap("b"))
			return err
		}})
		ctx, main := provider.Tracer("main").Start(context.Background(), "main")
		time.Sleep(time.Second)
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- f.Run(ctx) }()
		synctest.Wait()
		put(t, source, configMap("a"))
		synctest.Wait()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		main.End()
		want := []string{
			"main",
			`update test kind=ConfigMap namespace=default name=a loop=1 triggers=["change from objects (added)"] trigger_count=1 queue_wait_seconds=0 result=success`,
			"  r ensure_created",
			"    update driven kind=ConfigMap namespace=default name=b loop=1 result=success",
			"      page ensure_created",
		}
		if diff := cmp.Diff(want, outline(exporter.GetSpans())); diff != "" {
			t.Errorf("spans (-want +got):\n%s", diff)
		}
	})
}
