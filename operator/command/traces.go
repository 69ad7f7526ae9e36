package command

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/giantswarm/micrologger"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/operatorkit/operatorkit/operator/logging"
)

// tracesCloseTimeout is how long the last spans may take to be exported at the end.
const tracesCloseTimeout = 5 * time.Second

// traces are the spans of the operator, on their way to where the standard variables OTEL_* say. Without a provider there are none.
type traces struct {
	provider *sdktrace.TracerProvider
	logger   micrologger.Logger
}

// startTraces reads the variables. What is wrong with them is an error of the command line: OpenTelemetry's own rule is to go on without.
func (p *program) startTraces(ctx context.Context, logger micrologger.Logger) (*traces, error) {
	exporter, err := newSpanExporter(ctx)
	if err == nil && exporter != nil {
		err = checkSampler()
	}
	if err != nil {
		return nil, &usageError{err}
	}
	if exporter == nil {
		return &traces{}, nil
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(attribute.String("service.name", p.config.Name), attribute.String("service.version", p.config.Version)),
		resource.WithFromEnv())
	if err != nil {
		return nil, &usageError{fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES must be name=value,name=value: %w", err)}
	}
	if !p.config.KeepGlobalLoggers {
		otel.SetLogger(logging.Logr(logger))
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
			logger.Log("level", "warning", "message", "tracing failed", "error", err.Error())
		}))
	}
	logger.Log("level", "info", "message", "traces are exported")
	return &traces{sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithBatcher(&tellingExporter{SpanExporter: exporter, logger: logger})), logger}, nil
}

// otlp returns the value of a variable of the exporter: that for traces, or else that for all signals.
func otlp(name string) string {
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_"+name), os.Getenv("OTEL_EXPORTER_OTLP_"+name))
}

// newSpanExporter returns what the variables ask for, and nil if they ask for none.
func newSpanExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	kind, endpoint := os.Getenv("OTEL_TRACES_EXPORTER"), otlp("ENDPOINT")
	switch {
	case strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true"), kind == "none", kind == "" && endpoint == "":
		return nil, nil
	case kind != "" && kind != "otlp":
		return nil, fmt.Errorf(`OTEL_TRACES_EXPORTER must be "otlp" or "none", is %q`, kind)
	}
	if u, err := url.Parse(endpoint); endpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_ENDPOINT, or that of traces, must be an URL such as http://collector:4318, is %q", endpoint)
	}
	switch protocol := otlp("PROTOCOL"); protocol {
	case "", "http/protobuf":
		return otlptracehttp.New(ctx)
	case "grpc":
		return otlptracegrpc.New(ctx)
	default:
		return nil, fmt.Errorf(`OTEL_EXPORTER_OTLP_PROTOCOL, or that of traces, must be "http/protobuf" or "grpc", is %q`, protocol)
	}
}

// checkSampler is an error if the variables name a sampler that there is not.
func checkSampler() error {
	known := []string{"always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio"}
	sampler, arg := os.Getenv("OTEL_TRACES_SAMPLER"), os.Getenv("OTEL_TRACES_SAMPLER_ARG")
	if sampler != "" && !slices.Contains(known, sampler) {
		return fmt.Errorf("OTEL_TRACES_SAMPLER must be one of %q, is %q", known, sampler)
	}
	if ratio, err := strconv.ParseFloat(arg, 64); strings.HasSuffix(sampler, "traceidratio") && arg != "" && (err != nil || !(ratio >= 0 && ratio <= 1)) {
		return fmt.Errorf("OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, is %q", arg)
	}
	return nil
}

// close exports the last spans, and stops. That nobody takes them is no error of the operator.
func (t *traces) close() {
	if t.provider == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), tracesCloseTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.logger.Log("level", "warning", "message", "the last traces are lost", "error", err.Error())
	}
}

// tellingExporter tells the log once that spans can't be exported, and once that they can be again. Meanwhile they are dropped.
type tellingExporter struct {
	sdktrace.SpanExporter

	logger  micrologger.Logger
	failing bool
}

// ExportSpans implements sdktrace.SpanExporter. It is not called twice at once.
func (e *tellingExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err != nil && !e.failing:
		e.logger.Log("level", "warning", "message", "traces can't be exported, and are dropped until they can be", "error", err.Error())
	case err == nil && e.failing:
		e.logger.Log("level", "info", "message", "traces are exported again")
	}
	e.failing = err != nil
	return nil
}
