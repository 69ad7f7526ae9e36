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
		`\+ gateway/shop +created`, `\+ route/shop.example.com +created`, `\+ configmap/shop +created`, `\+ registration/shop +created`,
		`~ configmap/shop .*data.certificate.sha256`,
		`~ route/shop.example.com +backend: 6.6.6.6:80 → 10.0.0.1:80`,
		`~ configmap/shop +data.backend: 6.6.6.6:80 → 10.0.0.1:80`,
		`~ registration/shop +address: 6.6.6.6:80 → 10.0.0.1:80`,
		`! event/blog +Warning NoCertificate: certificate blog does not exist`,
		`- gateway/docs +deleted`, `- configmap/docs +deleted`, `- route/docs.example.com +deleted`, `- registration/docs +deleted`,
		`- gateway/wiki +deleted`, `- configmap/wiki +deleted`, `- route/wiki.example.com +deleted`, `- registration/wiki +deleted`,
		`~ data.backend: "10.0.0.1:80" -> "10.0.1.1:80"`, `3 to collect as garbage`,
		`- configmap/blog +deleted`, `- route/blog.example.com +deleted`, `- registration/blog +deleted`,
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

func TestTheStoryIsToldOnAClusterToo(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it is the story of the other test, on three NATS servers")
	}
	story := demotest.Once(t, "--replicas=3")
	if !regexp.MustCompile(`(?s)cluster of three NATS servers.*done: everything has converged`).MatchString(story) {
		t.Error("the story lacks the cluster, or its end")
	}
}
