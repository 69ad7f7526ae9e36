package command_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// collector receives spans by both protocols of OTLP.
type collector struct {
	collectorv1.UnimplementedTraceServiceServer

	mu       sync.Mutex
	requests []*collectorv1.ExportTraceServiceRequest
}

// Export implements the gRPC service.
func (c *collector) Export(_ context.Context, r *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, r)
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unpacked
	}
	sent, err := io.ReadAll(body)
	request := &collectorv1.ExportTraceServiceRequest{}
	if err == nil {
		err = proto.Unmarshal(sent, request)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, "no traces", http.StatusBadRequest)
		return
	}
	_, _ = c.Export(r.Context(), request)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// received are the names of the spans, and what is said of who has sent them.
func (c *collector) received() (spans []string, about map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	about = map[string]string{}
	for _, r := range c.requests {
		for _, of := range r.GetResourceSpans() {
			for _, a := range of.GetResource().GetAttributes() {
				about[a.GetKey()] = a.GetValue().GetStringValue()
			}
			for _, scope := range of.GetScopeSpans() {
				for _, s := range scope.GetSpans() {
					spans = append(spans, s.GetName())
				}
			}
		}
	}
	return spans, about
}

// The spans are those of a run that is over before they would be sent in passing: what is left is sent at the end.
func TestTracesGoWhereTheStandardVariablesSay(t *testing.T) {
	instance := operatortest.Start(t)
	user := operatortest.NewClient(t, instance.RESTConfig(), nil)
	for name, test := range map[string]struct {
		variables map[string]string
		want      map[string]string
		none      bool
	}{
		"by HTTP": {want: map[string]string{"service.name": "gardener", "service.version": "v1.2.3"}},
		"by HTTP, compressed, with a name": {
			variables: map[string]string{"OTEL_SERVICE_NAME": "garden", "OTEL_RESOURCE_ATTRIBUTES": "k8s.pod.name=gardener-0,service.version=v2", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"},
			want:      map[string]string{"service.name": "garden", "service.version": "v2", "k8s.pod.name": "gardener-0"},
		},
		"by gRPC":               {variables: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, want: map[string]string{"service.name": "gardener"}},
		"never, being off":      {variables: map[string]string{"OTEL_SDK_DISABLED": "true"}, none: true},
		"never, to nobody":      {variables: map[string]string{"OTEL_TRACES_EXPORTER": "none"}, none: true},
		"never, if unasked":     {variables: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, none: true},
		"never, if not sampled": {variables: map[string]string{"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"}, none: true},
	} {
		t.Run(name, func(t *testing.T) {
			traces := &collector{}
			endpoint := ""
			if test.variables["OTEL_EXPORTER_OTLP_PROTOCOL"] == "grpc" {
				listener, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				server := grpc.NewServer()
				collectorv1.RegisterTraceServiceServer(server, traces)
				go func() { _ = server.Serve(listener) }()
				t.Cleanup(server.Stop)
				endpoint = "http://" + listener.Addr().String()
			} else {
				server := httptest.NewServer(traces)
				t.Cleanup(server.Close)
				endpoint = server.URL
			}
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
			t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "600000")
			for variable, value := range test.variables {
				t.Setenv(variable, value)
			}
			namespace := instance.Namespace(t)
			if err := user.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bed"}}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stderr := &log{}
			ended := make(chan int, 1)
			config := gardener()
			config.KeepGlobalLoggers = true
			go func() {
				ended <- command.Execute(ctx, config, []string{"run", "--kubeconfig", instance.Kubeconfig(), "--namespace", namespace, "--crds", "off",
					"--listen-address", "", "--inspector-address", "", "--log-format", "text"}, io.Discard, stderr)
			}()
			operatortest.Eventually(t, "it greets", func() bool { return strings.Contains(stderr.String(), "hello bed") })
			cancel()
			if code := <-ended; code != command.ExitOK {
				t.Fatalf("exit code %d\n%s", code, stderr)
			}
			spans, about := traces.received()
			if got := strings.Join(spans, ", "); test.none != (got == "") || !test.none && (!strings.Contains(got, "greeter ensure_created") || !strings.Contains(got, "update greeter")) {
				t.Errorf("the spans are %q\n%s", got, stderr)
			}
			for key, want := range test.want {
				if got := about[key]; got != want {
					t.Errorf("%s is %q, want %q", key, got, want)
				}
			}
		})
	}
}

func TestVariablesOfTracesThatCantBeFollowedAreRefused(t *testing.T) {
	for _, test := range []struct{ name, value, says string }{
		{"OTEL_TRACES_EXPORTER", "zipkin", `OTEL_TRACES_EXPORTER must be "otlp" or "none", is "zipkin"`},
		{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", `must be "http/protobuf" or "grpc", is "http/json"`},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector:4318", `must be an URL such as http://collector:4318, is "collector:4318"`},
		{"OTEL_TRACES_SAMPLER", "sometimes", `OTEL_TRACES_SAMPLER must be one of ["always_on"`},
		{"OTEL_TRACES_SAMPLER_ARG", "10%", `OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, is "10%"`},
		{"OTEL_RESOURCE_ATTRIBUTES", "gardener", "OTEL_RESOURCE_ATTRIBUTES must be name=value,name=value: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
			t.Setenv("OTEL_TRACES_SAMPLER", "traceidratio")
			t.Setenv(test.name, test.value)
			kubeconfig := t.TempDir() + "/config"
			writeKubeconfig(t, kubeconfig, "https://127.0.0.1:1")
			var stderr bytes.Buffer
			config := gardener()
			config.KeepGlobalLoggers = true
			code := command.Execute(t.Context(), config, []string{"run", "--kubeconfig", kubeconfig}, io.Discard, &stderr)
			if code != command.ExitUsage || !strings.Contains(stderr.String(), test.says) {
				t.Errorf("exit code %d, want %d; %s", code, command.ExitUsage, &stderr)
			}
		})
	}
}
