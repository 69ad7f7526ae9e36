package target_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

var other = target.Key{Namespace: "platform", Name: "other"}

func TestNewNamesEachFaultyField(t *testing.T) {
	_, err := target.New(target.Config{
		Management: &rest.Config{Transport: http.DefaultTransport}, IdleTimeout: -1, MinRetry: time.Hour, Burst: -1,
	})
	if !errors.Is(err, informer.ErrInvalidConfig) {
		t.Fatalf("err = %v, want ErrInvalidConfig", err)
	}
	for _, want := range []string{
		"Deployments must be set", "Secrets must be set", "Logger must be set", "Management must not have a Transport",
		"IdleTimeout must not be negative", "MinRetry must not be longer than MaxRetry", "Burst, MaxKubeconfig and MaxResponse",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}

func TestAClusterIsSharedAndDroppedWhenNobodyUsesIt(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		c := b.cluster("prod", healthy)
		again, err := b.clusters.Acquire(c.Key(), other)
		if err != nil || again != c {
			t.Fatalf("the second user got %p, %v; want %p", again, err, c)
		}
		b.clusters.Release(c.Key(), other)
		b.clusters.Release(c.Key(), other)
		time.Sleep(2 * target.DefaultIdleTimeout)
		b.expect(c, target.Connected)

		b.clusters.Release(c.Key(), user)
		time.Sleep(target.DefaultIdleTimeout - time.Second)
		if again, err = b.clusters.Acquire(c.Key(), user); err != nil || again != c {
			t.Fatalf("a user that was back in time got %p, %v; want %p", again, err, c)
		}
		time.Sleep(2 * target.DefaultIdleTimeout)
		if err := c.Err(); err != nil {
			t.Fatalf("a cluster in use was dropped: %v", err)
		}

		b.clusters.Release(c.Key(), user)
		time.Sleep(target.DefaultIdleTimeout - time.Second)
		if err := c.Err(); err != nil {
			t.Errorf("it was dropped too early: %v", err)
		}
		time.Sleep(2 * time.Second)
		if _, err := b.request(t.Context(), c, "/api"); !errors.Is(err, target.ErrReleased) {
			t.Errorf("request to a dropped cluster: %v, want ErrReleased", err)
		}
		if health := b.clusters.Health(); len(health) != 0 {
			t.Errorf("health = %+v, want none", health)
		}
		probes := len(b.probed("prod"))
		time.Sleep(time.Hour)
		if got := len(b.probed("prod")); got != probes {
			t.Errorf("a dropped cluster was probed %d times", got-probes)
		}

		fresh, err := b.clusters.Acquire(c.Key(), user)
		if err != nil || fresh == c {
			t.Fatalf("after the drop: %p, %v", fresh, err)
		}
		b.expect(fresh, target.Connected)
	})
}

func TestADroppedClusterLeavesNoGoroutine(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		synctest.Wait()
		before := bubbleGoroutines()
		c := b.cluster("prod", dead)
		if err := c.Watch(user, configMaps("platform")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if bubbleGoroutines() <= before {
			t.Error("a cluster in use has no goroutine: the test sees nothing")
		}
		b.clusters.Release(c.Key(), user)
		time.Sleep(target.DefaultIdleTimeout + time.Second)
		synctest.Wait()
		if after := bubbleGoroutines(); after > before {
			t.Errorf("%d goroutines are left", after-before)
		}
	})
}

// bubbleGoroutines counts the goroutines of the bubble. Those of the runtime, which finalise what is garbage, come and go.
func bubbleGoroutines() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "synctest bubble")
}

func TestNothingWorksBeforeRunAndAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubble(t, nil)
		if _, err := b.clusters.Acquire(bubbleKey("prod"), user); !errors.Is(err, target.ErrNotRunning) {
			t.Errorf("before Run: %v, want ErrNotRunning", err)
		}
		for range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- b.clusters.Notices().Run(ctx) }()
			synctest.Wait()
			c := b.cluster("prod", healthy)
			b.expect(c, target.Connected)
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
			if err := c.Err(); !errors.Is(err, target.ErrNotRunning) {
				t.Errorf("Err after Run = %v, want ErrNotRunning", err)
			}
			if _, err := b.clusters.Acquire(bubbleKey("prod"), user); !errors.Is(err, target.ErrNotRunning) {
				t.Errorf("Acquire after Run: %v, want ErrNotRunning", err)
			}
		}
	})
}

