package operatortest_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// counter is a server that is reached in no time.
type counter struct{ arrived int }

func (c *counter) RoundTrip(*http.Request) (*http.Response, error) {
	c.arrived++
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestFaultsThatTakeTimeEndWithTheRequest(t *testing.T) {
	const deadline = 10 * time.Second
	for _, test := range []struct {
		fault   operatortest.Fault
		took    time.Duration
		err     error
		arrived int
	}{
		{operatortest.Delay(3 * time.Second), 3 * time.Second, nil, 1},
		{operatortest.Delay(time.Minute), deadline, context.DeadlineExceeded, 0},
		{operatortest.DelayUntil(nil), deadline, context.DeadlineExceeded, 0},
		{operatortest.TimeOut(), deadline, context.DeadlineExceeded, 0},
		{operatortest.TimeOutAfter(), deadline, context.DeadlineExceeded, 1},
	} {
		t.Run(test.fault.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				faults := operatortest.NewFaults()
				faults.At(1, test.fault)
				server := &counter{}
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				req, err := http.NewRequestWithContext(ctx, http.MethodDelete, "http://server/api/v1/namespaces/a", nil)
				if err != nil {
					t.Fatal(err)
				}

				start := time.Now()
				resp, err := faults.Transport(server).RoundTrip(req)
				if err == nil {
					err = resp.Body.Close()
				}
				if !errors.Is(err, test.err) {
					t.Errorf("got error %v, want %v", err, test.err)
				}
				if took := time.Since(start); took != test.took {
					t.Errorf("took %s, want %s", took, test.took)
				}
				if server.arrived != test.arrived {
					t.Errorf("%d requests arrived, want %d", server.arrived, test.arrived)
				}
			})
		})
	}
}

// worker is a server that takes a second for a request, unless the request ends first.
type worker struct{ done int }

func (w *worker) RoundTrip(req *http.Request) (*http.Response, error) {
	select {
	case <-time.After(time.Second):
		w.done++
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

func TestWhatFailsAfterIsCarriedOutAlthoughTheClientHasGone(t *testing.T) {
	for _, fault := range []operatortest.Fault{operatortest.FailAfter(), operatortest.TimeOutAfter()} {
		t.Run(fault.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				faults := operatortest.NewFaults()
				faults.At(1, fault)
				server := &worker{}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
				defer cancel()
				req, err := http.NewRequestWithContext(ctx, http.MethodDelete, "http://server/api/v1/namespaces/a", nil)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := faults.Transport(server).RoundTrip(req); err == nil {
					t.Error("the client got an answer")
				}
				if server.done != 1 {
					t.Errorf("%d requests were carried out, want 1", server.done)
				}
			})
		})
	}
}
