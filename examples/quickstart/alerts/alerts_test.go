package alerts_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/operatorkit/operatorkit/examples/quickstart"
	"github.com/operatorkit/operatorkit/examples/quickstart/v1alpha1"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/command/commandtest"
	"github.com/operatorkit/operatorkit/operator/oncall"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// root is the folder of the repository.
const root = "../../.."

func TestMain(m *testing.M) { operatortest.VerifyTestMain(m) }

// site is a Website of a version of the operator.
func site(name, version, text string) *v1alpha1.Website {
	return &v1alpha1.Website{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.VersionLabel: version}},
		Spec:       v1alpha1.WebsiteSpec{Title: "The " + name, Text: text},
	}
}

// trouble is an operator, in a namespace of its own that is named after it in Prometheus, and what befalls it.
type trouble struct {
	// args are more flags of "run", and replicas how many there are. Default: 1.
	args     []string
	replicas int
	// as has the operator send its requests by another configuration. Default: as the administrator.
	as func(t *testing.T, p *patient) *rest.Config
	// before is done before the operator starts, and begins when it has served its Website. Without begins nobody waits for that.
	before, begins func(t *testing.T, p *patient)
	// fires are the alerts that come of it, sorted: these and no others.
	fires []string
}

var troubles = map[string]trouble{
	"healthy":      {replicas: 2, args: []string{"--leader-elect", "--kube-api-qps=1000"}, begins: nothing},
	"shared":       {replicas: 2, args: []string{"--sharding"}, begins: nothing},
	"nobody-works": {args: []string{"--leader-elect"}, before: leaseOfSomebody, fires: []string{"OperatorkitNobodyWorks"}},
	"gone":         {begins: func(_ *testing.T, p *patient) { p.end() }, fires: []string{"OperatorkitIsNotThere"}},
	"lease": {
		args: []string{"--leader-elect", "--leader-election-retry-period=200ms"},
		begins: func(_ *testing.T, p *patient) {
			n := 0
			p.faults.On(func(r operatortest.Request) bool {
				if r.Verb != "update" || !operatortest.Leases(r) {
					return false
				}
				n++
				return n%2 == 0
			}, operatortest.Answer(apierrors.NewBadRequest("no")))
		},
		fires: []string{"OperatorkitLeaseIsHardToKeep"},
	},
	"objects-fail": {before: pageOfSomebody, fires: []string{"OperatorkitObjectsFail"}},
	"queue": {
		args: []string{"--workers=1", "--shutdown-timeout=1s"},
		begins: func(t *testing.T, p *patient) {
			p.faults.On(writes("configmaps"), operatortest.TimeOut())
			p.create(t, site("second", "v1", "waits"), site("third", "v1", "waits"))
		},
		fires: []string{"OperatorkitQueueIsStuck"},
	},
	"deletion": {
		begins: func(t *testing.T, p *patient) {
			p.patch(t, site("home", "", ""), `{"metadata":{"annotations":{"`+framework.PlanAnnotation+`":"true"}}}`)
			if err := p.user.Delete(t.Context(), p.named(site("home", "", ""))); err != nil {
				t.Fatal(err)
			}
		},
		fires: []string{"OperatorkitDeletionIsPending"},
	},
	"source": {
		begins: func(_ *testing.T, p *patient) {
			p.faults.On(func(r operatortest.Request) bool {
				return r.Resource == "services" && (r.Verb == "watch" || r.Verb == "list")
			}, operatortest.TimeOut())
			p.faults.Cut()
			p.faults.Restore()
		},
		fires: []string{"OperatorkitSourceIsOutOfContact"},
	},
	"unserved": {
		before: func(_ *testing.T, p *patient) {
			p.faults.On(func(r operatortest.Request) bool { return r.Resource == "services" }, operatortest.TimeOut())
		},
		fires: []string{"OperatorkitQueueIsStuck", "OperatorkitSourceIsOutOfContact"}, // what was there from the beginning waits
	},
	"panics": {
		begins: func(_ *testing.T, p *patient) { p.panics.Store(true) }, fires: []string{"OperatorkitObjectsFail", "OperatorkitPanics"},
	},
	"held": {
		begins: func(t *testing.T, p *patient) {
			p.patch(t, site("home", "", ""), `{"metadata":{"labels":{"`+v1alpha1.VersionLabel+`":"v9"}}}`)
		},
		fires: []string{"OperatorkitObjectsAreHeld"},
	},
	"undone": {
		begins: func(t *testing.T, p *patient) {
			p.create(t, site("second", "v1", "undone")) // home changes too often
			go p.undo(t.Context())
		},
		fires: []string{"OperatorkitChangesAreUndone"},
	},
	"refused": {as: withoutServices, fires: []string{"OperatorkitObjectsFail", "OperatorkitRequestsAreRefused"}},
	"failing": {
		begins: func(_ *testing.T, p *patient) { p.faults.On(writes("configmaps"), operatortest.InternalError()) },
		fires:  []string{"OperatorkitObjectsFail", "OperatorkitRequestsFail"},
	},
}

