package target_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

func TestADeadClusterIsProbedLessAndLessOften(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		c := b.cluster("prod", dead)
		b.expect(c, target.Unreachable)
		time.Sleep(10 * time.Minute)

		probes := b.probed("prod")
		pause := time.Second
		for i := 1; i < len(probes); i++ {
			got := probes[i] - probes[i-1]
			if got < pause*8/10-time.Millisecond || got > pause*12/10+time.Millisecond {
				t.Errorf("pause %d is %s, want %s ±20 %%", i, got, pause)
			}
			pause = min(2*pause, time.Minute)
		}
		if len(probes) < 12 || len(probes) > 20 {
			t.Errorf("%d probes in ten minutes: %v", len(probes), probes)
		}
	})
}

func TestRequestsToADeadClusterFailAtOnceAndAreNotSent(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		c := b.cluster("prod", silent)
		begun := time.Now()
		_, err := b.request(t.Context(), c, "/api/v1/pods")
		if unreachable(t, err).State != target.Unreachable {
			t.Errorf("err = %v", err)
		}
		if took := time.Since(begun); took > target.DefaultConnectTimeout {
			t.Errorf("the request before the first answer was held for %s, longer than the probe", took)
		}

		sent, begun := b.requests("prod"), time.Now()
		for range 100 {
			_, err = b.request(t.Context(), c, "/api/v1/pods")
			u := unreachable(t, err)
			if u.Cluster != bubbleKey("prod") || u.Since.IsZero() || u.NextTry.Before(time.Now()) || u.Cause == nil {
				t.Fatalf("error = %+v", u)
			}
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("100 requests to a dead cluster took %s", took)
		}
		if now := b.requests("prod"); now != sent {
			t.Errorf("%d requests were sent to a dead cluster", now-sent)
		}
		if !errors.Is(c.Err(), target.ErrUnreachable) {
			t.Errorf("Err = %v", c.Err())
		}
	})
}

// TestClientsDoNotRepeatRequestsToADeadCluster has causes for which client-go repeats a request.
func TestClientsDoNotRepeatRequestsToADeadCluster(t *testing.T) {
	for name, cause := range map[string]error{
		"reset":  &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)},
		"closed": net.ErrClosed,
		"lost":   errors.New("http2: client connection lost"),
		"away":   errors.New("http2: server sent GOAWAY and closed the connection"),
		"end":    io.ErrUnexpectedEOF,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, b *bubble) {
				c := b.cluster("prod", func(*http.Request) (*http.Response, error) { return nil, cause })
				b.expect(c, target.Unreachable)
				restClient, err := rest.UnversionedRESTClientFor(unversioned(c.RESTConfig()))
				if err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				_ = unreachable(t, restClient.Get().AbsPath("/api").Do(t.Context()).Error())
				if took := time.Since(begun); took != 0 {
					t.Errorf("the request took %s", took)
				}
			})
		})
	}
}

func unversioned(config *rest.Config) *rest.Config {
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return config
}

func TestADeadClusterDelaysNoOther(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		gone, others := b.cluster("gone", healthy), []*target.Cluster{b.cluster("one", healthy), b.cluster("two", healthy)}
		b.serve("gone", silent)
		go func() { _, _ = b.request(context.Background(), gone, "/api") }()
		synctest.Wait()

		begun := time.Now()
		for range 10 {
			for _, c := range others {
				if code, err := b.request(t.Context(), c, "/api"); err != nil || code != http.StatusOK {
					t.Fatalf("%s: %d, %v", c.Key(), code, err)
				}
			}
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("requests to clusters that answer took %s", took)
		}
	})
}

func TestAClusterThatAnswersAgainIsTold(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		c := b.cluster("prod", healthy)
		b.expect(c, target.Connected)
		b.serve("prod", dead)
		if _, err := b.request(t.Context(), c, "/api"); !errors.Is(err, errDead) {
			t.Errorf("err = %v, want that of the connection", err)
		}
		time.Sleep(2 * time.Second)
		b.expect(c, target.Unreachable)
		lost := notice(b)
		if lost == nil || lost.Occasion != target.StateChanged || lost.State != target.Unreachable || lost.Cluster != c.Key() {
			t.Errorf("notice of the loss = %+v", lost)
		}
		since := c.Condition().LastTransitionTime

		time.Sleep(10 * time.Minute)
		if got := c.Condition(); got.Status != metav1.ConditionFalse || got.LastTransitionTime != since || !strings.Contains(got.Message, errDead.Error()) {
			t.Errorf("condition = %+v", got)
		}
		b.serve("prod", healthy)
		time.Sleep(target.DefaultMaxRetry * 12 / 10)
		b.expect(c, target.Connected)
		if back := notice(b); back == nil || back.State != target.Connected {
			t.Errorf("notice of the return = %+v", back)
		}
		if code, err := b.request(t.Context(), c, "/api"); err != nil || code != http.StatusOK {
			t.Errorf("request after the return: %d, %v", code, err)
		}
	})
}

