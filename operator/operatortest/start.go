package operatortest

import (
	"context"
	"os"
	"sync"
	"testing"
)

// Option changes what Start returns.
type Option func(*startOptions)

type startOptions struct {
	dedicated bool
	config    Config
}

// Dedicated gives the test a control plane of its own, which is stopped when the
// test ends. Only such a one can be restarted and killed.
func Dedicated() Option {
	return func(o *startOptions) { o.dedicated = true }
}

// WithConfig gives the test a control plane of its own, like Dedicated, that is
// run with the configuration.
func WithConfig(config Config) Option {
	return func(o *startOptions) { o.dedicated, o.config = true, config }
}

// Start returns a control plane for a test, and fails the test when there is
// none to be had. Without options, tests share one: that of the environment
// variable OPERATORTEST_KUBECONFIG if it is set, else one that this process
// starts for all its tests and that ends with it. Such a test works in a
// namespace of its own: see Namespace.
//
// When the test ends, idle connections to the control plane are closed that were
// made with RESTConfig, so that a look for leaked goroutines finds only those of
// clients that are still busy.
func Start(t testing.TB, options ...Option) *Instance {
	t.Helper()
	var o startOptions
	for _, option := range options {
		option(&o)
	}
	if !o.dedicated {
		instance, err := shared.get()
		if err != nil {
			t.Fatalf("operatortest: start a control plane: %v", err)
		}
		t.Cleanup(instance.closeIdle)
		return instance
	}
	instance, err := run(t.Context(), o.config, startedByTest)
	if err != nil {
		t.Fatalf("operatortest: start a control plane: %v", err)
	}
	t.Cleanup(func() {
		if err := instance.Stop(context.Background()); err != nil {
			t.Errorf("operatortest: %v", err)
		}
		instance.closeIdle()
	})
	return instance
}

// shared is the process's one control plane for its tests, which have nothing
// else in common through which they could share it.
var shared sharedInstance

type sharedInstance struct {
	once     sync.Once
	instance *Instance
	err      error
}

func (s *sharedInstance) get() (*Instance, error) {
	s.once.Do(func() {
		if kubeconfig := os.Getenv(KubeconfigVariable); kubeconfig != "" {
			s.instance, s.err = newInstance(kubeconfig, nil)
			return
		}
		var p *plane
		if p, s.err = startPlane(context.Background(), Config{}, startedByTest); s.err == nil {
			s.instance, s.err = newInstance(p.kubeconfig, nil)
		}
	})
	return s.instance, s.err
}
