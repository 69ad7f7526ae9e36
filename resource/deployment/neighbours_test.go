package deployment_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// crowd deploys services at once, as workers do that share a queue: a plan that is stale, or finds no place because others are about to
// take it, is made again later.
type crowd struct {
	s       *simulation
	workers int
	// plans counts the plans that were run, stale those of them that were refused.
	mu           sync.Mutex
	plans, stale int
	// errs are what became of services that were not deployed, by name.
	errs map[string]error
}

func (c *crowd) deploy(ctx context.Context, specs []api.ServiceSpec) {
	c.errs = map[string]error{}
	// Each service may come back as often as the others are deployed.
	queue := make(chan api.ServiceSpec, len(specs))
	var todo, workers sync.WaitGroup
	for _, spec := range specs {
		todo.Add(1)
		queue <- spec
	}
	for i := range c.workers {
		random := rand.New(rand.NewPCG(1, uint64(i)))
		workers.Go(func() {
			for spec := range queue {
				if c.try(ctx, spec, time.Duration(random.IntN(50))*time.Millisecond) {
					todo.Done()
					continue
				}
				time.Sleep(500 * time.Millisecond)
				queue <- spec
			}
		})
	}
	todo.Wait()
	close(queue)
	workers.Wait()
}

// try plans a service, and runs the plan some time later. It tells whether that was all.
func (c *crowd) try(ctx context.Context, spec api.ServiceSpec, later time.Duration) bool {
	d := deployment.NewDeployment(c.s, spec, nil)
	plan, err := d.Plan(ctx)
	if err == nil && plan.Empty() {
		return true
	}
	if err == nil {
		time.Sleep(later)
		_, err = d.Run(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.plans++
		if errors.Is(err, deployment.ErrStalePlan) {
			c.stale++
			return false
		}
	} else {
		c.mu.Lock()
		defer c.mu.Unlock()
	}
	if u := (*scheduler.UnschedulableError)(nil); errors.As(err, &u) && waits(u) {
		return false
	}
	if err != nil {
		c.errs[spec.Name] = err
	}
	return err != nil
}

// named is a service of a name.
func named(name string, replicas int32, change ...func(*api.ServiceSpec)) api.ServiceSpec {
	spec := web("app:v1", replicas, change...)
	spec.Name = name
	return spec
}

func TestPlansOfManyServicesAreHardlyEverStale(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(10)
		c := &crowd{s: s, workers: 10}
		var specs []api.ServiceSpec
		for i := range 200 {
			change := func(*api.ServiceSpec) {}
			if i%4 == 0 {
				change = func(spec *api.ServiceSpec) {
					spec.Ports = []api.PortSpec{{Mode: api.PortModeHost, PublishedPort: uint16(8000 + i/8), ContainerPort: 80}}
				}
			}
			specs = append(specs, named(fmt.Sprintf("s%d", i), int32(1+i%2), change))
		}
		c.deploy(t.Context(), specs)
		t.Logf("%d of %d plans were stale", c.stale, c.plans)
		if c.stale*20 > c.plans || len(c.errs) > 0 {
			t.Errorf("%d of %d plans were stale, more than 5 %%; not deployed: %v", c.stale, c.plans, c.errs)
		}
		var on []int
		for _, m := range s.machines {
			on = append(on, len(m.containers))
		}
		if slices.Max(on)-slices.Min(on) > 4 {
			t.Errorf("the containers are spread %v", on)
		}
	})
}

func TestServicesThatAreDeployedAtOnceDoNotTakeOneThing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSimulation(4)
		s.invariants = []func(*simulation) string{neverOnePortTwice, neverTwoCopiesOfAVolume}
		c := &crowd{s: s, workers: 10}
		var specs []api.ServiceSpec
		for i := range 4 {
			specs = append(specs, named(fmt.Sprintf("port-%d", i), 1, port80))
		}
		for i := range 6 {
			specs = append(specs, named(fmt.Sprintf("volume-%d", i), 1, data))
		}
		c.deploy(t.Context(), specs)
		if len(s.violations) > 0 || len(c.errs) > 0 {
			t.Errorf("violations: %v; not deployed: %v", s.violations, c.errs)
		}
		for _, spec := range specs {
			if len(s.of(spec.Name)) != 1 {
				t.Errorf("service %s has %v", spec.Name, s.of(spec.Name))
			}
		}
	})
}

// waits tells whether there may be a place when a plan has ended.
func waits(u *scheduler.UnschedulableError) bool { return len(u.Coming) > 0 }
