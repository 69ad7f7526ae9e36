package gateways_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/examples/internal/demotest"
)

// isTold checks what the story says.
func isTold(t *testing.T, story string) {
	t.Helper()
	for _, want := range []string{
		`\+ configmap/shop +created`,
		`(?s)✓ shop has its route.*✓ blog has its route.*✓ docs has its route.*✓ wiki has its route`,
		`everything has converged; the operator goes on until Ctrl-C`,
		`KUBECONFIG=`, `nats --server nats://127.0.0.1:\d+`, `curl http://127.0.0.1:\d+/registrations`, `http://127.0.0.1:\d+/metrics`,
	} {
		if !regexp.MustCompile(want).MatchString(story) {
			t.Errorf("the story lacks %s", want)
		}
	}
}

func TestCtrlCEndsTheDemoAndEverythingItStarted(t *testing.T) {
	d := demotest.Start(t)
	isTold(t, d.Story())
	_, registrations, _ := strings.Cut(d.Story(), "curl ")
	registrations, _, _ = strings.Cut(registrations, "\n")
	response, err := http.Get(registrations)
	if err != nil {
		t.Fatalf("the registry does not answer: %v\n%s", err, d.Story())
	}
	_ = response.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	d.Interrupt()
}
