// Package crowd deploys many services on machines at once, for tests and measurements of what their plans do to each other.
package crowd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// Crowd deploys services at once, as workers do that share a queue: a plan that is stale, or finds no place because others are about to
// take it, is made again later. It deploys once.
type Crowd struct {
	// Client is the way to the machines, and Workers is how many services are deployed at once. Both are required.
	Client  deployment.Client
	Workers int
	// Later is how long a plan waits at most until it is run, and Again how long a service waits until it is planned again.
	Later, Again time.Duration

	// Plans is how many plans were run, and Stale how many of them were refused because something has changed since they were made.
	Plans, Stale int
	// Errors are what became of services that were not deployed, by name.
	Errors map[string]error

	mu sync.Mutex
}

// Deploy returns when all services are deployed, or can't be.
func (c *Crowd) Deploy(ctx context.Context, specs []api.ServiceSpec) {
	c.Errors = map[string]error{}
	// Each service may come back as often as the others are deployed.
	queue := make(chan api.ServiceSpec, len(specs))
	var todo, workers sync.WaitGroup
	for _, spec := range specs {
		todo.Add(1)
		queue <- spec
	}
	for i := range c.Workers {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		workers.Go(func() {
			for spec := range queue {
				if c.try(ctx, spec, time.Duration(random.Int64N(int64(c.Later)))) {
					todo.Done()
					continue
				}
				time.Sleep(c.Again)
				queue <- spec
			}
		})
	}
	todo.Wait()
	close(queue)
	workers.Wait()
}

// try plans a service, and runs the plan some time later. It tells whether that was all.
func (c *Crowd) try(ctx context.Context, spec api.ServiceSpec, later time.Duration) bool {
	d := deployment.NewDeployment(c.Client, spec, nil)
	plan, err := d.Plan(ctx)
	if err == nil && plan.Empty() {
		return true
	}
	if err == nil {
		time.Sleep(later)
		_, err = d.Run(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.Plans++
		if errors.Is(err, deployment.ErrStalePlan) {
			c.Stale++
			return false
		}
	} else {
		c.mu.Lock()
		defer c.mu.Unlock()
	}
	if u := (*scheduler.UnschedulableError)(nil); errors.As(err, &u) && len(u.Coming) > 0 {
		return false // There may be a place when a plan has ended.
	}
	if err != nil {
		c.Errors[spec.Name] = err
	}
	return err != nil
}

// Services are that many of one or two containers of an image. A quarter of them have a port of the machine, which two of these share.
func Services(n int, image string) []api.ServiceSpec {
	specs := make([]api.ServiceSpec, n)
	for i := range specs {
		replicas := int32(1 + i%2)
		specs[i] = api.ServiceSpec{Name: fmt.Sprintf("s%d", i), Replicas: &replicas, Container: api.ContainerSpec{Image: image}}
		if i%4 == 0 {
			specs[i].Ports = []api.PortSpec{{Mode: api.PortModeHost, PublishedPort: uint16(8000 + i/8), ContainerPort: 80}}
		}
	}
	return specs
}