func nothing(*testing.T, *patient) {}

func writes(resource string) operatortest.Match {
	return func(r operatortest.Request) bool { return r.Resource == resource && r.N > 0 }
}

// leaseOfSomebody gives the Lease to one who does not renew it, and has an hour.
func leaseOfSomebody(t *testing.T, p *patient) {
	holder, seconds, now := "somebody", int32(time.Hour/time.Second), metav1.NowMicro()
	p.create(t, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: quickstart.Config.Name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now},
	})
}

// pageOfSomebody has the page of the Website there already, as an object that is not the operator's.
func pageOfSomebody(t *testing.T, p *patient) {
	p.create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "home-page"}})
}

// withoutServices is a user that may not write services.
func withoutServices(t *testing.T, p *patient) *rest.Config {
	name, read := "operator-"+p.namespace, []string{"get", "list", "watch"}
	p.kube.Permit(t, name,
		rbacv1.PolicyRule{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"get"}},
		rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"*"}, Verbs: append([]string{"patch"}, read...)},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: read},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: append([]string{"create", "patch", "delete"}, read...)},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	)
	config, err := p.kube.User(name)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// Each alert fires upon what it is about, and upon nothing else: not where all is well, and not in the trouble of another one. Each query of the
// dashboard has data. The operators are real ones, and so is the Prometheus that collects their metrics and goes by docs/oncall/alerts.yaml, in
// which a minute is two seconds: see hurried.
func TestEachAlertFiresInItsTroubleAloneAndEachQueryHasData(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: trouble has to last for longer than a minute")
	}
	program := prometheusProgram(t)
	w := &ward{kube: operatortest.Start(t), byName: map[string]*patient{}}
	want := map[string][]string{}
	for name, of := range troubles {
		w.admit(t, name, of)
		if of.fires != nil {
			want[name] = of.fires
		}
	}
	for _, admitted := range w.byName {
		go admitted.change(t.Context())
	}
	for name, of := range troubles {
		admitted := w.byName[name]
		// What takes a few seconds would be minutes.
		if name != "unserved" {
			operatortest.Eventually(t, name+" has its sources", func() error { return admitted.synced(t) })
		}
		if of.begins != nil {
			operatortest.Eventually(t, name+" has served home", func() error {
				return operatortest.Ready(site("home", "", ""))(t.Context(), admitted.user, admitted.namespace)
			})
		}
	}
	p := w.startPrometheus(t, program)
	for name, of := range troubles {
		if of.begins != nil {
			of.begins(t, w.byName[name])
		}
	}
	var missing string
	for deadline := time.Now().Add(alertLimit); time.Now().Before(deadline); time.Sleep(time.Second) {
		if missing = cmp.Diff(want, p.fired(t)); missing == "" {
			break
		}
	}
	if missing != "" {
		t.Errorf("not the alerts have fired that were to (-want +got):\n%s", missing)
	}
	var named []string
	for _, fires := range want {
		named = append(named, fires...)
	}
	for _, a := range oncall.Alerts {
		if !slices.Contains(named, a.Name) {
			t.Errorf("%s: there is no trouble that it is about", a.Name)
		}
	}
	for title, query := range dashboardQueries(t) {
		if len(p.query(t, query)) == 0 {
			t.Errorf("%s: there are no data for %s", title, query)
		}
	}
}

// alertLimit is when alerts are not waited for any longer: the slowest one takes two minutes and a half.
const alertLimit = 6 * time.Minute

// ward has all operators.
type ward struct {
	kube   *operatortest.Instance
	byName map[string]*patient
}

// patient is an operator of a trouble.
type patient struct {
	kube      *operatortest.Instance
	user      client.WithWatch
	namespace string
	faults    *operatortest.Faults
	// panics has every request that writes a ConfigMap panic.
	panics atomic.Bool
	// addresses are those of the metrics of the replicas, and ends end these.
	addresses []string
	ends      []func()
}

// end ends all replicas.
func (p *patient) end() {
	for _, end := range p.ends {
		end()
	}
}

func (p *patient) named(o client.Object) client.Object {
	o.SetNamespace(p.namespace)
	return o
}

