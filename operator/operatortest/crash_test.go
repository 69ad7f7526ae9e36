package operatortest_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// siteScenario is the life of a site.
func siteScenario(change func(*sites)) operatortest.Scenario {
	return operatortest.Scenario{
		Name:  "site",
		Start: startSites(change),
		Phases: []operatortest.Phase{
			{Name: "create", Do: operatortest.Create(site), Until: siteIsDone("hello")},
			{Name: "change", Do: setText("bye"), Until: siteIsDone("bye")},
			{Name: "delete", Do: operatortest.Delete(site), Until: operatortest.Gone(site)},
		},
		Objects:  []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}},
		Parallel: 4,
	}
}

// sweep returns the report and its failures, each as its crash point without the
// run's namespace and the phase that failed.
func sweep(t *testing.T, scenario operatortest.Scenario) (*operatortest.Report, []string) {
	t.Helper()
	return sweepOf(t, scenario, operatortest.Crashes)
}

func sweepOf(t *testing.T, scenario operatortest.Scenario, kind operatortest.Sweep) (*operatortest.Report, []string) {
	t.Helper()
	scenario.Config = operatortest.Start(t).RESTConfig()
	report, err := operatortest.ReportOf(t.Context(), scenario, kind)
	if err != nil {
		t.Fatal(err)
	}
	var failures []string
	for _, failure := range report.Failures {
		points := make([]string, len(failure.Points))
		for i, point := range failure.Points {
			point.Write.Namespace = ""
			points[i] = point.String()
		}
		failures = append(failures, fmt.Sprintf("%s: %s", strings.Join(points, ", then "), failure.Phase))
	}
	return report, failures
}

func TestACorrectOperatorSurvivesACrashAtEachOfItsWrites(t *testing.T) {
	t.Parallel()
	report, failures := sweep(t, siteScenario(func(*sites) {}))
	var writes []string
	for _, write := range report.Writes {
		write.Namespace = ""
		writes = append(writes, write.String())
	}
	want := []string{
		"write 1: PATCH configmaps shop",
		"write 2: POST configmaps registration-of-shop",
		"write 3: POST secrets page-of-shop",
		"write 4: PATCH configmaps shop",
		"write 5: PUT configmaps registration-of-shop",
		"write 6: PUT secrets page-of-shop",
		"write 7: PATCH configmaps shop",
		"write 8: DELETE configmaps registration-of-shop",
		"write 9: PATCH configmaps shop",
	}
	if diff := cmp.Diff(want, writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if report.Crashes != 2*len(want) || len(report.NotReached) != 0 || len(failures) != 0 {
		t.Errorf("got %d crashes, not reached %v, failures %v; want two crashes for each write and nothing else",
			report.Crashes, report.NotReached, failures)
	}
}

func TestWritesThatChangeNothingAreCrashPointsToo(t *testing.T) {
	t.Parallel()
	scenario := siteScenario(func(s *sites) { s.chatty = map[string]bool{} })
	scenario.Settle = time.Second // several times as long as the operator keeps silent before it repeats itself
	report, failures := sweep(t, upTo(2, scenario))
	if len(report.Writes) != 9 || report.Crashes != 18 || len(report.NotReached) != 0 || len(failures) != 0 {
		t.Errorf("want 9 writes, 18 crashes and no failures, got: %s, %v", report.Summary(), failures)
	}
}

func TestBrokenOperatorsAreCaughtAtTheWriteThatBreaksThem(t *testing.T) {
	for _, test := range []struct {
		name     string
		scenario operatortest.Scenario
		want     []string
		reason   string // in the first failure
		diff     string // in the last failure
	}{
		{
			name:     "remembers what it created in memory only",
			scenario: upTo(1, siteScenario(func(s *sites) { s.forgetful, s.slow = true, true })),
			want: []string{
				"crash after write 2: POST configmaps registration-of-shop-*: create",
				"crash before write 3: POST secrets page-of-shop: create",
				"crash after write 3: POST secrets page-of-shop: create",
				"crash before write 4: PATCH configmaps shop: create",
				"crash after write 4: PATCH configmaps shop: create",
			},
			reason: "the state is another than without a mishap",
			diff:   "ConfigMap registration-of-shop-* #2",
		},
		{
			name: "marks its work done before doing it",
			scenario: func() operatortest.Scenario {
				scenario := upTo(1, siteScenario(func(s *sites) { s.hasty = true }))
				scenario.Phases[0].Until = isRegistered("hello")
				scenario.Timeout = 40 * time.Second // a good run takes less, also on a busy machine
				return scenario
			}(),
			want: []string{
				"crash after write 2: PATCH configmaps shop: create",
				"crash before write 3: POST configmaps registration-of-shop: create",
				"crash after write 3: POST configmaps registration-of-shop: create",
				"crash before write 4: POST secrets page-of-shop: create",
			},
			reason: `did not converge within 40s: configmaps "registration-of-shop" not found`,
			diff:   "Secret page-of-shop",
		},
		{
			name:     "removes its finalizer before cleaning up",
			scenario: siteScenario(func(s *sites) { s.careless = true }),
			want: []string{
				"crash after write 8: PATCH configmaps shop: delete",
				"crash before write 9: DELETE configmaps registration-of-shop: delete",
			},
			reason: "the state is another than without a mishap",
			diff:   "ConfigMap registration-of-shop",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			report, failures := sweep(t, test.scenario)
			if diff := cmp.Diff(test.want, failures); diff != "" {
				t.Errorf("failures (-want +got):\n%s", diff)
			}
			if len(report.Failures) == 0 {
				return
			}
			first, last := report.Failures[0], report.Failures[len(report.Failures)-1]
			if !strings.Contains(first.Reason, test.reason) {
				t.Errorf("want the reason %q, got: %v", test.reason, first)
			}
			if !strings.Contains(last.Diff, test.diff) {
				t.Errorf("want %q among the differences, got: %v", test.diff, last)
			}
			if err := report.Err(); err == nil || !strings.Contains(err.Error(), first.Error()) || !strings.Contains(err.Error(), last.Error()) {
				t.Errorf("the report's error lacks failures: %v", err)
			}
		})
	}
}

