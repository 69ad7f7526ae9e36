package operatortest

import (
	"context"
	"io"
)

// Use returns the control plane of a kubeconfig, as Start does with that of the
// environment.
func Use(kubeconfig string) (*Instance, error) { return newInstance(kubeconfig, nil) }

// BuildOnce is what guards the build of the binary.
func BuildOnce(ctx context.Context, target string, progress io.Writer, build func(ctx context.Context, output string) error) error {
	return buildOnce(ctx, target, progress, build)
}

// RunOnPorts is Run with a choice of ports.
func RunOnPorts(ctx context.Context, config Config, ports func(n int) ([]int, error)) (*Instance, error) {
	p, err := startPlaneOnPorts(ctx, config, startedByTest, ports)
	if err != nil {
		return nil, err
	}
	return newInstance(p.kubeconfig, p)
}

// FreePorts is how Run chooses ports.
func FreePorts(n int) ([]int, error) { return freePorts(n) }

// CloseIdle closes the connections that nobody uses now, as the end of a test does.
func CloseIdle(i *Instance) { i.closeIdle() }

// HasReceived is whether a watch through a lag has been sent an object's version by the server.
func HasReceived(l *Lag, version string) bool { return l.changes.has(version) }
