package natsserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// readyPatience is how long a server may take to accept connections. Recovering a large store takes a while.
	readyPatience = 5 * time.Minute
	readyPeriod   = 50 * time.Millisecond
	// startTries is how often another port is tried when somebody else has taken the one that was free.
	startTries = 20
)

// Config describes a [Server].
type Config struct {
	// Dir is the folder of the JetStream store, which is made if it does not exist. It must be set. What it holds
	// already is served.
	Dir string
	// Port is the port on loopback. Default: one that is free.
	Port int
	// Deny are subjects to which no client may publish. Default: none.
	Deny []string
}

// Server is a NATS server in this process. All methods are safe for concurrent use.
type Server struct {
	dir  string
	port int
	deny []string
	// peers is nil for a server that stands alone.
	peers *peers

	mu      sync.Mutex
	running *server.Server // nil when it is stopped
}

// Run starts a server, and returns when it accepts connections. It runs until Stop is called; ctx is for the start alone.
func Run(ctx context.Context, config Config) (*Server, error) {
	if config.Dir == "" {
		return nil, errors.New("start NATS server: Dir must be set")
	}
	if config.Port != 0 {
		s := &Server{dir: config.Dir, port: config.Port, deny: config.Deny}
		return s, s.start(ctx)
	}
	var err error
	for range startTries {
		s := &Server{dir: config.Dir, deny: config.Deny}
		if s.port, err = own.free(); err != nil {
			return nil, fmt.Errorf("start NATS server: %w", err)
		}
		if err = s.start(ctx); err == nil || ctx.Err() != nil {
			return s, err
		}
	}
	return nil, err
}

// URL is where clients connect to. It stays the same when the server is started again.
func (s *Server) URL() string { return urlOf(s.port) }

// Stop stops the server in good order: everything is on disk when it returns. A stopped server may be stopped again.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return
	}
	s.running.Shutdown()
	s.running.WaitForShutdown()
	s.running = nil
}

// start starts the server unless it runs.
func (s *Server) start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		return nil
	}
	// The server only logs that its port is taken, so that is found out before.
	listener, err := listen(s.port)
	if err != nil {
		return fmt.Errorf("start NATS server: choose another Port, or end who has this one: %w", err)
	}
	if err := listener.Close(); err != nil {
		return fmt.Errorf("start NATS server: %w", err)
	}
	options := &server.Options{
		ServerName: "operatortest",
		Host:       loopback,
		Port:       s.port,
		JetStream:  true,
		StoreDir:   s.dir,
		NoSigs:     true,
		NoLog:      true,
	}
	if len(s.deny) > 0 {
		client := &server.User{Username: "client", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: s.deny}}}
		options.Users, options.NoAuthUser = []*server.User{client}, client.Username
	}
	s.peers.join(options)
	nats, err := server.NewServer(options)
	if err != nil {
		return fmt.Errorf("start NATS server on port %d: %w", s.port, err)
	}
	nats.Start()
	for deadline := time.Now().Add(readyPatience); !nats.ReadyForConnections(readyPeriod); {
		if ctx.Err() != nil || !nats.Running() || time.Now().After(deadline) {
			nats.Shutdown()
			nats.WaitForShutdown()
			return fmt.Errorf("start NATS server on port %d with store %s: it does not accept connections, is the store in use? (%w)",
				s.port, s.dir, cmp.Or(ctx.Err(), errors.New("not ready")))
		}
	}
	s.running = nats
	return nil
}
