package dockertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	moby "github.com/moby/moby/client"
	"golang.org/x/sync/errgroup"

	"github.com/operatorkit/operatorkit/resource/deployment/docker"
)

const (
	// startTimeout is how long an engine may take to answer, stopTimeout to end.
	startTimeout = 3 * time.Minute
	stopTimeout  = 2 * time.Minute
	// pollPeriod is how long is waited between two looks whether it answers.
	pollPeriod = 50 * time.Millisecond
	// logTail is how much of an engine's log an error shows, in bytes.
	logTail = 4096
)

// Engine is a Docker engine, with a machine's part for containers. Its methods are safe for concurrent use.
type Engine struct {
	name string
	slot *slot
	host string
	// extra are further arguments.
	extra []string

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{}
}

// Run starts engines, which are called engine-1 and so on. Close ends them.
func Run(ctx context.Context, n int) ([]*Engine, error) {
	if err := Check(); err != nil {
		return nil, err
	}
	engines := make([]*Engine, n)
	var group errgroup.Group
	for i := range engines {
		slot, err := take()
		if err != nil {
			return nil, errors.Join(err, Close(engines[:i]))
		}
		engines[i] = &Engine{name: "engine-" + strconv.Itoa(i+1), slot: slot, host: "unix://" + filepath.Join(slot.dir, "docker.sock")}
		group.Go(func() error { return engines[i].Start(ctx) })
	}
	if err := group.Wait(); err != nil {
		return nil, errors.Join(err, Close(engines))
	}
	return engines, nil
}

// Close ends engines with their containers, and takes away all that is of them.
func Close(engines []*Engine) error {
	var group errgroup.Group
	for _, e := range engines {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
			defer cancel()
			return errors.Join(e.Continue(), e.shutDown(ctx), e.slot.release())
		})
	}
	return group.Wait()
}

// Machines returns engines as machines whose IDs and names are the names of the engines.
func Machines(engines []*Engine) []docker.Machine {
	machines := make([]docker.Machine, len(engines))
	for i, e := range engines {
		machines[i] = docker.Machine{ID: e.name, Name: e.name, Endpoint: docker.Endpoint{Host: e.host}}
	}
	return machines
}

// Containers returns what containers a cluster has on the engine, sorted: a line each, with the service, the image and the state.
func (e *Engine) Containers(ctx context.Context, cluster string) (lines []string, err error) {
	cli, err := docker.New(docker.Config{Cluster: cluster, Machines: Machines([]*Engine{e})})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cli.Close()) }()
	inventory, err := cli.InspectMachine(ctx, e.name)
	if err != nil {
		return nil, err
	}
	for i := range inventory.Containers {
		is := &inventory.Containers[i]
		lines = append(lines, fmt.Sprintf("%s %s %s", is.ServiceName, is.Spec.Container.Image, is.State))
	}
	slices.Sort(lines)
	return lines, nil
}

// Name returns the name.
func (e *Engine) Name() string { return e.name }

// Host returns where the engine listens, as in docker.Endpoint.
func (e *Engine) Host() string { return e.host }

// Address returns the IP address of the machine, at which ports are published for which no other is given. No other engine has it.
func (e *Engine) Address() string { return e.slot.address() }

// MeshAddress returns an address of the engine's machine that containers of other engines reach.
func (e *Engine) MeshAddress() string { return e.slot.bridgeAddress() }

// Socket returns the path of the engine's socket.
func (e *Engine) Socket() string { return filepath.Join(e.slot.dir, "docker.sock") }

// Client returns a client of the engine itself, for looking after what others do to it.
func (e *Engine) Client() (*moby.Client, error) { return moby.New(moby.WithHost(e.host)) }

// Start starts an engine that was stopped, and waits until it answers. The containers that are to be restarted are. One that runs is
// no error. Further arguments of dockerd hold from now on.
func (e *Engine) Start(ctx context.Context, arguments ...string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cmd != nil {
		return nil
	}
	e.extra = append(e.extra, arguments...)
	if err := e.spawn(); err != nil {
		return fmt.Errorf("start %s: %w", e.name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := e.ready(ctx); err != nil {
		err = fmt.Errorf("%s does not answer: %w; its log ends with\n%s", e.name, err, e.log())
		return errors.Join(err, e.stop(context.WithoutCancel(ctx)))
	}
	return nil
}

func (e *Engine) spawn() error {
	dockerd, err := find("dockerd")
	if err != nil {
		return err
	}
	if err := e.slot.bridge(); err != nil {
		return err
	}
	log, err := os.OpenFile(e.slot.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(dockerd, append(e.slot.arguments(), e.extra...)...) //nolint:gosec // the program is found in the system's folders
	cmd.Stdout, cmd.Stderr = log, log
	// What the programs that an engine starts leave behind when they are killed goes with the rest of it.
	temporary := e.slot.path("tmp")
	if err := os.MkdirAll(temporary, 0o700); err != nil {
		return err
	}
	cmd.Env = append(os.Environ(), "TMPDIR="+temporary)
	endWithParent(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		// How it ended says nothing: it is told to end by a signal, and else its log says more.
		_ = cmd.Wait()
		close(ended)
	}()
	e.cmd, e.ended = cmd, ended
	return nil
}

func (e *Engine) ready(ctx context.Context) error {
	engine, err := e.Client()
	if err != nil {
		return err
	}
	defer func() { _ = engine.Close() }()
	ticker := time.NewTicker(pollPeriod)
	defer ticker.Stop()
	for {
		_, err := engine.Ping(ctx, moby.PingOptions{})
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-e.ended:
			return errors.New("it has ended")
		case <-ctx.Done():
			return err
		}
	}
}

// Stop has the machine be lost: its engine and its containers end at once, and tell nobody. What is on its disk stays. One that does not run is
// no error.
func (e *Engine) Stop(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cmd == nil {
		return nil
	}
	_ = e.cmd.Process.Kill() // which fails for one that has ended
	select {
	case <-e.ended:
		e.cmd = nil
		return e.slot.lose()
	case <-ctx.Done():
		return fmt.Errorf("kill %s: %w", e.name, context.Cause(ctx))
	}
}

// shutDown is Stop in order: containers are told to end before the engine does.
func (e *Engine) shutDown(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stop(ctx)
}

func (e *Engine) stop(ctx context.Context) error {
	if e.cmd == nil {
		return nil
	}
	_ = e.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-e.ended:
		e.cmd = nil
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop %s: %w; its log ends with\n%s", e.name, context.Cause(ctx), e.log())
	}
}

// Hang makes the engine stop answering without hanging up, as a machine does that is cut off. Its containers run on.
func (e *Engine) Hang() error { return e.signal(syscall.SIGSTOP) }

// Continue ends what Hang began.
func (e *Engine) Continue() error { return e.signal(syscall.SIGCONT) }

func (e *Engine) signal(s syscall.Signal) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cmd == nil {
		return nil
	}
	return e.cmd.Process.Signal(s)
}

// log returns the end of the engine's log.
func (e *Engine) log() string {
	text, err := os.ReadFile(e.slot.path("log"))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-logTail):])
}
