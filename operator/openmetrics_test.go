package operator_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestOpenMetricsHasExemplarsAndTheSameSeries(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	scraped := map[bool]map[string]string{}
	for _, open := range []bool{false, true} {
		source := informer.NewPush("objects")
		must(t, source.Update(configMap("default", "a")))
		registry := prometheus.NewRegistry()
		registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector())
		f, err := framework.New(framework.Config{
			Name: "f", Source: source, Logger: quiet(t), Registerer: registry, Resources: []framework.Resource{&resource{}},
			TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)),
		})
		must(t, err)
		exporter.Reset()
		o := newOperator(t, operator.Config{Frameworks: []*framework.Framework{f}, ListenAddress: "127.0.0.1:0", OpenMetrics: open, Registry: registry})
		running := run(t, o)
		operatortest.Eventually(t, "the reconciliation is traced", func() bool { return len(exporter.GetSpans()) == 2 })
		scraped[open] = map[string]string{}
		// As Prometheus asks.
		for accept, openMetrics := range map[string]bool{"application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5": open, "text/plain;version=0.0.4": false} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://%s/metrics", o.Addr()), http.NoBody)
			must(t, err)
			request.Header.Set("Accept", accept)
			answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
			must(t, err)
			body, err := io.ReadAll(answer.Body)
			must(t, err)
			must(t, answer.Body.Close())
			if got := strings.HasPrefix(answer.Header.Get("Content-Type"), "application/openmetrics-text"); got != openMetrics {
				t.Errorf("OpenMetrics are on: %t; asked for %s it answers %s", open, accept, answer.Header.Get("Content-Type"))
			}
			for line := range strings.Lines(string(body)) {
				if series, _, ok := strings.Cut(line, " "); ok && !strings.HasPrefix(line, "#") {
					scraped[openMetrics][wholeBound.ReplaceAllString(series, `$1="$2"`)] = line
				}
			}
		}
		must(t, running.stop())
	}
	diff := cmp.Diff(slices.Sorted(maps.Keys(scraped[false])), slices.Sorted(maps.Keys(scraped[true])))
	if diff != "" || len(scraped[false]) < 100 {
		t.Errorf("series of the text format and of OpenMetrics (-text +OpenMetrics):\n%s", diff)
	}
	spans := exporter.GetSpans()
	for _, series := range []string{
		`operatorkit_framework_reconciliation_duration_seconds_bucket{event="update",framework="f",result="success",`,
		`operatorkit_framework_step_duration_seconds_bucket{framework="f",resource="resource",step="ensure_created",`,
	} {
		exemplar := fmt.Sprintf(`# {trace_id="%s"}`, spans[len(spans)-1].SpanContext.TraceID())
		found := false
		for name, line := range scraped[true] {
			found = found || strings.HasPrefix(name, series) && strings.Contains(line, exemplar)
		}
		if !found {
			t.Errorf("no bucket of %s…} has the exemplar %s", series, exemplar)
		}
	}
}

// wholeBound matches the bound of a histogram or the rank of a summary that is a whole number, in
// OpenMetrics.
var wholeBound = regexp.MustCompile(`(le|quantile)="(\d+)\.0"`)