// notice returns the newest notice of the user.
func notice(b *bubble) *target.Notice {
	obj, exists, err := b.clusters.Notices().Get(user)
	if err != nil || !exists {
		return nil
	}
	return obj.(*target.Notice)
}

func TestASlowRequestDoesNotCloseTheCluster(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		c := b.cluster("prod", func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/slow" {
				return silent(r)
			}
			return healthy(r)
		})
		before := len(b.probed("prod"))
		begun := time.Now()
		_, err := b.request(t.Context(), c, "/slow")
		var late net.Error
		if !errors.As(err, &late) || !late.Timeout() || time.Since(begun) != target.DefaultRequestTimeout {
			t.Errorf("err = %v after %s, want a time-out after %s", err, time.Since(begun), target.DefaultRequestTimeout)
		}
		b.expect(c, target.Connected)
		if after := len(b.probed("prod")); after != before+1 {
			t.Errorf("%d probes after the time-out, want 1", after-before)
		}
	})
}

// TestOneBrokenAPIDoesNotCloseTheCluster has one API of a cluster out of order, as an aggregated one often is.
func TestOneBrokenAPIDoesNotCloseTheCluster(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		c := b.cluster("prod", func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/broken" {
				return respond(http.StatusServiceUnavailable, "")
			}
			return healthy(r)
		})
		before := len(b.probed("prod"))
		for range 100 {
			if code, err := b.request(t.Context(), c, "/broken"); err != nil || code != http.StatusServiceUnavailable {
				t.Fatalf("%d, %v", code, err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		b.expect(c, target.Connected)
		if probes := len(b.probed("prod")) - before; probes < 5 || probes > 11 {
			t.Errorf("%d probes in 10 s, want about one each second", probes)
		}
	})
}

func TestRequestsUnderWayEndWhenTheClusterIsFoundDead(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		c := b.cluster("prod", healthy)
		b.serve("prod", silent)
		type result struct {
			err  error
			took time.Duration
		}
		results := make(chan result)
		begun := time.Now()
		for range 5 {
			go func() {
				_, err := b.request(context.Background(), c, "/api")
				results <- result{err, time.Since(begun)}
			}()
		}
		synctest.Wait()
		b.serve("prod", dead)
		_, _ = b.request(t.Context(), c, "/api")
		for range 5 {
			r := <-results
			_ = unreachable(t, r.err)
			if r.took > 2*time.Second {
				t.Errorf("a request was held for %s", r.took)
			}
		}
	})
}

func TestARefusedCredentialIsNotTriedQuickly(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		c := b.cluster("prod", healthy)
		time.Sleep(time.Second)
		b.serve("prod", answering(http.StatusUnauthorized))
		if code, err := b.request(t.Context(), c, "/api"); err != nil || code != http.StatusUnauthorized {
			t.Errorf("%d, %v", code, err)
		}
		b.expect(c, target.CredentialRefused)
		condition := c.Condition()
		if condition.Status != metav1.ConditionFalse || condition.Reason != string(target.CredentialRefused) ||
			!strings.Contains(condition.Message, "Secret platform/prod-kubeconfig, key \"value\"") {
			t.Errorf("condition = %+v", condition)
		}
		probes, sent := len(b.probed("prod")), b.requests("prod")
		for range 600 {
			_, err := b.request(t.Context(), c, "/api")
			if unreachable(t, err).State != target.CredentialRefused {
				t.Fatalf("err = %v", err)
			}
			time.Sleep(time.Second)
		}
		if got := len(b.probed("prod")) - probes; got > 20 || b.requests("prod") != sent {
			t.Errorf("%d probes and %d requests in ten minutes", got, b.requests("prod")-sent)
		}

		b.serve("prod", healthy)
		b.secret("prod", "https://elsewhere.example.com")
		b.expect(c, target.Connected)
	})
}

func TestASilentClusterIsNoticedWithoutRequests(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bubble) {
		c := b.cluster("prod", healthy)
		b.serve("prod", dead)
		time.Sleep(target.DefaultProbeInterval)
		b.expect(c, target.Unreachable)
	})
}

func TestWhatIsNoKubernetesIsUnreachable(t *testing.T) {
	for name, s := range map[string]server{
		"another page":     func(*http.Request) (*http.Response, error) { return respond(200, "<html>hello</html>") },
		"no version":       func(*http.Request) (*http.Response, error) { return respond(200, "{}") },
		"not found":        answering(http.StatusNotFound),
		"a bad gateway":    answering(http.StatusBadGateway),
		"a redirect":       answering(http.StatusFound),
		"an endless page":  func(*http.Request) (*http.Response, error) { return respond(200, strings.Repeat(" ", 1<<20)) },
		"a server's error": answering(http.StatusInternalServerError),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(_ *testing.T, b *bubble) { b.expect(b.cluster("prod", s), target.Unreachable) })
		})
	}
}

func TestAClusterThatHidesItsVersionIsConnected(t *testing.T) {
	inBubble(t, nil, func(_ *testing.T, b *bubble) {
		b.expect(b.cluster("prod", answering(http.StatusForbidden)), target.Connected)
	})
}
