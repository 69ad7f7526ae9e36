package operatortest

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// slowServer counts the writes that reach it, and takes its time for the n-th.
type slowServer struct {
	n       int
	mu      sync.Mutex
	arrived int
}

func (s *slowServer) RoundTrip(*http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.arrived++
	slow := s.arrived == s.n
	s.mu.Unlock()
	if slow {
		time.Sleep(time.Second) // of the test's clock: all others do what they can meanwhile
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestNoWriteOvertakesACrash(t *testing.T) {
	const n = 20
	for _, test := range []struct {
		mishap Mishap
		want   int
	}{
		{CrashBefore, n - 1},
		{CrashAfter, n},
	} {
		t.Run(test.mishap.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				faults := NewFaults()
				var ends []int
				faults.At(n, test.mishap.fault(func(r Request) { ends = append(ends, r.N) }))
				server := &slowServer{n: n}
				transport := faults.Transport(server)

				var group sync.WaitGroup
				for range 8 {
					group.Go(func() { writeUntilRefused(t, transport) })
				}
				group.Wait()

				if server.arrived != test.want {
					t.Errorf("%d writes arrived, want %d", server.arrived, test.want)
				}
				if got, want := fmt.Sprint(ends), fmt.Sprint([]int{n}); got != want {
					t.Errorf("the operator was ended at the writes %s, want %s", got, want)
				}
			})
		})
	}
}

// writeUntilRefused goes on until it sees the crash, or has written often enough to
// show that it does not.
func writeUntilRefused(t *testing.T, transport http.RoundTripper) {
	for range 10 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, "http://server/api/v1/nodes/a", nil)
		if err != nil {
			t.Error(err)
			return
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
	}
}
