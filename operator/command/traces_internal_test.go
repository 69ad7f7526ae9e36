package command

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/operatorkit/operatorkit/operator/logging"
)

// startedTraces are traces that go to a collector, and what is logged of them.
func startedTraces(t *testing.T, collect http.HandlerFunc) (*traces, *bytes.Buffer) {
	t.Helper()
	server := httptest.NewServer(collect)
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	log := &bytes.Buffer{}
	logger, err := logging.New(logging.Config{Writer: log, Format: logging.FormatText})
	if err != nil {
		t.Fatal(err)
	}
	p := &program{config: Config{Name: "test", KeepGlobalLoggers: true}}
	started, err := p.startTraces(t.Context(), logger)
	if err != nil {
		t.Fatal(err)
	}
	return started, log
}

func TestACollectorThatFailsIsToldOnce(t *testing.T) {
	var answer atomic.Int64
	traces, log := startedTraces(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(answer.Load())) })
	for _, code := range []int64{http.StatusForbidden, http.StatusForbidden, http.StatusOK, http.StatusOK, http.StatusForbidden} {
		answer.Store(code)
		_, span := traces.provider.Tracer("test").Start(t.Context(), "span")
		span.End()
		if err := traces.provider.ForceFlush(t.Context()); err != nil {
			t.Error(err)
		}
	}
	traces.close()
	failed, again := strings.Count(log.String(), "WARNING traces can't be exported"), strings.Count(log.String(), "INFO    traces are exported again")
	if failed != 2 || again != 1 || strings.Count(log.String(), "\n") != 4 {
		t.Errorf("it was told %d times, want 2, and %d times that it works again, want 1:\n%s", failed, again, log)
	}
}

// If who ends a span waited for the collector, this would never end.
func TestACollectorThatDoesNotAnswerHoldsNobodyUp(t *testing.T) {
	ended := make(chan struct{})
	traces, _ := startedTraces(t, func(http.ResponseWriter, *http.Request) { <-ended })
	for range 10_000 { // several times what is kept at most
		_, span := traces.provider.Tracer("test").Start(t.Context(), "span")
		span.End()
	}
	close(ended)
	traces.close()
}