func TestAllUsersOfAClusterShareItsRate(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		busy, quiet := b.cluster("busy", healthy), b.cluster("quiet", healthy)
		begun := time.Now()
		done := make(chan error)
		for range 4 {
			go func() {
				for range 35 {
					if _, err := b.request(context.Background(), busy, "/api"); err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		if _, err := b.request(t.Context(), quiet, "/api"); err != nil || time.Since(begun) != 0 {
			t.Errorf("another cluster's request: %v after %s", err, time.Since(begun))
		}
		for range 4 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		// 140 requests, of which 40 go at once and 20 each second.
		if took := time.Since(begun); took < 4900*time.Millisecond || took > 5100*time.Millisecond {
			t.Errorf("140 requests took %s, want 5 s", took)
		}
	})
}

func TestAnswersHaveALargestSize(t *testing.T) {
	long := func(*http.Request) (*http.Response, error) { return respond(200, strings.Repeat("x", 1001)) }
	inBubble(t, func(c *target.Config) { c.MaxResponse = 1000 }, func(t *testing.T, b *bubble) {
		c := b.cluster("prod", healthy)
		b.serve("prod", long)
		if _, err := b.request(t.Context(), c, "/api"); err == nil || !strings.Contains(err.Error(), "too large") {
			t.Errorf("err = %v, want that the answer is too large", err)
		}
		if _, err := b.request(t.Context(), c, "/api?watch=true"); err != nil {
			t.Errorf("a watch has no largest size: %v", err)
		}
	})
}

func TestRedirectsLeadNowhereElse(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		c := b.cluster("prod", healthy)
		for _, to := range []string{"https://169.254.169.254/latest", "http://localhost/", "https://prod.example.com/other"} {
			b.serve("prod", func(*http.Request) (*http.Response, error) {
				resp, err := respond(http.StatusFound, "")
				resp.Header.Set("Location", to)
				return resp, err
			})
			sent := b.requests("prod")
			if _, err := b.request(t.Context(), c, "/api"); err == nil || !strings.Contains(err.Error(), "refused") {
				t.Errorf("redirect to %s: %v", to, err)
			}
			if got := b.requests("prod") - sent; got != 1 {
				t.Errorf("redirect to %s: %d requests, want the first only", to, got)
			}
		}
	})
}

func TestAddressesWithAPathAreKept(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		var paths []string
		c := b.cluster("prod", func(r *http.Request) (*http.Response, error) {
			paths = append(paths, r.URL.String())
			return respond(200, `{"gitVersion":"v1"}`)
		})
		b.secret("prod", "https://rancher.example.com/k8s/clusters/c-1/")
		synctest.Wait()
		paths = nil
		if _, err := b.request(t.Context(), c, "/api/v1/namespaces/a%2Fb?limit=1"); err != nil {
			t.Fatal(err)
		}
		if want := "https://rancher.example.com/k8s/clusters/c-1/api/v1/namespaces/a%2Fb?limit=1"; len(paths) != 1 || paths[0] != want {
			t.Errorf("sent to %v, want %s", paths, want)
		}
	})
}

func TestMetrics(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		up, down := b.cluster("up", healthy), b.cluster("down", dead)
		_, _ = b.request(t.Context(), up, "/api")
		_, _ = b.request(t.Context(), down, "/api")
		b.expect(down, target.Unreachable)
		problems, err := testutil.GatherAndLint(b.registry)
		if err != nil || len(problems) > 0 {
			t.Errorf("promlint: %v %v", problems, err)
		}
		err = testutil.GatherAndCompare(b.registry, strings.NewReader(`
# HELP operatorkit_target_clusters Clusters that are in use, by state.
# TYPE operatorkit_target_clusters gauge
operatorkit_target_clusters{state="ClusterMissing"} 0
operatorkit_target_clusters{state="Connected"} 1
operatorkit_target_clusters{state="Connecting"} 0
operatorkit_target_clusters{state="CredentialRefused"} 0
operatorkit_target_clusters{state="KubeconfigInvalid"} 0
operatorkit_target_clusters{state="SecretMissing"} 0
operatorkit_target_clusters{state="Unreachable"} 1
# HELP operatorkit_target_requests_total Requests to clusters by result: 2xx to 5xx for answers, broken without one, refused when the cluster was known to be unreachable.
# TYPE operatorkit_target_requests_total counter
operatorkit_target_requests_total{result="2xx"} 1
operatorkit_target_requests_total{result="refused"} 1
`), "operatorkit_target_clusters", "operatorkit_target_requests_total")
		if err != nil {
			t.Error(err)
		}
		if n, err := testutil.GatherAndCount(b.registry, "operatorkit_target_rate_limiter_wait_seconds", "operatorkit_target_probes_total",
			"operatorkit_target_watches", "operatorkit_target_state_changes_total"); err != nil || n < 4 {
			t.Errorf("%d series, %v", n, err)
		}
	})
}
