package deployment_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/operatorkit/operatorkit/internal/crowd"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// crowdOn deploys services as a busy operator does.
func crowdOn(s *simulation) *crowd.Crowd {
	return &crowd.Crowd{Client: s, Workers: 10, Later: 50 * time.Millisecond, Again: 500 * time.Millisecond}
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
		c := crowdOn(s)
		c.Deploy(t.Context(), crowd.Services(200, "app:v1"))
		t.Logf("%d of %d plans were stale", c.Stale, c.Plans)
		if c.Stale*20 > c.Plans || len(c.Errors) > 0 {
			t.Errorf("%d of %d plans were stale, more than 5 %%; not deployed: %v", c.Stale, c.Plans, c.Errors)
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
		c := crowdOn(s)
		var specs []api.ServiceSpec
		for i := range 4 {
			specs = append(specs, named(fmt.Sprintf("port-%d", i), 1, port80))
		}
		for i := range 6 {
			specs = append(specs, named(fmt.Sprintf("volume-%d", i), 1, data))
		}
		c.Deploy(t.Context(), specs)
		if len(s.violations) > 0 || len(c.Errors) > 0 {
			t.Errorf("violations: %v; not deployed: %v", s.violations, c.Errors)
		}
		for _, spec := range specs {
			if len(s.of(spec.Name)) != 1 {
				t.Errorf("service %s has %v", spec.Name, s.of(spec.Name))
			}
		}
	})
}
