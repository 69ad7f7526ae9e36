package commandtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// StartEach is Start for runs that go on at once: each has a configuration of its own.
//
//	s := commandtest.Scenario(t, newConfig())
//	s.Start, s.Parallel = commandtest.StartEach(newConfig), 4
func StartEach(newConfig func() command.Config, args ...string) func(ctx context.Context, cfg *rest.Config, namespace string) error {
	return func(ctx context.Context, cfg *rest.Config, namespace string) error {
		return Start(newConfig(), args...)(ctx, cfg, namespace)
	}
}

// Start returns what runs the whole operator of a configuration, as "run" does, for a Scenario's Start or Neighbour. It looks at
// the namespace it is given only, elects no leader, serves no addresses, and leaves the loggers alone that the process shares,
// unless args say otherwise, which are more flags of "run". The error has the end of the operator's log.
//
// operatortest.Quiet is told of its metrics. What the operator sends to other systems by a client of Dependencies.HTTPClient counts as its
// writes, at each of which it is crashed, too.
//
// The scenario's control plane should have the operator's definitions already: see operatortest.Instance.InstallCRDs.
//
// Runs that go on at once (Parallel of a Scenario) share what the configuration refers to. One with Flags, whose variables they would share, is
// refused then: StartEach is for these.
func Start(config command.Config, args ...string) func(ctx context.Context, cfg *rest.Config, namespace string) error {
	var running atomic.Int32
	return func(ctx context.Context, cfg *rest.Config, namespace string) error {
		defer running.Add(-1)
		if running.Add(1) > 1 && config.Flags != nil {
			return fmt.Errorf("operator %s runs twice at once, and both would set the variables of its Flags: give the scenario Start: commandtest.StartEach, which makes a configuration for each run", config.Name)
		}
		config := config
		config.RESTConfig, config.KeepGlobalLoggers = cfg, true
		config.LeaderElection.Enabled = false
		if newFrameworks := config.New; newFrameworks != nil {
			config.New = func(ctx context.Context, deps *operator.Dependencies) ([]*framework.Framework, error) {
				operatortest.CountReconciliations(ctx, deps.Registry)
				deps.WrapTransport = func(t http.RoundTripper) http.RoundTripper { return operatortest.TransportOf(ctx, t) }
				return newFrameworks(ctx, deps)
			}
		}
		cmd, err := command.New(config)
		if err != nil {
			return err
		}
		log := &tail{}
		cmd.SetOut(io.Discard)
		cmd.SetErr(log)
		cmd.SetArgs(append([]string{"run", "--namespace", namespace, "--listen-address", "", "--inspector-address", ""}, args...))
		if err := cmd.ExecuteContext(ctx); err != nil {
			return fmt.Errorf("%w; the log of %s ends with:\n%s", err, config.Name, log)
		}
		return nil
	}
}

// tailSize is how much of a log is kept, in bytes.
const tailSize = 4096

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if more := len(t.text) - tailSize; more > 0 {
		t.text = bytes.Clone(t.text[more:])
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
