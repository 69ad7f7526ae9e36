package operatortest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestACorrectOperatorSurvivesALieAboutEachOfItsWrites(t *testing.T) {
	t.Parallel()
	report, failures := sweepOf(t, upTo(1, siteScenario(func(*sites) {})), operatortest.Lies)
	if report.Lies != 4*len(report.Writes) || report.Crashes != 0 || len(report.NotReached) != 0 || len(failures) != 0 {
		t.Errorf("want four lies to each write and no failures, got: %s, %v", report.Summary(), failures)
	}
}

func TestAnOperatorThatBelievesALieIsCaughtAtIt(t *testing.T) {
	t.Parallel()
	scenario := upTo(1, siteScenario(func(s *sites) { s.gullible = map[string]bool{} }))
	scenario.Timeout = 20 * time.Second // a good run takes less, also on a busy machine
	_, failures := sweepOf(t, scenario, operatortest.Lies)
	want := []string{
		"lying 404 to write 1: PATCH configmaps shop: create",
		"lying 404 to write 2: POST configmaps registration-of-shop: create",
		"lying 404 to write 3: POST secrets page-of-shop: create",
	}
	if got := strings.Join(failures, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got the failures %q, want %q", failures, want)
	}
}

func TestAnOperatorThatDoesNotSurviveASecondCrashWhileItRecoversIsCaught(t *testing.T) {
	t.Parallel()
	scenario := upTo(1, siteScenario(func(s *sites) { s.recovers = true }))
	scenario.Timeout = 20 * time.Second
	if _, failures := sweep(t, scenario); len(failures) > 0 {
		t.Errorf("one crash is too much already: %v", failures)
	}
	_, failures := sweepOf(t, scenario, operatortest.Mishaps)
	if len(failures) == 0 || !strings.Contains(failures[0], "of life 2: ") {
		t.Errorf("want failures after a second crash, got: %v", failures)
	}
}

func TestAnOperatorThatReliesOnItsFinalizersIsCaughtByATenant(t *testing.T) {
	t.Parallel()
	for name, trusting := range map[string]bool{"it puts them back": false, "it does not": true} {
		t.Run(name, func(t *testing.T) {
			scenario := siteScenario(func(s *sites) { s.trusting = trusting })
			scenario.Tenant = operatortest.TakeFinalizers(site)
			scenario.Timeout = 20 * time.Second
			report, failures := sweepOf(t, scenario, operatortest.Tenants)
			if (len(failures) > 0) != trusting || report.Met[operatortest.TenantMeddles].Runs != len(report.Writes) {
				t.Errorf("got %s, and the failures %q", report.Summary(), failures)
			}
		})
	}
	scenario := siteScenario(func(*sites) {})
	scenario.Config = operatortest.Start(t).RESTConfig()
	if _, err := operatortest.ReportOf(t.Context(), scenario, operatortest.Tenants); err == nil || !strings.Contains(err.Error(), "tenant must not be nil") {
		t.Errorf("without a tenant: got error %v", err)
	}
}

// registry is another system, where things are put under a path, or added with a number.
type registry struct {
	mu     sync.Mutex
	things map[string]string
}

func (r *registry) ServeHTTP(_ http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	path := strings.TrimPrefix(req.URL.Path, "/")
	if req.Method == http.MethodPost {
		path += fmt.Sprint("-", len(r.things))
	}
	r.things[path] = req.URL.Query().Get("text")
}

// list returns how many things a run has there.
func (r *registry) list(_ context.Context, _ client.Client, namespace string) ([]client.Object, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	things := 0
	for path := range r.things {
		if strings.HasPrefix(path, namespace+"/") {
			things++
		}
	}
	return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "things"}, Data: map[string]string{"count": fmt.Sprint(things)}}}, nil
}

func TestRequestsToOtherSystemsAreWritesToCrashAtToo(t *testing.T) {
	for _, test := range []struct {
		name    string
		blindly bool
		write   string
		want    string
	}{
		{"an operator that looks what is there", false, "write 4: PUT /", "[]"},
		{"an operator that does not", true, "write 4: POST /", "crash after write 4: POST"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			other := &registry{things: map[string]string{}}
			server := httptest.NewServer(other)
			t.Cleanup(server.Close)
			scenario := upTo(1, siteScenario(func(s *sites) { s.address, s.blindly = server.URL, test.blindly }))
			scenario.List = other.list
			report, failures := sweep(t, scenario)
			if len(report.Writes) != 5 || !strings.Contains(report.Summary(), test.write) {
				t.Errorf("want five writes with %q, got: %s", test.write, report.Summary())
			}
			if !strings.Contains(fmt.Sprint(failures), test.want) {
				t.Errorf("got the failures %v, want %s", failures, test.want)
			}
		})
	}
}
