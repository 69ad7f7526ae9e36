package operator_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// inspectedOperator is an operator of one framework whose dependencies have an inspector at the address.
func inspectedOperator(t *testing.T, log io.Writer, address string) (*operator.Operator, *operator.Dependencies) {
	t.Helper()
	deps, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: "test", RESTConfig: &rest.Config{Host: "http://127.0.0.1:1"}, Scheme: clientgoscheme.Scheme, Logger: logTo(t, log), InspectorAddress: address,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(deps.Close)
	f, err := deps.NewFramework(framework.Config{
		Source: pushed(t, "websites"), ResourceRouter: routerOf(t, &resource{}), DisableFinalizer: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	o, err := operator.New(operator.Config{Name: "test", Logger: logTo(t, log), Frameworks: []*framework.Framework{f}, Inspector: deps.Inspector})
	if err != nil {
		t.Fatal(err)
	}
	return o, deps
}

func TestInspectorShowsTheFrameworksWhileTheOperatorRuns(t *testing.T) {
	log := &journal{}
	o, _ := inspectedOperator(t, log, "127.0.0.1:0")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	operatortest.Eventually(t, "the inspector is served", func() bool { return o.InspectorAddr() != nil })
	httpClient := &http.Client{Transport: &http.Transport{}}
	defer httpClient.CloseIdleConnections()
	url := "http://" + o.InspectorAddr().String() + inspector.Path
	operatortest.Eventually(t, "the reconciliation of the object is known", func() bool {
		answer, err := httpClient.Get(url + "api/v1/overview")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		var overview inspector.Overview
		if err := json.NewDecoder(answer.Body).Decode(&overview); err != nil {
			t.Fatal(err)
		}
		return overview.Operator == "test" && len(overview.Frameworks) == 1 && overview.Frameworks[0].Sources[0].Name == "websites"
	})

	// A live page does not hold up the end.
	stream, err := httpClient.Get(url + "events")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	if want := "serving the inspector operator=test address=" + o.InspectorAddr().String(); !log.contains(want) {
		t.Errorf("the log lacks %q: %v", want, log.all())
	}
}

func TestTakenPortOfTheInspectorIsAnErrorBeforeAnythingElse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	o, _ := inspectedOperator(t, io.Discard, listener.Addr().String())
	err = o.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "listen for the inspector") || !strings.Contains(err.Error(), "choose another address") {
		t.Errorf("want an error about the address, got %v", err)
	}
}

func TestInspectorIsOffByDefault(t *testing.T) {
	o, deps := inspectedOperator(t, io.Discard, "")
	if deps.Inspector != nil || o.InspectorAddr() != nil {
		t.Error("there is an inspector that nobody asked for")
	}
}
