package framework

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// tracerName is the instrumentation scope of all spans.
const tracerName = "github.com/operatorkit/operatorkit/framework"

// traced starts the span of a reconciliation, and returns its context. The reconciliations of a
// worker have no parent span.
func (f *Framework) traced(ctx context.Context, r *reconciliation) context.Context {
	o := objectOf(r.object, r.key)
	options := []trace.SpanStartOption{trace.WithAttributes(
		attribute.String("operatorkit.framework", f.Name()),
		attribute.String("operatorkit.kind", o.Kind),
		attribute.String("operatorkit.namespace", o.Namespace),
		attribute.String("operatorkit.name", o.Name),
		attribute.Int64("operatorkit.loop", int64(r.loop)), //nolint:gosec // it counts from 1
	)}
	if why, waited := r.wokenBy(); why != nil {
		options = append(options, trace.WithNewRoot(), trace.WithAttributes(
			attribute.StringSlice("operatorkit.triggers", triggersOf(why)),
			attribute.Int("operatorkit.trigger_count", why.Count),
			attribute.Float64("operatorkit.queue_wait_seconds", waited.Seconds()),
		))
	}
	ctx, _ = f.tracer.Start(ctx, r.event.String()+" "+f.Name(), options...)
	return ctx
}

// triggersOf returns the triggers of a waiting key, in words.
func triggersOf(why *waiting) (words []string) {
	for _, because := range why.Why {
		words = append(words, because.String())
	}
	return words
}

// link links a span to those of the reconciliations that caused it, as far as they are known now.
func link(span trace.Span, why *waiting) {
	for _, because := range why.Why {
		if cause := because.by.Span(); cause != nil {
			trigger := attribute.String("operatorkit.trigger", because.String())
			span.AddLink(trace.Link{SpanContext: *cause, Attributes: []attribute.KeyValue{trigger}})
		}
	}
}

// isTraced reports whether there may be spans of the reconciliation.
func (r *reconciliation) isTraced() bool {
	return r != nil && r.framework != nil && r.framework.tracer != nil && !r.plans
}

// span returns the span of the reconciliation, if it is recorded.
func (r *reconciliation) span() *trace.SpanContext {
	if !r.isTraced() {
		return nil
	}
	return r.author.Span
}

// traceID returns the ID of the trace of the reconciliation. It is empty without a trace.
func (r *reconciliation) traceID() string {
	if span := r.span(); span != nil {
		return span.TraceID().String()
	}
	return ""
}

// recordedSpan returns the span of a context if it is recorded.
func recordedSpan(ctx context.Context) *trace.SpanContext {
	if span := trace.SpanContextFromContext(ctx); span.IsSampled() {
		return &span
	}
	return nil
}

// spans ends the spans of reconciliations.
type spans struct{ unobserved }

// ended implements observer. The causes of a reconciliation may have become known only meanwhile.
func (spans) ended(e ended) {
	r := e.reconciliation
	if !r.isTraced() {
		return
	}
	span := trace.SpanFromContext(r)
	if why, _ := r.wokenBy(); why != nil && span.IsRecording() {
		link(span, why)
	}
	span.SetAttributes(attribute.String("operatorkit.result", string(e.outcome)))
	if e.reason != "" {
		span.SetAttributes(attribute.String("operatorkit.reason", e.reason))
	}
	endSpan(span, e.err)
}

// traceStep runs a step, with a span if the span of the reconciliation is recorded.
func (r *reconciliation) traceStep(ctx context.Context, info StepInfo, run func(context.Context) error) error {
	if r.span() == nil {
		return run(ctx)
	}
	ctx, span := r.framework.tracer.Start(ctx, info.Resource+" "+string(info.Step), trace.WithAttributes(
		attribute.String("operatorkit.resource", info.Resource),
		attribute.String("operatorkit.step", string(info.Step)),
	))
	err := run(ctx)
	endSpan(span, err)
	return err
}

// endSpan ends a span. Errors are the same as in logs, without the known values of Secrets.
func endSpan(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// inSpan returns a context with the span of the ended reconciliation, for the remaining work.
func (r result) inSpan(ctx context.Context) context.Context {
	if r.reconciliation.span() == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, trace.SpanFromContext(r.reconciliation))
}

// because records why the worker reconciles a key, and how long the key waited.
func (a *activity) because(why *waiting, waited time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.why, a.waited = why, waited
}

// wokenBy returns why the worker reconciles the key. It is unknown if something else drives the
// framework, even another framework.
func (r *reconciliation) wokenBy() (why *waiting, waited time.Duration) {
	a := r.activity
	if a == nil || r.framework.config.Driven {
		return nil, 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.why, a.waited
}
