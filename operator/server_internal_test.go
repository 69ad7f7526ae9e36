package operator

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/giantswarm/micrologger"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/logging"
)

// pipes is a listener on loopback with connections within the process, so that they use the time of
// a bubble.
type pipes struct{ conns chan net.Conn }

func (p *pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p.conns; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p *pipes) Close() error   { close(p.conns); return nil }
func (p *pipes) Addr() net.Addr { return local{}.LocalAddr() }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- local{server}
	return client
}

// local is a connection that came in on loopback.
type local struct{ net.Conn }

func (local) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080} }

// served serves both handlers of an operator, each as the operator does, until the end of the
// bubble.
func served(t *testing.T, frameworks ...*framework.Framework) (health, page *pipes, stop func()) {
	t.Helper()
	logger := quietly(t)
	i, err := inspector.New(inspector.Config{Name: "o", Logger: logger, PlanTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	i.Watch(frameworks...)
	o := &Operator{config: Config{Name: "o", Logger: logger, Registry: prometheus.NewRegistry()}}
	health, page = &pipes{make(chan net.Conn)}, &pipes{make(chan net.Conn)}
	servers := map[*pipes]*http.Server{health: newHTTPServer(o.handler(), nil, logger), page: newHTTPServer(i, nil, logger)}
	for listener, server := range servers {
		go func() { _ = server.Serve(listener) }()
	}
	return health, page, func() {
		for _, server := range servers {
			_ = server.Close()
		}
		time.Sleep(time.Minute) // connections of clients that were refused are kept for a moment
	}
}

func quietly(t *testing.T) micrologger.Logger {
	t.Helper()
	logger, err := logging.New(logging.Config{Writer: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return logger
}

func TestClientThatKeepsAServerWaitingIsCutOff(t *testing.T) {
	const get = "GET /inspector/ HTTP/1.1\r\nHost: localhost\r\n"
	for name, test := range map[string]struct {
		sends string
		after time.Duration
	}{
		"nothing comes":            {"", 10 * time.Second},
		"half a header comes":      {get, 10 * time.Second},
		"a body never comes":       {get + "Content-Length: 10\r\n\r\n", 30 * time.Second},
		"half a body comes":        {get + "Content-Length: 10\r\n\r\nhalf", 30 * time.Second},
		"a form never comes":       {strings.Replace(get, "GET /inspector/", "POST /inspector/api/v1/plan", 1) + "Content-Length: 10\r\n\r\n", 30 * time.Second},
		"a stream with no body":    {strings.Replace(get, "/inspector/", "/inspector/events", 1) + "Content-Length: 10\r\n\r\n", 30 * time.Second},
		"no further request comes": {get + "\r\n", 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				health, page, stop := served(t)
				defer stop()
				for what, listener := range map[string]*pipes{"health": health, "page": page} {
					conn := listener.dial()
					began := time.Now()
					go func() { _, _ = io.WriteString(conn, test.sends) }()
					// Longer than anything is to take.
					_ = conn.SetReadDeadline(began.Add(time.Hour))
					_, _ = io.Copy(io.Discard, conn)
					if took := time.Since(began); took < test.after || took > test.after+time.Second {
						t.Errorf("%s: the connection was closed after %s, want %s", what, took, test.after)
					}
					conn.Close()
				}
			})
		})
	}
}

func TestClientThatReadsNothingIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		health, page, stop := served(t)
		defer stop()
		for path, listener := range map[string]*pipes{"/healthz": health, "/inspector/": page, "/inspector/events": page} {
			conn := listener.dial()
			if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Minute)
			_ = conn.SetReadDeadline(time.Now().Add(time.Second))
			if n, err := io.Copy(io.Discard, conn); n > 0 || err != nil {
				t.Errorf("%s: after two minutes, %d bytes come: %v", path, n, err)
			}
			conn.Close()
		}
	})
}

func TestHeaderThatIsTooLargeIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		health, page, stop := served(t)
		defer stop()
		for what, listener := range map[string]*pipes{"health": health, "page": page} {
			conn := listener.dial()
			go func() {
				_, _ = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nCookie: %s\r\n\r\n", strings.Repeat("x", 128<<10))
			}()
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
				t.Errorf("%s: the answer is %v, %v", what, answer, err)
			}
			conn.Close()
		}
	})
}

func TestStreamOutlivesTheTimeOutsOfItsServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, page, stop := served(t)
		defer stop()
		conn := page.dial()
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET /inspector/events HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		var lines atomic.Int64
		go func() {
			for s := bufio.NewScanner(conn); s.Scan(); {
				if s.Text() == ": nothing new" {
					lines.Add(1)
				}
			}
		}()
		time.Sleep(time.Hour)
		synctest.Wait()
		// One in 15 seconds, as looks of half a second tell.
		if got := lines.Load(); got < 220 {
			t.Errorf("in an hour %d messages came", got)
		}
	})
}

func TestStreamOverHTTP2OutlivesItsSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger := quietly(t)
		i, err := inspector.New(inspector.Config{Name: "o", Logger: logger})
		if err != nil {
			t.Fatal(err)
		}
		var http2 http.Protocols
		http2.SetUnencryptedHTTP2(true)
		listener := &pipes{make(chan net.Conn)}
		server := newHTTPServer(i, nil, logger)
		server.Protocols = &http2
		go func() { _ = server.Serve(listener) }()
		dial := func(context.Context, string, string) (net.Conn, error) { return listener.dial(), nil }
		transport := &http.Transport{Protocols: &http2, DialContext: dial}
		defer func() {
			transport.CloseIdleConnections()
			_ = server.Close()
			time.Sleep(time.Minute)
		}()

		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/inspector/events", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		lines := 0
		for s := bufio.NewScanner(answer.Body); s.Scan(); {
			if s.Text() == ": nothing new" {
				lines++
			}
		}
		// One in 15 seconds, as looks of half a second tell.
		if answer.ProtoMajor != 2 || lines < 35 {
			t.Errorf("in ten minutes %d messages came over %s", lines, answer.Proto)
		}
	})
}

func TestWhoIsStillBeingAnsweredMakesAStopNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := make(chan struct{})
		slow := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			close(began)
			<-r.Context().Done()
		})
		listener := &pipes{make(chan net.Conn)}
		s := &server{what: "answers", http: newHTTPServer(slow, nil, quietly(t)), ended: make(chan error, 1)}
		go func() {
			_ = s.http.Serve(listener)
			s.ended <- nil
		}()
		conn := listener.dial()
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		<-began
		stopped := time.Now()
		if err := s.close(); err != nil {
			t.Errorf("the server is stopped: %v", err)
		}
		if took := time.Since(stopped); took < closeTimeout || took > closeTimeout+time.Second {
			t.Errorf("who is being answered has %s, want %s", took, closeTimeout)
		}
	})
}

func TestPlanMayTakeLongerThanItsServerGivesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := informer.NewPush("sites")
		if err := source.Update(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "home"}}); err != nil {
			t.Fatal(err)
		}
		f, err := framework.New(framework.Config{
			Name: "sites", Source: source, Logger: quietly(t), Resources: []framework.Resource{nothing{}},
			InitCtx: func(ctx context.Context, _ any) (context.Context, error) {
				time.Sleep(10 * time.Minute)
				return ctx, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, page, stop := served(t, f)
		defer stop()
		conn := page.dial()
		defer conn.Close()
		form := "framework=sites&name=home"
		_, err = fmt.Fprintf(conn, "POST /inspector/api/v1/plan HTTP/1.1\r\nHost: localhost\r\n"+
			"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", len(form), form)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("a plan of ten minutes is not answered: %v", err)
		}
		if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("the answer is %s: %s, %v", answer.Status, text, err)
		}
	})
}

// nothing is a resource that does nothing.
type nothing struct{}

func (nothing) Name() string                             { return "nothing" }
func (nothing) EnsureCreated(context.Context, any) error { return nil }
func (nothing) EnsureDeleted(context.Context, any) error { return nil }
