package operator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/giantswarm/micrologger"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/logging"
)

// The limits of a server. The inspector gives some answers more time: plans and graphs, and
// streams, which have no end.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = time.Minute
	idleTimeout       = 2 * time.Minute
	maxHeader         = 64 << 10 // bytes
	maxBody           = 64 << 10 // bytes
)

// closeTimeout is how long requests in progress may take once everything else has stopped.
const closeTimeout = 5 * time.Second

// server serves one thing over HTTP.
type server struct {
	what  string
	http  *http.Server
	ended chan error
}

// listen serves health and metrics, if there is an address for them.
func (o *Operator) listen(failed func()) (*server, error) {
	if o.config.ListenAddress == "" {
		return &server{}, nil
	}
	s, err := o.serve("health and metrics", o.config.ListenAddress, o.handler(), nil, &o.addr, failed)
	if err != nil {
		return nil, fmt.Errorf("%w: choose another ListenAddress, or none", err)
	}
	return s, nil
}

// serve binds the address, stores it in bound, and serves in the background, by TLS if there is a
// configuration for it. failed is called if serving ends before close.
func (o *Operator) serve(what, address string, handler http.Handler, tlsConfig *tls.Config, bound *atomic.Pointer[net.Addr], failed func()) (*server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", what, err)
	}
	addr := listener.Addr()
	bound.Store(&addr)
	s := &server{
		what:  what,
		http:  newHTTPServer(handler, tlsConfig, o.config.Logger),
		ended: make(chan error, 1),
	}
	serve := func() error { return s.http.Serve(listener) }
	if tlsConfig != nil {
		serve = func() error { return s.http.ServeTLS(listener, "", "") }
	}
	go func() {
		err := serve()
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		} else {
			failed()
		}
		s.ended <- err
	}()
	o.log("serving "+what, "address", addr.String())
	return s, nil
}

// newHTTPServer returns a server that a client can't keep busy.
func newHTTPServer(handler http.Handler, tlsConfig *tls.Config, logger micrologger.Logger) *http.Server {
	return &http.Server{
		Handler:           http.MaxBytesHandler(handler, maxBody),
		TLSConfig:         tlsConfig,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(logging.Slog(logger).Handler(), slog.LevelWarn),
	}
}

// close ends serving and returns the reason if it ended earlier. Answers still in progress after
// closeTimeout are cut off.
func (s *server) close() error {
	if s.http == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	err := s.http.Shutdown(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		err = s.http.Close()
	case err != nil:
		err = errors.Join(err, s.http.Close())
	}
	if err = errors.Join(<-s.ended, err); err != nil {
		return fmt.Errorf("serve %s: %w", s.what, err)
	}
	return nil
}

func (o *Operator) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", o.healthz)
	mux.HandleFunc("GET /readyz", o.readyz)
	metrics := promhttp.HandlerFor(o.config.Registry, promhttp.HandlerOpts{
		ErrorLog:      slog.NewLogLogger(logging.Slog(o.config.Logger).Handler(), slog.LevelError),
		ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: o.config.OpenMetrics,
	})
	if o.authorizer != nil {
		metrics = beyondFence(inspector.Authorized(o.authorizer, metrics, func(err error) {
			o.config.Logger.Log("level", "error", "message", "can't tell who may read the metrics", "operator", o.config.Name, "error", err.Error())
		}))
	}
	mux.Handle("GET /metrics", metrics)
	return mux
}

// healthz answers 503 if the process should be restarted: the lease is lost, a part ignores the end
// of its context, or a worker is in one step for longer than StepTimeout without waiting on
// purpose.
func (o *Operator) healthz(w http.ResponseWriter, _ *http.Request) {
	var faults string
	if o.election != nil && o.config.LeaderElection.Fence.isLost() {
		faults += "the lease is lost\n"
	}
	if o.stuck.Load() {
		faults += "something ignores that it was told to end\n"
	}
	for _, f := range o.config.Frameworks {
		for _, a := range f.Activities() {
			if !a.Shadow && a.Stuck > o.config.StepTimeout {
				faults += fmt.Sprintf("framework %q: %s, which is longer than %s\n", f.Name(), a, o.config.StepTimeout)
			}
		}
	}
	answerFor(w, faults)
}

// readyz answers 200 if the sources are synced, in contact and not degraded, on every replica, and
// otherwise 503 with the reasons.
func (o *Operator) readyz(w http.ResponseWriter, _ *http.Request) {
	var missing string
	for _, crd := range o.unserved() {
		missing += fmt.Sprintf("definition %s is not served yet\n", crd.Name)
	}
	for _, s := range o.sources {
		status := s.Status()
		silence := time.Since(status.LastContact)
		switch {
		case !status.Synced:
			missing += fmt.Sprintf("source %s is not synced", s.Name())
		case status.LastError != nil && silence > o.config.ContactTimeout:
			missing += fmt.Sprintf("source %s is out of contact for %s", s.Name(), silence.Round(time.Second))
		case status.Degraded != nil:
			missing += fmt.Sprintf("source %s: %s\n", s.Name(), status.Degraded)
			continue
		default:
			continue
		}
		if status.LastError != nil {
			missing += fmt.Sprintf(": %s", status.LastError)
		}
		missing += "\n"
	}
	answerFor(w, missing)
}

// answerFor answers 200, or 503 with the faults in amiss.
func answerFor(w http.ResponseWriter, amiss string) {
	if amiss != "" {
		answer(w, http.StatusServiceUnavailable, amiss)
		return
	}
	answer(w, http.StatusOK, "ok\n")
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// A client that has gone needs no answer.
	_, _ = w.Write([]byte(text))
}