func (p *patient) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	if err := operatortest.Create(objects...)(t.Context(), p.user, p.namespace); err != nil {
		t.Fatal(err)
	}
}

func (p *patient) patch(t *testing.T, o client.Object, document string) {
	t.Helper()
	if err := operatortest.Patch(o, document)(t.Context(), p.user, p.namespace); err != nil {
		t.Fatal(err)
	}
}

// unsynced matches a source that has not listed.
var unsynced = regexp.MustCompile(`operatorkit_framework_source_synced\{[^}]*\} 0`)

// synced is an error until all replicas know what there is.
func (p *patient) synced(t *testing.T) error {
	t.Helper()
	for _, address := range p.addresses {
		metrics, err := read(t, "http://"+address+"/metrics")
		if err != nil {
			return err
		}
		if !strings.Contains(metrics, "operatorkit_framework_source_synced") || unsynced.MatchString(metrics) {
			return fmt.Errorf("%s has sources that are not synced", address)
		}
	}
	return nil
}

// read returns what is at an address.
func read(t *testing.T, address string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// panicking is the way to the API server of a resource that panics.
type panicking struct {
	*patient
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (p panicking) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/configmaps/") && p.panics.Load() {
		panic("a resource that panics")
	}
	return p.next.RoundTrip(r)
}

// WrappedRoundTripper lets apimachinery's helpers reach the transport below.
func (p panicking) WrappedRoundTripper() http.RoundTripper { return p.next }

// admit starts the operator of a trouble, with a Website to serve.
func (w *ward) admit(t *testing.T, name string, of trouble) {
	t.Helper()
	scenario := commandtest.Scenario(t, quickstart.Config) // its definitions are on the control plane then
	p := &patient{
		kube: w.kube, namespace: w.kube.Namespace(t), faults: operatortest.NewFaults(),
		user: operatortest.NewClient(t, w.kube.RESTConfig(), scenario.Scheme),
	}
	w.byName[name] = p
	// The operator sees children that have its label only.
	beside := metav1.ObjectMeta{Name: "beside", Labels: map[string]string{"operatorkit.io/operator": "v1_" + quickstart.Config.Name}}
	p.create(t, site("home", "v1", "hello"), &corev1.ConfigMap{ObjectMeta: beside}, &corev1.Service{ObjectMeta: beside, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
	if of.before != nil {
		of.before(t, p)
	}
	rights := w.kube.RESTConfig()
	if of.as != nil {
		rights = of.as(t, p)
	}
	for range max(of.replicas, 1) {
		config := p.faults.Wrap(rights)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return panicking{p, next} })
		address := freeAddress(t)
		p.addresses = append(p.addresses, address)
		args := append([]string{
			"--listen-address", address, "--leader-election-namespace", p.namespace,
			"--leader-election-lease-duration=60s", "--leader-election-renew-deadline=50s", // a busy machine loses none
		}, of.args...)
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if err := commandtest.Start(quickstart.Shadowed(quickstart.Config.Name), args...)(ctx, config, p.namespace); err != nil {
				t.Errorf("the operator of %s has ended: %v", name, err)
			}
		}()
		p.ends = append(p.ends, func() {
			cancel()
			<-ended
		})
	}
	t.Cleanup(p.end)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// change changes something of each kind in the namespace every four seconds, of ten in which a source has to hear something where a minute is
// two: in place of what an API server says every minute when nothing changes.
func (p *patient) change(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		document := fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d"}}}`, n)
		beside := metav1.ObjectMeta{Name: "beside"}
		for o, document := range map[client.Object]string{
			site("home", "", ""):                  fmt.Sprintf(`{"spec":{"text":"text %d"}}`, n),
			&corev1.ConfigMap{ObjectMeta: beside}: document, &corev1.Service{ObjectMeta: beside}: document,
		} {
			_ = operatortest.Patch(o, document)(ctx, p.user, p.namespace) // What does not change is out of contact, and fires.
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Minute / hurry):
		}
	}
}

// undo writes the page of the second Website again and again, as another controller does.
func (p *patient) undo(ctx context.Context) {
	for ctx.Err() == nil {
		// The page may not be there yet.
		_ = operatortest.Patch(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "second-page"}}, `{"data":{"index.html":"theirs"}}`)(ctx, p.user, p.namespace)
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// prometheusProgram returns the path of Prometheus. Without one the test is skipped, but not where everything must be tested.
func prometheusProgram(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err == nil {
		return program
	}
	const what = "there is no Prometheus: install it, for example by apt-get install --no-install-recommends prometheus"
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	t.Skip(what + ", to test the alerts and the dashboard")
	return ""
}

