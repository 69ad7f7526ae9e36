package operator_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestRequestsToTheAPIServerAreMeasured(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "gone", http.StatusGone) }))
	registry := prometheus.NewPedanticRegistry()
	for range 2 { // the second ones share the metrics
		d, err := operator.NewDependencies(operator.DependenciesConfig{
			Name: "test", RESTConfig: &rest.Config{Host: server.URL, QPS: 1000}, Scheme: scheme.Scheme, Logger: logTo(t, io.Discard), Registry: registry,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Close)
		core, err := typedcorev1.NewForConfig(d.RESTConfig)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := core.ConfigMaps("default").Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsGone(err) {
			t.Fatal(err)
		}
		_, _ = core.ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{})
		_ = core.ConfigMaps("default").Delete(t.Context(), "a", metav1.DeleteOptions{})
	}
	host := strings.TrimPrefix(server.URL, "http://")
	server.Close()
	d, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: "test", RESTConfig: &rest.Config{Host: server.URL}, Scheme: scheme.Scheme, Logger: logTo(t, io.Discard), Registry: registry,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	core, err := typedcorev1.NewForConfig(d.RESTConfig)
	if err != nil {
		t.Fatal(err)
	}
	_ = core.ConfigMaps("default").Delete(t.Context(), "a", metav1.DeleteOptions{})

	want := `
# HELP operatorkit_client_requests_total Requests to API servers, by the code of the answer; none is one that was not answered.
# TYPE operatorkit_client_requests_total counter
operatorkit_client_requests_total{code="410",host="HOST",verb="DELETE"} 2
operatorkit_client_requests_total{code="410",host="HOST",verb="GET"} 2
operatorkit_client_requests_total{code="410",host="HOST",verb="WATCH"} 2
operatorkit_client_requests_total{code="none",host="HOST",verb="DELETE"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(strings.ReplaceAll(want, "HOST", host)), "operatorkit_client_requests_total"); err != nil {
		t.Error(err)
	}
	// The limit does not hold watches up.
	for name, want := range map[string]uint64{"operatorkit_client_request_duration_seconds": 7, "operatorkit_client_rate_limiter_duration_seconds": 4} {
		if got := observations(t, registry, name); got != want {
			t.Errorf("%s has %d observations, want %d", name, got, want)
		}
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v, %v", problems, err)
	}
}

func registryNames(t *testing.T, g prometheus.Gatherer) (names []string) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		names = append(names, f.GetName())
	}
	return names
}

func observations(t *testing.T, g prometheus.Gatherer, name string) (n uint64) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name {
				n += m.GetHistogram().GetSampleCount()
			}
		}
	}
	return n
}

func TestTheBuildIsAmongTheMetrics(t *testing.T) {
	d, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: "test", RESTConfig: &rest.Config{}, Scheme: scheme.Scheme, Logger: logTo(t, io.Discard),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if names := strings.Join(registryNames(t, d.Registry), " "); !strings.Contains(names, "go_build_info") {
		t.Errorf("it is not among %s", names)
	}
}

func TestRenewalsOfTheLeaseAreCounted(t *testing.T) {
	r := newReplicas(t)
	o := r.replica("a", &journal{}, nil)
	running := run(t, o)
	operatortest.Eventually(t, "two renewals", func() bool {
		_, metrics := get(t, o, "/metrics")
		return strings.Contains(metrics, `operatorkit_operator_lease_renewals_total{operator="test",result="failure"} 0`) &&
			!strings.Contains(metrics, `operatorkit_operator_lease_renewals_total{operator="test",result="success"} 0`) &&
			!strings.Contains(metrics, `operatorkit_operator_lease_renewals_total{operator="test",result="success"} 1`+"\n") &&
			!strings.Contains(metrics, `operatorkit_operator_lease_renewed_timestamp_seconds{operator="test"} 0`)
	})
	if err := running.stop(); err != nil {
		t.Error(err)
	}
}