// upTo leaves out the phases after the n-th.
func upTo(n int, scenario operatortest.Scenario) operatortest.Scenario {
	scenario.Phases = scenario.Phases[:n]
	return scenario
}

func TestDifferencesOfSecretsAreReportedWithoutTheirData(t *testing.T) {
	t.Parallel()
	const marker = "do-not-show"
	scenario := upTo(1, siteScenario(func(s *sites) {
		s.mask = func(string) string { return marker + s.namespace } // each run has another
	}))
	scenario.Config = operatortest.Start(t).RESTConfig()
	_, err := operatortest.ReportOf(t.Context(), scenario, operatortest.Crashes)
	if err == nil || !strings.Contains(err.Error(), "<digest ") {
		t.Fatalf("got error %v, want one that shows two digests", err)
	}
	for _, secret := range []string{marker, base64.StdEncoding.EncodeToString([]byte(marker))[:12]} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the report shows the data of a Secret: %v", err)
		}
	}
}

func TestNothingOfACrashedOperatorGetsThrough(t *testing.T) {
	t.Parallel()
	correct := startSites(func(*sites) {})
	scenario := upTo(1, siteScenario(nil))
	farewell := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "farewell"}}
	scenario.Cleanup = operatortest.Gone(farewell)
	scenario.Start = func(ctx context.Context, cfg *rest.Config, namespace string) error {
		err := correct(ctx, cfg, namespace)
		c, clientErr := client.New(cfg, client.Options{})
		if clientErr != nil {
			return clientErr
		}
		// A farewell: an operator that is killed does not get to say it.
		return errors.Join(err, operatortest.Create(farewell)(context.WithoutCancel(ctx), c, namespace))
	}
	if _, failures := sweep(t, scenario); len(failures) != 0 {
		t.Errorf("the operator wrote after its end: %v", failures)
	}
}

