package natscontroller_test

import (
	"context"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/natscontroller"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// cleaning counts Clean.
type cleaning struct {
	*natscontroller.ControllerRuntime[*Gateway]
	calls journal
	panic any
}

func (c *cleaning) Clean() {
	c.calls.add("clean")
	if c.panic != nil {
		panic(c.panic)
	}
}

func (c *cleaning) GarbageSecondaries() { c.calls.add("garbage") }

func TestCleanIsCalledOnceHoweverTheControllerEnds(t *testing.T) {
	failing := func(fail func() error) framework.Watch {
		return framework.Watch{Source: &failingSource{Push: informer.NewPush("failing"), fail: fail}, Map: func(context.Context, any) []informer.Key { return nil }}
	}
	tests := []struct {
		name   string
		change func(*natscontroller.Config[*Gateway])
		panic  any
		cancel bool
		want   string
	}{
		{name: "stopped", cancel: true},
		{name: "an error", change: func(c *natscontroller.Config[*Gateway]) {
			c.Externals = []framework.Watch{failing(func() error { return errBroken })}
		}, want: "broken"},
		{name: "a panic", change: func(c *natscontroller.Config[*Gateway]) {
			c.Externals = []framework.Watch{failing(func() error { panic("boom") })}
		}, want: "panic: value of type string in github.com/operatorkit/operatorkit/"},
		{name: "it did not even start", change: func(c *natscontroller.Config[*Gateway]) { c.ListenAddress = "192.0.2.1:80" }, want: "listen"},
		{name: "a panic in itself", cancel: true, panic: "dirty", want: "clean: panic: value of type string in github.com/operatorkit/operatorkit/"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			config := w.config()
			if tt.change != nil {
				tt.change(&config)
			}
			c := &cleaning{ControllerRuntime: w.controller(config), panic: tt.panic}
			c.SetCustomController(c)
			r := run(t, c.Start)
			if tt.cancel {
				operatortest.Eventually(t, "it runs", func() bool { return c.calls.contains("garbage") })
				r.cancel()
			}
			err := r.wait()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("want an error with %q, got %v", tt.want, err)
			}
			if n := c.calls.count("clean"); n != 1 {
				t.Errorf("Clean was called %d times, want once", n)
			}
			if err := c.Start(t.Context()); !framework.IsExecutionFailed(err) {
				t.Errorf("a second Start: want an error for which IsExecutionFailed holds, got %v", err)
			}
			if n := c.calls.count("clean"); n != 1 {
				t.Errorf("Clean was called %d times after a second Start, want once", n)
			}
		})
	}
}

// failingSource is a source whose Run ends by itself.
type failingSource struct {
	*informer.Push
	fail func() error
}

func (s *failingSource) Run(context.Context) error { return s.fail() }

func TestRunHandsItsErrorToErrCh(t *testing.T) {
	w := newWorld(t)
	config := w.config()
	config.ListenAddress = "192.0.2.1:80"
	c := w.controller(config)
	stopCh, errCh := make(chan struct{}), make(chan error)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(1, stopCh, errCh)
	}()
	if err := <-errCh; err == nil || !strings.Contains(err.Error(), "listen") {
		t.Errorf("want an error about the listener, got %v", err)
	}
	<-ended

	// Nobody has to listen.
	c = w.controller(config)
	close(stopCh)
	c.Run(1, stopCh, nil)
}
