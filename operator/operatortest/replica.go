package operatortest

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// ReplicaConfig configures a [Replica].
type ReplicaConfig struct {
	// Path is the program, as exec.Command takes it. Required.
	Path string
	// Args are its arguments.
	Args []string
	// Env is added to the environment of the test, after KUBECONFIG, which leads to the API server. Default: none.
	Env []string
	// Config is the API server's. Default: that of [Start].
	Config *rest.Config
}

// Replica is an operator that runs as a process of its own, with a record of each request that it sends to the API server. Its
// methods are safe for concurrent use.
type Replica struct {
	t      testing.TB
	cmd    *exec.Cmd
	faults *Faults
	log    replicaLog
	ended  chan struct{}
	record exchanges
}

// Exchange is a request and what became of it.
type Exchange struct {
	Request
	// Status is that of the answer; 0 when there was none, or not yet.
	Status int
}

// Changed is whether the API server carried out a write.
func (e Exchange) Changed() bool {
	return e.isWrite() && e.Status >= http.StatusOK && e.Status < http.StatusMultipleChoices
}

// StartReplica starts an operator, which is killed when the test ends. It has to find the API server by the environment variable
// KUBECONFIG, as those made with package command do.
func StartReplica(t testing.TB, config ReplicaConfig) *Replica {
	t.Helper()
	if config.Config == nil {
		config.Config = Start(t).RESTConfig()
	}
	r := &Replica{t: t, faults: NewFaults(), ended: make(chan struct{})}
	through := r.faults.Wrap(config.Config)
	through.Wrap(r.record.transport)

	r.cmd = exec.Command(config.Path, config.Args...) //nolint:gosec // the program is the test's choice
	r.cmd.Env = append(append(os.Environ(), "KUBECONFIG="+serve(t, through)), config.Env...)
	r.cmd.Stdout, r.cmd.Stderr = &r.log, &r.log
	ownGroup(r.cmd)
	if err := r.cmd.Start(); err != nil {
		t.Fatalf("operatortest: start %s: %v", config.Path, err)
	}
	go func() {
		defer close(r.ended)
		_ = r.cmd.Wait() // how it ended is in its state
	}()
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-r.ended
	})
	return r
}

// Pid is the number of the process.
func (r *Replica) Pid() int { return r.cmd.Process.Pid }

// Faults stand between the process and the API server.
func (r *Replica) Faults() *Faults { return r.faults }

// Log is what the process has written to its standard output and error.
func (r *Replica) Log() string { return r.log.String() }

// Signal sends the process a signal.
func (r *Replica) Signal(signal syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(signal); err != nil {
		r.t.Fatalf("operatortest: send %s to process %d: %v; its log:\n%s", signal, r.Pid(), err, r.Log())
	}
}

// Requests returns what the process has sent to the API server so far, reads, leases and events included.
func (r *Replica) Requests() []Exchange { return r.record.list() }

// Wait waits until the process has ended, and returns its exit code, which is -1 when a signal ended it. It fails the test when that
// takes longer than five minutes.
func (r *Replica) Wait() int {
	r.t.Helper()
	if !r.waits(hangLimit) {
		r.t.Fatalf("operatortest: process %d does not end; its log is:\n%s", r.Pid(), r.Log())
	}
	return r.cmd.ProcessState.ExitCode()
}

// Ended is whether the process has ended.
func (r *Replica) Ended() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// waits is whether the process ends within d.
func (r *Replica) waits(d time.Duration) bool {
	select {
	case <-r.ended:
		return true
	case <-time.After(d):
		return false
	}
}

// Pause is what became of a process that was paused.
type Pause struct {
	// Late are the requests that began after the pause, those for leases and events aside. An operator that has lost its lease
	// begins none, except for those that were on their way already, one for each worker at most.
	Late []Exchange
	// Changed are the writes among them that the API server carried out. There must be none.
	Changed []Exchange
	// Ended is whether the process has ended since.
	Ended bool
}

// PausedUntil stops the process (SIGSTOP), waits until another one has taken over, as [Eventually] does, lets the process go on
// (SIGCONT), and looks for d, or until it ends, at what it does. Let another replica write, and what it wrote be the condition: the lease
// alone is too early.
func (r *Replica) PausedUntil(what string, takenOver func() error, d time.Duration) Pause {
	r.t.Helper()
	r.must("pause", pause(r.cmd.Process))
	Eventually(r.t, what, takenOver)
	before := len(r.Requests())
	r.must("go on with", resume(r.cmd.Process))

	report := Pause{Ended: r.waits(d)}
	for _, e := range r.Requests()[before:] {
		if matchesAny([]Match{Leases, Events}, e.Request) {
			continue
		}
		report.Late = append(report.Late, e)
		if e.Changed() {
			report.Changed = append(report.Changed, e)
		}
	}
	return report
}

func (r *Replica) must(what string, err error) {
	r.t.Helper()
	if errors.Is(err, errors.ErrUnsupported) {
		r.t.Skipf("this system can't %s a process", what)
	}
	if err != nil {
		r.t.Fatalf("operatortest: %s process %d: %v", what, r.Pid(), err)
	}
}

// replicaLog keeps what a process writes.
type replicaLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *replicaLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *replicaLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
