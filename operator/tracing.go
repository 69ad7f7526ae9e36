package operator

import (
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/operator/internal/requests"
)

// tracerName is the instrumentation scope of the spans of requests.
const tracerName = "github.com/operatorkit/operatorkit/operator"

// tracedTransport makes a span for each request that may change something, if the context has a
// recorded span, such as that of a step. The span has the attributes of OpenTelemetry's semantic
// conventions for HTTP clients. For an API server it also names the object. The path of another
// system's URL is omitted, because it may be secret.
type tracedTransport struct {
	next      http.RoundTripper
	apiServer bool
}

// tracedAPIServer is the tracedTransport for an API server.
func tracedAPIServer(next http.RoundTripper) http.RoundTripper { return &tracedTransport{next, true} }

// RoundTrip implements http.RoundTripper.
func (t *tracedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	around := trace.SpanFromContext(r.Context())
	if !around.IsRecording() || !requests.Writes(r) {
		return t.next.RoundTrip(r)
	}
	name := r.Method
	attributes := []attribute.KeyValue{
		attribute.String("http.request.method", r.Method),
		attribute.String("server.address", r.URL.Hostname()),
	}
	if target := requests.TargetOf(r.URL.Path); t.apiServer && target.Resource != "" {
		name += " " + target.Resource
		attributes = append(attributes,
			attribute.String("operatorkit.write.group", target.Group),
			attribute.String("operatorkit.write.resource", target.Resource),
			attribute.String("operatorkit.write.subresource", target.Subresource),
			attribute.String("operatorkit.write.namespace", target.Namespace),
			attribute.String("operatorkit.write.name", target.Name),
		)
	}
	_, span := around.TracerProvider().Tracer(tracerName).Start(r.Context(), name,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
	defer span.End()
	response, err := t.next.RoundTrip(r)
	if err != nil {
		span.SetStatus(codes.Error, secretscontext.Scrub(r.Context(), err.Error()))
		return response, err
	}
	span.SetAttributes(attribute.Int("http.response.status_code", response.StatusCode))
	if response.StatusCode >= http.StatusBadRequest {
		span.SetStatus(codes.Error, http.StatusText(response.StatusCode))
	}
	return response, nil
}

// WrappedRoundTripper lets others find the transport below.
func (t *tracedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// CloseIdleConnections is what http.Client.CloseIdleConnections looks for.
func (t *tracedTransport) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(t.next) }