// hurry is how much faster the rules go: no faster than fifteen operators can follow on two processors that others use too.
const hurry = 30

var (
	minutes = regexp.MustCompile(`\b(\d+)m\b`)
	seconds = regexp.MustCompile(`>\s+(\d{3,})\b`)
)

// hurried are the rules with two seconds in place of each minute: how long a rule has to hold, the ranges in its query, and the seconds that it
// compares with, which are the numbers of three digits and more.
func hurried(t *testing.T, rules []byte) []byte {
	t.Helper()
	replace := func(pattern *regexp.Regexp, format string, unit time.Duration) {
		rules = pattern.ReplaceAllFunc(rules, func(found []byte) []byte {
			n, err := strconv.Atoi(string(pattern.FindSubmatch(found)[1]))
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Appendf(nil, format, time.Duration(n)*unit/hurry/time.Second)
		})
	}
	replace(minutes, "%ds", time.Minute)
	replace(seconds, "> %d", time.Second)
	return rules
}

// collector is a Prometheus that runs.
type collector struct{ address string }

// startPrometheus has a Prometheus collect the metrics of all operators until the end of the test. Each has a job and a namespace of its own.
func (w *ward) startPrometheus(t *testing.T, program string) *collector {
	t.Helper()
	rules, err := os.ReadFile(filepath.Join(root, "docs/oncall/alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var jobs []any
	for name, p := range w.byName {
		jobs = append(jobs, map[string]any{
			"job_name": name, "static_configs": []any{map[string]any{"targets": p.addresses, "labels": map[string]string{"namespace": name}}},
		})
	}
	config, err := yaml.Marshal(map[string]any{
		"global":     map[string]string{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "500ms"},
		"rule_files": []string{"rules.yaml"}, "scrape_configs": jobs,
	})
	if err != nil {
		t.Fatal(err)
	}
	dir, p := t.TempDir(), &collector{address: freeAddress(t)}
	for name, content := range map[string][]byte{"rules.yaml": hurried(t, rules), "prometheus.yaml": config} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	cmd := exec.Command(program, "--config.file=prometheus.yaml", "--storage.tsdb.path=data", "--web.listen-address="+p.address, "--log.level=warn")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Logf("Prometheus: %v\n%s", err, &log)
		}
	})
	operatortest.Eventually(t, "Prometheus has looked at all operators", func() error {
		up, err := p.ask(t, "up == 1")
		targets := 0
		for _, of := range w.byName {
			targets += len(of.addresses)
		}
		if err == nil && len(up) != targets {
			err = fmt.Errorf("%d of %d are up", len(up), targets)
		}
		return err
	})
	return p
}

// fired are the alerts that have fired, by the namespace that they were about.
func (p *collector) fired(t *testing.T) map[string][]string {
	t.Helper()
	fired := map[string][]string{}
	for _, labels := range p.query(t, `count by (namespace, alertname) (last_over_time(ALERTS{alertstate="firing"}[1h]))`) {
		fired[labels["namespace"]] = append(fired[labels["namespace"]], labels["alertname"])
	}
	for name := range maps.Keys(fired) {
		slices.Sort(fired[name])
	}
	return fired
}

// query returns the labels of the series that a query has.
func (p *collector) query(t *testing.T, query string) []map[string]string {
	t.Helper()
	found, err := p.ask(t, query)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (p *collector) ask(t *testing.T, query string) ([]map[string]string, error) {
	t.Helper()
	var answer struct {
		Error string
		Data  struct {
			Result []struct{ Metric map[string]string }
		}
	}
	text, err := read(t, "http://"+p.address+"/api/v1/query?query="+url.QueryEscape(query))
	if err == nil {
		err = json.Unmarshal([]byte(text), &answer)
	}
	if err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("%s: %s", query, answer.Error)
	}
	found := make([]map[string]string, len(answer.Data.Result))
	for i, series := range answer.Data.Result {
		found[i] = series.Metric
	}
	return found, nil
}

// dashboardQueries are those of docs/oncall/dashboard.json, by the titles of their panels, for all jobs.
func dashboardQueries(t *testing.T) map[string]string {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "docs/oncall/dashboard.json"))
	if err == nil {
		err = json.Unmarshal(text, &dashboard)
	}
	if err != nil {
		t.Fatal(err)
	}
	queries := map[string]string{}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries[panel.Title] = strings.ReplaceAll(target.Expr, "$job", ".*")
		}
	}
	return queries
}
