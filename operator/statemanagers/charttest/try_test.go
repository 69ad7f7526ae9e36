package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// TestChartsAreComparedStepByStep tries small charts and a kustomization of our own, in which is what is easily done in another way than Helm does
// it: first as they are, then with requests of Helm that are changed on their way, and with a state manager that does not put drift right.
func TestChartsAreComparedStepByStep(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test-all: it starts three control planes")
	}
	var tampered atomic.Bool
	tamper := func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if tampered.Load() && r.Body != nil && strings.HasSuffix(r.URL.Path, "/configmaps/agent") {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return nil, err
				}
				body = bytes.ReplaceAll(body, []byte(`"info"`), []byte(`"much"`))
				r = r.Clone(r.Context())
				r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			}
			return next.RoundTrip(r)
		})
	}
	w, err := newWorld(t.Context(), config{
		timeout: time.Minute, settle: 2 * time.Second, log: io.Discard, progress: t.Output(), mode: v1alpha1.SyncModeContinuousWithDriftDetection, tamper: tamper,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	found, err := find("testdata")
	if err != nil {
		t.Fatal(err)
	}
	subjects := map[string]*subject{}
	try := func(s *subject) (*row, string) {
		t.Helper()
		if s.fault != nil {
			t.Fatal(s.fault)
		}
		r := &row{subject: s}
		if r.outcomes, err = w.try(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := writeTable(&out, []*row{r}); err != nil {
			t.Fatal(err)
		}
		return r, out.String()
	}
	for _, s := range found {
		subjects[s.name] = s
		if r, table := try(s); !r.isEqual() {
			t.Errorf("there are differences:\n%s", table)
		} else {
			t.Logf("\n%s", table)
		}
	}
	agent := *subjects["agent"]
	agent.updated = nil
	differs := func(step, what string) {
		t.Helper()
		r, table := try(&agent)
		first := slices.IndexFunc(r.outcomes, func(o *outcome) bool { return !o.isEqual() })
		if first < 0 || r.outcomes[first].step != step || !strings.Contains(table, what) {
			t.Errorf("the table does not say first %q of the step %s:\n%s", what, step, table)
		}
	}
	tampered.Store(true)
	differs("install", `agent, install: ConfigMap agent/agent: data.level is "info", and should be "much"`)
	tampered.Store(false)
	w.mode, w.timeout = v1alpha1.SyncModeContinuous, 10*time.Second
	// It notes another timeout in each release, once.
	if err := errors.Join(w.stopOperator(), w.startOperator(t.Context())); err != nil {
		t.Fatal(err)
	}
	differs("drift", `agent, drift: ConfigMap agent/agent: data.level is "info-by-hand", and should be "info"`)
}
