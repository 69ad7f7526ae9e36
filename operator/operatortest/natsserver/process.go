package natsserver

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The environment variables that make the test binary run as a server.
const (
	dirVariable  = "OPERATORTEST_NATS_DIR"
	portVariable = "OPERATORTEST_NATS_PORT"
)

// Main runs the process as a server and ends it, if [StartProcess] or [StartCluster] has started it for that; otherwise it returns at once.
// Packages whose tests use one of these call it first in TestMain:
//
//	func TestMain(m *testing.M) {
//		natsserver.Main()
//		operatortest.VerifyTestMain(m)
//	}
func Main() {
	dir := os.Getenv(dirVariable)
	if dir == "" {
		return
	}
	if err := serve(dir, os.Getenv(portVariable), os.Getenv(peersVariable)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve serves until the process is told to end or its parent has ended, which closes standard input.
func serve(dir, port, peers string) error {
	s := &Server{dir: dir}
	var err error
	if s.port, err = strconv.Atoi(port); err != nil {
		return fmt.Errorf("%s: %w", portVariable, err)
	}
	if s.peers, err = parsePeers(peers); err != nil {
		return fmt.Errorf("%s: %w", peersVariable, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := s.start(ctx); err != nil {
		return err
	}
	defer s.Stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	<-ctx.Done()
	return nil
}

// Process is a NATS server in a process of its own, which can be killed. It costs its parent no goroutine. Its methods
// must not be called concurrently.
type Process struct {
	dir  string
	port int
	// peers is nil for a server that stands alone.
	peers *peers

	cmd      *exec.Cmd // nil when it isn't running
	lifeline *os.File  // the parent's end of the process's standard input
}

// StartProcess starts a server that runs until the test ends, with its store in a temporary folder. The package's TestMain
// must call [Main].
func StartProcess(t testing.TB) *Process {
	t.Helper()
	port, err := own.free()
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{dir: t.TempDir(), port: port}
	t.Cleanup(p.Kill)
	p.Start(t)
	return p
}

// URL is where clients connect to. It stays the same when the server is started again.
func (p *Process) URL() string { return urlOf(p.port) }

// Dir is the folder of the store.
func (p *Process) Dir() string { return p.dir }

// Connect returns a connection to the server, which is closed when the test ends.
func (p *Process) Connect(t testing.TB, options ...nats.Option) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	return connectDirectly(t, p.URL(), options)
}

// Kill ends the process with SIGKILL, and returns when it is gone. It does nothing if it does not run.
func (p *Process) Kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	// How it ended says nothing: it was killed.
	_ = p.cmd.Wait()
	_ = p.lifeline.Close()
	p.cmd = nil
}

// Restart kills the process, if it runs, and starts it again with the same port and the same store.
func (p *Process) Restart(t testing.TB) {
	t.Helper()
	p.Kill()
	p.Start(t)
}

// Start starts a process that was killed, and returns when it accepts connections.
func (p *Process) Start(t testing.TB) {
	t.Helper()
	if p.cmd != nil {
		return
	}
	if err := p.spawn(); err != nil {
		t.Fatalf("start NATS server as a process: %v", err)
	}
	p.awaitReady(t)
}

// awaitReady returns when the server's JetStream answers.
func (p *Process) awaitReady(t testing.TB) {
	t.Helper()
	if err := untilReady(t.Context(), p.URL()); err != nil {
		t.Fatalf("NATS server as a process (does TestMain call natsserver.Main?): %v", err)
	}
}

// untilReady returns when the JetStream of a server answers.
func untilReady(ctx context.Context, url string) error {
	var err error
	for deadline := time.Now().Add(readyPatience); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(readyPeriod) {
		var conn *nats.Conn
		if conn, err = nats.Connect(url, nats.Timeout(time.Second), nats.RetryOnFailedConnect(false)); err == nil {
			err = answers(ctx, conn)
			conn.Close()
		}
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s does not answer: %w", url, cmp.Or(ctx.Err(), err))
}

func (p *Process) spawn() error {
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	stdin, lifeline, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = stdin.Close() }()
	cmd := exec.Command(binary) //nolint:gosec // this program itself
	cmd.Env = append(os.Environ(), dirVariable+"="+p.dir, portVariable+"="+strconv.Itoa(p.port), peersVariable+"="+p.peers.String())
	cmd.Stdin, cmd.Stderr = stdin, os.Stderr
	if err := cmd.Start(); err != nil {
		_ = lifeline.Close()
		return err
	}
	p.cmd, p.lifeline = cmd, lifeline
	return nil
}

// answers returns nil when the server's JetStream answers.
func answers(ctx context.Context, conn *nats.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	_, err = js.AccountInfo(ctx)
	return err
}
