package target_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

func TestRequestsThatWaitForTheRateEndWhenTheClusterIsFoundDead(t *testing.T) {
	inBubble(t, func(c *target.Config) { c.QPS, c.Burst = 0.01, 1 }, func(t *testing.T, b *bubble) {
		c := b.cluster("prod", healthy)
		b.serve("prod", dead)
		done := make(chan error)
		for range 3 {
			go func() {
				_, err := b.request(context.Background(), c, "/api")
				done <- err
			}()
		}
		begun := time.Now()
		for range 3 {
			if err := <-done; err == nil {
				t.Error("a request to a dead cluster succeeded")
			}
		}
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("requests were held for %s", took)
		}
	})
}

func TestARequestThatCanNotBeSentInTimeSaysSo(t *testing.T) {
	inBubble(t, func(c *target.Config) { c.QPS, c.Burst = 0.01, 1 }, func(t *testing.T, b *bubble) {
		c := b.cluster("prod", healthy)
		if _, err := b.request(t.Context(), c, "/api"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.request(ctx, c, "/api"); err == nil || !strings.Contains(err.Error(), "wait for the rate limit of cluster platform/prod") {
			t.Errorf("err = %v", err)
		}
	})
}

func TestAWatchThatDoesNotBeginTimesOut(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		begins := make(chan struct{})
		c := b.cluster("prod", func(r *http.Request) (*http.Response, error) {
			switch r.URL.Path {
			case "/begins":
				return endless(r, begins)
			case "/silent":
				return silent(r)
			}
			return healthy(r)
		})
		begun := time.Now()
		var late net.Error
		if _, err := b.request(t.Context(), c, "/silent?watch=true"); !errors.As(err, &late) || !late.Timeout() || time.Since(begun) != target.DefaultRequestTimeout {
			t.Errorf("err = %v after %s", err, time.Since(begun))
		}
		time.AfterFunc(time.Hour, func() { close(begins) })
		begun = time.Now()
		if _, err := b.request(t.Context(), c, "/begins?watch=true"); err != nil || time.Since(begun) != time.Hour {
			t.Errorf("a watch that goes on for an hour ended after %s: %v", time.Since(begun), err)
		}
	})
}

// endless returns an answer that begins at once and ends with the channel or the request.
func endless(r *http.Request, end <-chan struct{}) (*http.Response, error) {
	resp, err := respond(http.StatusOK, "")
	resp.Body = struct {
		io.Reader
		io.Closer
	}{readerFunc(func([]byte) (int, error) {
		select {
		case <-end:
			return 0, io.EOF
		case <-r.Context().Done():
			return 0, r.Context().Err()
		}
	}), resp.Body}
	return resp, err
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestARotationEndsWatchesAndLetsRequestsFinish(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		release := make(chan struct{})
		c := b.cluster("prod", func(r *http.Request) (*http.Response, error) {
			if r.URL.Path != "/slow" {
				return healthy(r)
			}
			return endless(r, release)
		})
		watch, request := make(chan error, 1), make(chan error, 1)
		go func() { _, err := b.request(context.Background(), c, "/slow?watch=true"); watch <- err }()
		go func() { _, err := b.request(context.Background(), c, "/slow"); request <- err }()
		synctest.Wait()
		b.secret("prod", "https://elsewhere.example.com")
		synctest.Wait()
		if err := <-watch; err != nil {
			t.Errorf("the watch ended with %v, want an end as a server makes it", err)
		}
		select {
		case err := <-request:
			t.Errorf("the request was ended: %v", err)
		default:
		}
		close(release)
		if err := <-request; err != nil {
			t.Errorf("the request: %v", err)
		}
	})
}

func TestWatchesDoNotTryOnTheirOwn(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		c := b.cluster("prod", dead)
		b.expect(c, target.Unreachable)
		if err := c.Watch(user, configMaps("platform")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if n := b.requests("prod"); n != 0 {
			t.Errorf("%d requests to a dead cluster", n)
		}
	})
}
