package command_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestProfilesAndTheLevelOfTheLogAreServedOnLoopback(t *testing.T) {
	kube := operatortest.Start(t)
	found := make(chan string, 1)
	stderr := &awaited{patterns: []*regexp.Regexp{regexp.MustCompile(`serving profiles and the level of the log .*address=(\S+)`)}, found: found}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	config := gardener()
	config.KeepGlobalLoggers = true
	go func() {
		ended <- command.Execute(ctx, config, []string{"run", "--kubeconfig", kube.Kubeconfig(), "--namespace", kube.Namespace(t), "--crds", "off",
			"--debug-address", "127.0.0.1:0", "--listen-address", "", "--inspector-address", "", "--log-format", "text"}, io.Discard, stderr)
	}()
	address := <-found
	ask := func(method, path, host, body string) (int, string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	for _, tt := range []struct {
		method, path, host, body string
		code                     int
		want                     string
	}{
		{"GET", "/debug/log-level", address, "", http.StatusOK, "info\n"},
		{"PUT", "/debug/log-level", address, "debug\n", http.StatusOK, ""},
		{"GET", "/debug/log-level", "localhost", "", http.StatusOK, "debug\n"},
		{"PUT", "/debug/log-level", address, "loud", http.StatusBadRequest, `Level must be debug, info, warning or error, is "loud"`},
		{"GET", "/debug/log-level", "rebound.example.com", "", http.StatusForbidden, "names of loopback only"},
		{"GET", "/debug/log-level", "10.1.2.3", "", http.StatusForbidden, "names of loopback only"},
		{"GET", "/debug/pprof/", address, "", http.StatusOK, "goroutine"},
		{"GET", "/debug/pprof/goroutine?debug=1", address, "", http.StatusOK, "goroutine profile"},
	} {
		if code, text := ask(tt.method, tt.path, tt.host, tt.body); code != tt.code || !strings.Contains(text, tt.want) {
			t.Errorf("%s %s of %s: got %d %q, want %d %q", tt.method, tt.path, tt.host, code, text, tt.code, tt.want)
		}
	}
	cancel()
	if code := <-ended; code != command.ExitOK {
		t.Errorf("it ended with %d", code)
	}

	for _, beyond := range []string{":6060", "0.0.0.0:6060", "debug.example.com:6060"} {
		var told bytes.Buffer
		if code := command.Execute(t.Context(), config, []string{"run", "--debug-address", beyond}, io.Discard, &told); code != command.ExitUsage ||
			!strings.Contains(told.String(), "--debug-address") {
			t.Errorf("%s: exit code %d, %s", beyond, code, &told)
		}
	}
}
