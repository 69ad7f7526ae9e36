package commandtest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/command/commandtest"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestMain(m *testing.M) { operatortest.VerifyTestMain(m) }

// greeter greets the ConfigMap "guest" in another one. One that is hasty remembers whom it has greeted before it has.
func greeter(hasty bool) command.Config {
	return command.Config{
		Name: "greeter", Version: "v1",
		New: func(_ context.Context, deps *operator.Dependencies) ([]*framework.Framework, error) {
			source, err := deps.NewSource(&corev1.ConfigMap{})
			if err != nil {
				return nil, err
			}
			f, err := deps.NewFramework(framework.Config{
				Name: "guests", Source: source, DisableFinalizer: true, Resources: []framework.Resource{&greeting{deps.Client, hasty}},
			})
			return []*framework.Framework{f}, err
		},
	}
}

type greeting struct {
	client client.Client
	hasty  bool
}

func (g *greeting) Name() string { return "greeting" }

func (g *greeting) EnsureCreated(ctx context.Context, obj any) error {
	guest := obj.(*corev1.ConfigMap)
	if guest.Name != "guest" || guest.Annotations["greeted"] != "" {
		return nil
	}
	note := func() error {
		return g.client.Patch(ctx, guest.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"greeted":"yes"}}}`)))
	}
	greet := func() error {
		err := g.client.Create(ctx, hello(guest.Namespace))
		return client.IgnoreAlreadyExists(err)
	}
	if g.hasty {
		note, greet = greet, note
	}
	if err := greet(); err != nil {
		return err
	}
	return note()
}

func (g *greeting) EnsureDeleted(context.Context, any) error { return nil }

func hello(namespace string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hello"}}
}

func guests(t *testing.T, start command.Config, args ...string) operatortest.Scenario {
	t.Helper()
	return operatortest.Scenario{
		Name:  "guests",
		Start: commandtest.Start(start, args...),
		Phases: []operatortest.Phase{{
			Name: "arrive", Do: operatortest.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "guest"}}),
			Until: func(ctx context.Context, user client.Client, namespace string) error {
				return user.Get(ctx, client.ObjectKeyFromObject(hello(namespace)), hello(namespace))
			},
		}},
		Objects: []client.Object{&corev1.ConfigMap{}},
		Config:  operatortest.Start(t).RESTConfig(),
	}
}

func TestAConfigurationWithFlagsDoesNotRunTwiceAtOnce(t *testing.T) {
	t.Parallel()
	config := greeter(false)
	config.Flags = func(flags *pflag.FlagSet) { flags.Bool("loud", false, "greet aloud") }
	kube := operatortest.Start(t)
	start := commandtest.Start(config)
	ctx, cancel := context.WithCancel(t.Context())
	ends := make(chan error, 2)
	for range 2 {
		go func() { ends <- start(ctx, kube.RESTConfig(), kube.Namespace(t)) }()
	}
	if err := <-ends; err == nil || !strings.Contains(err.Error(), "commandtest.StartEach, which makes a configuration for each run") {
		t.Errorf("the second run ends with %v", err)
	}
	cancel()
	if err := <-ends; err != nil {
		t.Error(err)
	}
	if err := start(ctx, kube.RESTConfig(), kube.Namespace(t)); err != nil {
		t.Errorf("one after the other: %v", err)
	}
}

func TestAWholeOperatorIsCrashedAtEachOfItsWrites(t *testing.T) {
	t.Parallel()
	report, err := operatortest.ReportOf(t.Context(), guests(t, greeter(false)), operatortest.Crashes)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Writes) != 2 || report.Crashes != 4 || report.Err() != nil {
		t.Errorf("%s: %v", report.Summary(), report.Err())
	}
}

func TestAWholeOperatorThatDoesNotSurviveItIsCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: the tests of operatortest have operators that are caught")
	}
	t.Parallel()
	stuck := guests(t, greeter(true))
	stuck.Timeout = 20 * time.Second // it does not come to its end
	report, err := operatortest.ReportOf(t.Context(), stuck, operatortest.Crashes)
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Err(); err == nil || !strings.Contains(err.Error(), "crash after write 1: PATCH configmaps ") {
		t.Errorf("got the failures %v, want one after the first write", err)
	}
}

func TestAnOperatorThatDoesNotStartSaysWhy(t *testing.T) {
	t.Parallel()
	config := greeter(false)
	config.New = func(context.Context, *operator.Dependencies) ([]*framework.Framework, error) {
		return nil, errors.New("no licence")
	}
	_, err := operatortest.ReportOf(t.Context(), guests(t, config), operatortest.Crashes)
	if err == nil || !strings.Contains(err.Error(), "no licence") {
		t.Errorf("got error %v, want one that says why", err)
	}
}

// failing is a test that keeps its errors.
type failing struct {
	testing.TB
	errors string
}

func (f *failing) Errorf(format string, args ...any) { f.errors += fmt.Sprintf(format, args...) }

func TestReconciliationsOfAWholeOperatorAreHeardWithoutARequest(t *testing.T) {
	t.Parallel()
	r := &failing{TB: t}
	operatortest.Quiet(r, guests(t, greeter(false))) // all ConfigMaps are guests, the marker too
	if !strings.Contains(r.errors, `is not quiet: `) || !strings.Contains(r.errors, " reconciliations: event=update framework=guests result=") ||
		strings.Contains(r.errors, "requests: ") {
		t.Errorf("want reconciliations of the marker and no requests, got: %s", r.errors)
	}
}

// noted is another system, which takes note of what it is sent.
type noted struct{}

func (noted) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Request: r, Header: http.Header{}, Body: http.NoBody}, nil
}

// caller calls another system for each guest.
type caller struct{ http *http.Client }

func (c *caller) Name() string { return "caller" }

func (c *caller) EnsureCreated(ctx context.Context, obj any) error {
	if obj.(*corev1.ConfigMap).Name != "guest" {
		return nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://elsewhere/guests/guest", http.NoBody)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func (c *caller) EnsureDeleted(context.Context, any) error { return nil }

func TestWhatTheOperatorSendsToOtherSystemsCountsAsItsWrites(t *testing.T) {
	t.Parallel()
	config := greeter(false)
	config.New = func(_ context.Context, deps *operator.Dependencies) ([]*framework.Framework, error) {
		source, err := deps.NewSource(&corev1.ConfigMap{})
		if err != nil {
			return nil, err
		}
		f, err := deps.NewFramework(framework.Config{
			Name: "guests", Source: source, DisableFinalizer: true,
			Resources: []framework.Resource{&caller{deps.HTTPClient(&http.Client{Transport: noted{}})}, &greeting{deps.Client, false}},
		})
		return []*framework.Framework{f}, err
	}
	report, err := operatortest.ReportOf(t.Context(), guests(t, config), operatortest.Crashes)
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(report.Writes); !strings.Contains(text, "PUT") || report.Err() != nil {
		t.Errorf("%v: the request to the other system is not among the writes %s", report.Err(), text)
	}
}
