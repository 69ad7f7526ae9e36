package dockertest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	moby "github.com/moby/moby/client"
	"golang.org/x/sync/errgroup"
)

// Pool lends engines to tests, which so need not start some each. It starts as many as are lent at once, and is safe for concurrent
// use. The zero value is a pool of engines without images.
//
//	var engines = dockertest.Pool{Images: []dockertest.Image{dockertest.App("app:1", nil)}}
//
//	func TestMain(m *testing.M) {
//		code := m.Run()
//		err := engines.Close()
//		…
//	}
type Pool struct {
	// Images are on all engines.
	Images []Image

	mu   sync.Mutex
	free []*Engine
}

// Take lends engines to a test until it ends. They are called engine-1 and so on, and have nothing on them but images, also those that
// tests before have put there. The test may stop them and let them hang, but not give them further arguments. Tests call Require before, so
// that -short skips them.
func (p *Pool) Take(t testing.TB, n int) []*Engine {
	t.Helper()
	need(t)
	engines, err := p.take(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.put(engines); err != nil {
			t.Error(err)
		}
	})
	return engines
}

func (p *Pool) take(ctx context.Context, n int) ([]*Engine, error) {
	p.mu.Lock()
	kept := max(0, len(p.free)-n)
	engines := append([]*Engine(nil), p.free[kept:]...)
	p.free = p.free[:kept]
	p.mu.Unlock()
	begun, err := Run(ctx, n-len(engines))
	engines = append(engines, begun...)
	var group errgroup.Group
	for _, e := range begun {
		group.Go(func() error { return e.Load(ctx, p.Images...) })
	}
	if err := errors.Join(err, group.Wait()); err != nil {
		return nil, errors.Join(err, Close(engines))
	}
	for i, e := range engines {
		e.name = "engine-" + strconv.Itoa(i+1)
	}
	return engines, nil
}

// put takes engines back. Those that can't be made as they were are ended.
func (p *Pool) put(engines []*Engine) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	var group errgroup.Group
	for _, e := range engines {
		group.Go(func() error {
			if err := e.clear(ctx); err != nil {
				return errors.Join(fmt.Errorf("clear %s: %w", e.name, err), Close([]*Engine{e}))
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			p.free = append(p.free, e)
			return nil
		})
	}
	return group.Wait()
}

// clear makes the engine run, and removes everything from it but images.
func (e *Engine) clear(ctx context.Context) error {
	if err := errors.Join(e.Continue(), e.Start(ctx)); err != nil {
		return err
	}
	engine, err := e.Client()
	if err != nil {
		return err
	}
	defer func() { _ = engine.Close() }()
	containers, err := engine.ContainerList(ctx, moby.ContainerListOptions{All: true})
	for _, c := range containers.Items {
		_, failed := engine.ContainerRemove(ctx, c.ID, moby.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		err = errors.Join(err, failed)
	}
	_, failed := engine.NetworkPrune(ctx, moby.NetworkPruneOptions{})
	err = errors.Join(err, failed)
	volumes, failed := engine.VolumeList(ctx, moby.VolumeListOptions{})
	err = errors.Join(err, failed)
	for _, v := range volumes.Items {
		_, failed := engine.VolumeRemove(ctx, v.Name, moby.VolumeRemoveOptions{Force: true})
		err = errors.Join(err, failed)
	}
	return err
}

// Close ends the engines. No test has any by then.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	engines := p.free
	p.free = nil
	return Close(engines)
}
