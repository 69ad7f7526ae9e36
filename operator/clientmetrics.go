package operator

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/operatorkit/operatorkit/internal/collector"
)

// clientMetrics measure the requests to API servers as they are sent over the network. They belong
// to one registry: the metrics hooks of client-go are global to the process, and belong to the
// first component that registers them, such as controller-runtime.
type clientMetrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	waiting  *prometheus.HistogramVec
}

// clientBuckets are the upper bounds in seconds, up to the time-outs of API servers.
var clientBuckets = []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// newClientMetrics registers the metrics, or uses those that are registered already.
func newClientMetrics(registerer prometheus.Registerer) (*clientMetrics, error) {
	m := &clientMetrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "operatorkit_client_requests_total",
			Help: "Requests to API servers, by the code of the answer; none is one that was not answered.",
		}, []string{"verb", "host", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "operatorkit_client_request_duration_seconds", Buckets: clientBuckets,
			Help: "Time until an API server began to answer a request.",
		}, []string{"verb", "host"}),
		waiting: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "operatorkit_client_rate_limiter_duration_seconds", Buckets: clientBuckets,
			Help: "How long a request waited for the limit on the rate of requests.",
		}, []string{"host"}),
	}
	return m, errors.Join(share(registerer, &m.requests), share(registerer, &m.seconds), share(registerer, &m.waiting))
}

// share registers a collector. A collector that is registered already replaces it.
func share[C prometheus.Collector](registerer prometheus.Registerer, c *C) (err error) {
	*c, err = collector.Register(registerer, *c)
	return err
}

// measure measures the requests of a config, and how long they wait for its limit, if it has one.
// It changes the config.
func (m *clientMetrics) measure(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &measuredTransport{m, next} })
	limiter := config.RateLimiter
	if limiter == nil && config.QPS > 0 {
		burst := config.Burst
		if burst == 0 {
			burst = rest.DefaultBurst
		}
		limiter = flowcontrol.NewTokenBucketRateLimiter(config.QPS, burst)
	}
	if limiter != nil {
		config.RateLimiter = &measuredLimiter{limiter, m.waiting.WithLabelValues(hostOf(config))}
	}
}

// hostOf returns the host and port to which a config sends its requests.
func hostOf(config *rest.Config) string {
	address, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return ""
	}
	return address.Host
}

// measuredTransport measures the requests that it passes on.
type measuredTransport struct {
	metrics *clientMetrics
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *measuredTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	start := time.Now()
	response, err := t.next.RoundTrip(r)
	verb, code := verbOf(r), "none"
	if err == nil {
		code = strconv.Itoa(response.StatusCode)
	}
	t.metrics.requests.WithLabelValues(verb, r.URL.Host, code).Inc()
	t.metrics.seconds.WithLabelValues(verb, r.URL.Host).Observe(time.Since(start).Seconds())
	return response, err
}

// WrappedRoundTripper lets others find the transport below.
func (t *measuredTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// CloseIdleConnections is what http.Client.CloseIdleConnections looks for.
func (t *measuredTransport) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(t.next) }

// verbOf returns the method of a request, or WATCH for a request that stays open.
func verbOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet:
		if watch := r.URL.Query().Get("watch"); watch == "true" || watch == "1" {
			return "WATCH"
		}
		return r.Method
	case http.MethodHead, http.MethodOptions, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return r.Method
	}
	return "OTHER"
}

// measuredLimiter measures how long requests wait.
type measuredLimiter struct {
	flowcontrol.RateLimiter
	seconds prometheus.Observer
}

// Accept implements flowcontrol.RateLimiter.
func (l *measuredLimiter) Accept() {
	start := time.Now()
	l.RateLimiter.Accept()
	l.seconds.Observe(time.Since(start).Seconds())
}

// Wait implements flowcontrol.RateLimiter.
func (l *measuredLimiter) Wait(ctx context.Context) error {
	start := time.Now()
	defer func() { l.seconds.Observe(time.Since(start).Seconds()) }()
	return l.RateLimiter.Wait(ctx)
}
