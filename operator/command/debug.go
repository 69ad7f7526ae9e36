package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/operator/logging"
)

// The limits of the server of --debug-address. A profile takes as long as is asked for.
const (
	debugHeaderTimeout = 10 * time.Second
	debugCloseTimeout  = 5 * time.Second
	debugMaxBody       = 1 << 10 // bytes
)

// debugPath is where what --debug-address serves begins, and logLevelPath the level of the log.
const (
	debugPath    = "/debug/pprof/"
	logLevelPath = "/debug/log-level"
)

// debugging is what --debug-address serves: profiles of the process, and the level of its log. The zero value is none.
type debugging struct {
	server *http.Server
	ended  chan error
}

// serveDebugging serves on an address, which has to be on loopback; an empty one is off.
func serveDebugging(address string, logger micrologger.Logger) (*debugging, error) {
	if address == "" {
		return &debugging{}, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for debugging: %w: choose another --debug-address, or none", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc(debugPath, pprof.Index)
	mux.HandleFunc(debugPath+"cmdline", pprof.Cmdline)
	mux.HandleFunc(debugPath+"profile", pprof.Profile)
	mux.HandleFunc(debugPath+"symbol", pprof.Symbol)
	mux.HandleFunc(debugPath+"trace", pprof.Trace)
	mux.HandleFunc("GET "+logLevelPath, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, logging.LevelOf(logger))
	})
	mux.HandleFunc("PUT "+logLevelPath, func(w http.ResponseWriter, r *http.Request) {
		level, err := io.ReadAll(r.Body)
		if err == nil {
			err = logging.SetLevel(logger, logging.Level(strings.TrimSpace(string(level))))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		logger.Log("level", "info", "message", "the level of the log is another one", "log-level", string(logging.LevelOf(logger)))
	})
	d := &debugging{ended: make(chan error, 1), server: &http.Server{
		Handler: ofThisMachine(http.MaxBytesHandler(mux, debugMaxBody)), ReadHeaderTimeout: debugHeaderTimeout,
		ErrorLog: slog.NewLogLogger(logging.Slog(logger).Handler(), slog.LevelWarn),
	}}
	go func() { d.ended <- d.server.Serve(listener) }()
	logger.Log("level", "info", "message", "serving profiles and the level of the log", "address", listener.Addr().String())
	return d, nil
}

// ofThisMachine answers requests for names of this machine only, so that no page of another site reads anything by a name that leads here.
func ofThisMachine(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if !isLoopback(host) {
			http.Error(w, "it answers to the names of loopback only, such as localhost", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// close ends serving, and returns why it ended earlier, if it did.
func (d *debugging) close() error {
	if d.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), debugCloseTimeout)
	defer cancel()
	err := d.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, d.server.Close())
	}
	if ended := <-d.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(ended, err)
	}
	if err != nil {
		return fmt.Errorf("serve profiles: %w", err)
	}
	return nil
}
