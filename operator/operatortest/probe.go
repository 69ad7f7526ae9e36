package operatortest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// probeTimeout ends a question that a server which is being started took and
// does not answer.
const probeTimeout = 5 * time.Second

// probe asks a part whether it is ready, on connections of its own.
type probe struct {
	url       string
	transport *http.Transport
}

func newProbe(kubeconfig, url string) (*probe, error) {
	config, _, err := loadKubeconfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, fmt.Errorf("prepare TLS for %s: %w", url, err)
	}
	return &probe{url: url, transport: &http.Transport{TLSClientConfig: tls}}, nil
}

// untilReady returns nil as soon as the part is ready. When ctx ends first, the
// error says why the part was not.
func (p *probe) untilReady(ctx context.Context) error {
	ticker := time.NewTicker(pollPeriod)
	defer ticker.Stop()
	for {
		notReady := p.ready(ctx)
		if notReady == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), notReady)
		}
	}
}

// ready returns nil when the part is ready, and otherwise why not.
func (p *probe) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", p.url, err)
	}
	response, err := p.transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("ask %s: %w", p.url, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("ask %s: %w", p.url, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("ask %s: %s: %s", p.url, response.Status, body)
	}
	return nil
}

func (p *probe) close() { p.transport.CloseIdleConnections() }
