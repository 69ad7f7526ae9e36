package story

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// step is a version of a service on a cluster.
type step struct{ cluster, service, version string }

// progress remembers what state managers have told about services, and when. It misses nothing that was ever written.
type progress struct {
	mu sync.Mutex
	// deployed is when a version was Deployed first, gone when a service was not there any more.
	deployed map[step]time.Time
	gone     map[step]time.Time
	// now are the states as they are now, without the version in the key.
	now map[step]v1alpha1.ServiceState
}

func newProgress() *progress {
	return &progress{deployed: map[step]time.Time{}, gone: map[step]time.Time{}, now: map[step]v1alpha1.ServiceState{}}
}

// follow watches the ServiceSets of a namespace until ctx ends.
func (p *progress) follow(ctx context.Context, c client.WithWatch, namespace string) error {
	for ctx.Err() == nil {
		changes, err := c.Watch(ctx, &v1alpha1.ServiceSetList{}, client.InNamespace(namespace))
		if err != nil {
			return client.IgnoreNotFound(fmt.Errorf("watch service sets: %w", err))
		}
		for e := range changes.ResultChan() {
			if set, ok := e.Object.(*v1alpha1.ServiceSet); ok {
				p.take(set)
			}
		}
		changes.Stop()
	}
	return nil
}

func (p *progress) take(set *v1alpha1.ServiceSet) {
	p.mu.Lock()
	defer p.mu.Unlock()
	there := map[step]bool{}
	for _, state := range set.Status.Services {
		key := step{cluster: set.Spec.Cluster, service: state.Name}
		there[key] = true
		p.now[key] = state
		key.version = state.Version
		if _, known := p.deployed[key]; !known && state.State == v1alpha1.ServiceStateDeployed {
			p.deployed[key] = time.Now()
		}
	}
	for key := range p.now {
		if key.cluster == set.Spec.Cluster && !there[key] {
			delete(p.now, key)
			p.gone[key] = time.Now()
		}
	}
}

// whenDeployed returns when a version of a service was Deployed first.
func (p *progress) whenDeployed(cluster, service, version string) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.deployed[step{cluster, service, version}]
	return at, ok
}

// whenGone returns when a service was gone.
func (p *progress) whenGone(cluster, service string) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.gone[step{cluster: cluster, service: service}]
	return at, ok
}

// state returns the state of a service now.
func (p *progress) state(cluster, service string) v1alpha1.ServiceState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now[step{cluster: cluster, service: service}]
}

// row waits until something has happened to a service on all clusters, and tells after how long it had.
func (w *world) row(ctx context.Context, since time.Time, what string, when func(cluster string) (time.Time, bool)) error {
	cells := make([]string, len(w.clusters))
	err := w.Wait(ctx, what, func(context.Context) (bool, error) {
		for i, c := range w.clusters {
			at, ok := when(c.name)
			if !ok {
				return false, nil
			}
			cells[i] = fmt.Sprintf("%s after %4.1fs", c.name, at.Sub(since).Seconds())
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	w.Done(fmt.Sprintf("%-26s %s", what, strings.Join(cells, "   ")))
	return nil
}

// comesUp waits until services are Deployed in a version on all clusters. They are given as "name version".
func (w *world) comesUp(ctx context.Context, since time.Time, services ...string) error {
	for _, s := range services {
		name, version, _ := strings.Cut(s, " ")
		err := w.row(ctx, since, s, func(cluster string) (time.Time, bool) { return w.progress.whenDeployed(cluster, name, version) })
		if err != nil {
			return err
		}
	}
	return nil
}