func TestScenariosThatCannotBeJudged(t *testing.T) {
	valid := func() operatortest.Scenario { return upTo(1, siteScenario(func(*sites) {})) }
	config := operatortest.Start(t).RESTConfig()
	var runs atomic.Int64
	for _, test := range []struct {
		name   string
		change func(*operatortest.Scenario)
		want   string
	}{
		{"no name", func(s *operatortest.Scenario) { s.Name = "" }, `scenario "": name must not be empty`},
		{"no start", func(s *operatortest.Scenario) { s.Start = nil }, "start must not be nil"},
		{"no phases", func(s *operatortest.Scenario) { s.Phases = nil }, "phases must not be empty"},
		{"no until", func(s *operatortest.Scenario) { s.Phases = []operatortest.Phase{{}} }, `until of phase "1" must not be nil`},
		{"no objects", func(s *operatortest.Scenario) { s.Objects = nil }, "objects or list must be set"},
		{"no config", func(s *operatortest.Scenario) { s.Config = nil }, "config must not be nil"},
		{"negative time", func(s *operatortest.Scenario) { s.Settle = -1 }, "must not be negative"},
		{"cluster-scoped objects", func(s *operatortest.Scenario) { s.Objects = []client.Object{&rbacv1.ClusterRole{}} }, "ClusterRole in objects is cluster-scoped"},
		{"an operator that ends", func(s *operatortest.Scenario) {
			s.Start = func(context.Context, *rest.Config, string) error { return errors.New("no licence") }
		}, `phase "create" fails without any mishap: the operator ended by itself: no licence`},
		{"an operator that writes nothing", func(s *operatortest.Scenario) {
			s.Start = func(ctx context.Context, _ *rest.Config, _ string) error { <-ctx.Done(); return nil }
			s.Phases[0].Until = func(context.Context, client.Client, string) error { return nil }
		}, "the operator wrote nothing"},
		{"a user's part that fails", func(s *operatortest.Scenario) { s.Phases[0].Do = operatortest.Delete(page) },
			`the user's part failed: delete Secret page-of-shop: secrets "page-of-shop" not found`},
		{"a state that is never the same", func(s *operatortest.Scenario) {
			s.Phases[0].Do = func(ctx context.Context, user client.Client, namespace string) error {
				object := site.DeepCopy()
				object.Data["run"] = fmt.Sprint(runs.Add(1))
				return operatortest.Create(object)(ctx, user, namespace)
			}
		}, `phase "create" ends differently each time`},
		{"a phase that hangs", func(s *operatortest.Scenario) {
			s.Timeout = 10 * time.Second
			s.Phases[0].Until = operatortest.All(siteIsDone("hello"), operatortest.Gone(site))
		}, "did not converge within 10s: ConfigMap shop is still there"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			scenario := valid()
			scenario.Config = config
			test.change(&scenario)
			_, err := operatortest.ReportOf(t.Context(), scenario, operatortest.Crashes)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

// recorder is a test that keeps what it is told.
type recorder struct {
	testing.TB
	errors, logs []string
}

func (r *recorder) Log(args ...any)   { r.logs = append(r.logs, fmt.Sprint(args...)) }
func (r *recorder) Error(args ...any) { r.errors = append(r.errors, fmt.Sprint(args...)) }

func TestATestFailsOnceForEachFailureAndLogsTheWrites(t *testing.T) {
	t.Parallel()
	r := &recorder{TB: t}
	scenario := siteScenario(func(s *sites) { s.careless = true })
	scenario.Name = "NAME" // its sample has the crash after write 8
	operatortest.CrashAtEveryWrite(r, scenario)
	errors, summary := 2, "9 writes, 18 crashes, 2 failures"
	if testing.Short() {
		errors, summary = 1, "9 writes, 5 crashes, 1 failures"
	}
	if len(r.errors) != errors || !strings.Contains(r.errors[0], "crash after write 8: PATCH configmaps") {
		t.Errorf("want %d errors, the first after write 8, got: %q", errors, r.errors)
	}
	if len(r.logs) != 1 || !strings.Contains(r.logs[0], summary) {
		t.Errorf("want a summary with %s in the log, got: %q", summary, r.logs)
	}
}
