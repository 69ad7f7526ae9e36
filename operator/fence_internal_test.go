package operator

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestFenceIsClosedALeaseAfterTheBeginningOfTheLastRenewal(t *testing.T) {
	start := time.Now()
	fence := NewFence()
	fence.bind(15*time.Second, true)
	fence.renewed(start)
	tests := []struct {
		name string
		now  time.Time
		open bool
	}{
		{"at once", start, true},
		{"just before the end", start.Add(15*time.Second - 1), true},
		{"at the end", start.Add(15 * time.Second), false},
		{"long after", start.Add(time.Hour), false},
		// Without a reading of the monotonic clock: it stood still.
		{"after a sleep of the machine", start.Round(0).Add(time.Minute), false},
		{"after the clock was set back", start.Add(-time.Hour), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fence.now = func() time.Time { return tt.now }
			if err := fence.Check(); tt.open != (err == nil) || !tt.open && !errors.Is(err, ErrLeaseLost) {
				t.Errorf("Check() = %v, want open = %v", err, tt.open)
			}
		})
	}
}

func TestFenceIsOpenOnlyWhileTheLeaseIsHeld(t *testing.T) {
	fence := NewFence()
	check := func(when, want string) {
		t.Helper()
		err := fence.Check()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: Check() = %v, want %q", when, err, want)
		}
	}
	check("no operator", "the fence belongs to no operator: set it in LeaderElectionConfig.Fence")
	fence.bind(time.Minute, true)
	check("before leading", "this replica does not hold it")
	fence.renewed(fence.now())
	check("leading", "")
	fence.close()
	check("given up", "this replica does not hold it")
	fence.lose()
	fence.renewed(fence.now())
	check("lost", "this replica held it before")

	fence = NewFence()
	fence.bind(0, false)
	check("without an election", "")
}

// answering answers every request, and remembers it.
type answering struct{ requests []string }

func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	a.requests = append(a.requests, r.Method)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestFencedTransportLetsWhoDoesNotLeadYetReadAndRefusesAllOnceTheLeaseMayHaveEnded(t *testing.T) {
	tests := []struct {
		method, query string
		writes        bool
	}{
		{"GET", "", false}, {"HEAD", "", false}, {"OPTIONS", "", false},
		{"POST", "", true}, {"PUT", "", true}, {"PATCH", "", true}, {"DELETE", "", true},
		{"PATCH", "?dryRun=All", false}, {"PATCH", "?dryRun=", true}, {"PATCH", "?force=true", true},
	}
	for _, tt := range tests {
		t.Run(tt.method+tt.query, func(t *testing.T) {
			fence, next := NewFence(), &answering{}
			fence.bind(time.Minute, true)
			transport := fence.Transport(next)
			send := func() error {
				request, err := http.NewRequestWithContext(t.Context(), tt.method, "http://localhost/api"+tt.query, http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				response, err := transport.RoundTrip(request)
				if err == nil {
					err = response.Body.Close()
				}
				return err
			}
			if err := send(); tt.writes != errors.Is(err, ErrLeaseLost) {
				t.Errorf("closed: %v", err)
			}
			if tt.writes && len(next.requests) > 0 {
				t.Error("the request was sent although the fence is closed")
			}
			fence.renewed(time.Now())
			if err := send(); err != nil {
				t.Errorf("open: %v", err)
			}
			fence.renewed(time.Now().Add(-time.Minute))
			if err := send(); !errors.Is(err, ErrLeaseLost) {
				t.Errorf("run out: want ErrLeaseLost, got %v", err)
			}
		})
	}
}

func TestR17RequestsToEveryClusterAreBehindTheFence(t *testing.T) {
	for name, wrap := range map[string]func(types.NamespacedName, http.RoundTripper) http.RoundTripper{
		"wrapped": func(_ types.NamespacedName, next http.RoundTripper) http.RoundTripper { return next },
		"plain":   nil,
	} {
		fence, next := NewFence(), &answering{}
		fence.bind(time.Minute, true)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/api", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		transport := fence.TransportTo(wrap)(types.NamespacedName{Name: "east"}, next)
		if _, err := transport.RoundTrip(request); !errors.Is(err, ErrLeaseLost) || len(next.requests) > 0 {
			t.Errorf("%s: want ErrLeaseLost and no request, got %v and %v", name, err, next.requests)
		}
	}
}

func TestR17WhatThePageAsksForIsBehindTheFenceWhereItWrites(t *testing.T) {
	for name, lost := range map[string]bool{"does not lead yet": false, "has lost the lease": true} {
		fence := NewFence()
		fence.bind(time.Minute, true)
		if lost {
			fence.lose()
		}
		for request, writes := range map[string]bool{
			"POST /apis/authentication.k8s.io/v1/tokenreviews": false,
			"GET /api/v1/namespaces/shop/pods":                 false,
			"POST /api/v1/namespaces/shop/configmaps":          true,
			"POST /containers/create":                          true,
		} {
			method, path, _ := strings.Cut(request, " ")
			page := beyondFence(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				sent, err := http.NewRequestWithContext(r.Context(), method, "http://localhost"+path, http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				if err := fence.CheckRequest(sent); writes != errors.Is(err, ErrLeaseLost) {
					t.Errorf("a replica that %s: %s of the page: %v", name, request, err)
				}
			}))
			page.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/inspector/object", http.NoBody))
		}
	}
}

func TestAFenceIsClosedAsLongAsOneThatItRequiresIs(t *testing.T) {
	fence, required := NewFence(), NewFence()
	for _, f := range []*Fence{fence, required} {
		f.bind(time.Minute, true)
		f.renewed(f.now())
	}
	fence.require(required)
	if err := fence.Check(); err != nil {
		t.Errorf("both leases are held: %v", err)
	}
	required.close()
	if err := fence.Check(); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("the other lease is not held: want ErrLeaseLost, got %v", err)
	}
	if fence.isLost() {
		t.Error("it counts as lost, and can open again")
	}
	required.lose()
	if !fence.isLost() {
		t.Error("the other lease is lost, and the fence is not")
	}
	fence.dispense(required)
	if err := fence.Check(); err != nil || fence.isLost() {
		t.Errorf("the other lease does not matter any more: %v", err)
	}
}
