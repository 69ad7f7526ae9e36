package deployment_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

var errViolated = errors.New("an invariant was violated")

// scenario is a service that is deployed, disturbed, and deployed in other versions with failures anywhere.
type scenario struct {
	machines  int
	versions  []version
	strategy  int
	exited    []int
	recreate  bool
	forgotten bool
	// drained and closed are numbers of machines that get no new containers after the first version, from 1; 0 is none.
	drained, closed int
}

// version is a specification, and what fails while it is deployed.
type version struct {
	spec   api.ServiceSpec
	faults map[int]fault
	// cancelAfter cancels the deployment at a time; 0 is never.
	cancelAfter time.Duration
}

func (s *scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d machines, strategy %d, exited %v, recreate %v, forgotten %v, drained %d, closed %d\n",
		s.machines, s.strategy, s.exited, s.recreate, s.forgotten, s.drained, s.closed)
	for _, v := range s.versions {
		fmt.Fprintf(&b, "  %s ×%d %s ports %v volumes %v update %+v check %v faults %v cancel %s\n", v.spec.Container.Image, v.spec.DesiredReplicas(),
			v.spec.Mode, v.spec.Ports, len(v.spec.Volumes), v.spec.Update, v.spec.Container.HealthCheck != nil, v.faults, v.cancelAfter)
	}
	return b.String()
}

func drawScenario(t *rapid.T, kinds []fault) *scenario {
	s := &scenario{
		machines:  rapid.IntRange(1, 4).Draw(t, "machines"),
		strategy:  rapid.IntRange(0, 2).Draw(t, "strategy"),
		exited:    rapid.SliceOfN(rapid.IntRange(0, 5), 0, 2).Draw(t, "exited"),
		recreate:  rapid.IntRange(0, 5).Draw(t, "recreate") == 0,
		forgotten: rapid.Bool().Draw(t, "forgotten"),
		drained:   max(0, rapid.IntRange(-2, 2).Draw(t, "drained")),
		closed:    max(0, rapid.IntRange(-4, 2).Draw(t, "closed")),
	}
	isGlobal := rapid.IntRange(0, 4).Draw(t, "global") == 0
	ports := rapid.IntRange(0, 3).Draw(t, "ports") == 0
	volume := rapid.IntRange(0, 2).Draw(t, "volume") == 0
	check := rapid.Bool().Draw(t, "check")
	for i := range rapid.IntRange(2, 4).Draw(t, "versions") {
		image := fmt.Sprintf("app:v%d", rapid.IntRange(1, 3).Draw(t, "tag"))
		if i > 0 && rapid.IntRange(0, 3).Draw(t, "bad") == 0 {
			image = fmt.Sprintf("bad:v%d", i)
		}
		v := version{spec: web(image, int32(rapid.IntRange(0, 5).Draw(t, "replicas"))), faults: map[int]fault{}}
		if i == 0 {
			v.spec.Replicas = new(max(1, *v.spec.Replicas))
		}
		if isGlobal {
			global(&v.spec)
		}
		if ports {
			port80(&v.spec)
		}
		if volume {
			data(&v.spec)
		}
		if check {
			checked(&v.spec)
		}
		if memory := rapid.SampledFrom([]string{"", "256Mi", "512Mi"}).Draw(t, "memory"); memory != "" {
			v.spec.Container.Resources.Memory = quantity(memory)
		}
		if rapid.Bool().Draw(t, "hook") {
			hook("migrate")(&v.spec)
		}
		u := &v.spec.Update
		u.Parallelism = rapid.IntRange(0, 3).Draw(t, "parallelism")
		u.FailureAction = rapid.SampledFrom([]api.FailureAction{"", api.FailurePause, api.FailureContinue, api.FailureRollback}).Draw(t, "action")
		u.MaxFailurePercent = rapid.SampledFrom([]int{0, 0, 50}).Draw(t, "percent")
		u.Order = rapid.SampledFrom([]api.UpdateOrder{"", "", api.OrderStartFirst, api.OrderStopFirst}).Draw(t, "order")
		if v.spec.Validate() != nil {
			u.Order = ""
		}
		if i > 0 {
			for range rapid.IntRange(0, 3).Draw(t, "faults") {
				v.faults[rapid.IntRange(1, 60).Draw(t, "call")] = rapid.SampledFrom(kinds).Draw(t, "fault")
			}
			v.cancelAfter = rapid.SampledFrom([]time.Duration{0, 0, time.Second, 7 * time.Second}).Draw(t, "cancel")
		}
		s.versions = append(s.versions, v)
	}
	return s
}

func (s *scenario) strategyOf(recreate bool) deployment.Strategy {
	switch s.strategy {
	case 1:
		return &deployment.BlueGreenStrategy{ForceRecreate: recreate, Hold: time.Second}
	case 2:
		return &deployment.CanaryStrategy{ForceRecreate: recreate, Steps: []deployment.CanaryStep{{Percent: 30, Pause: 5 * time.Second}}}
	}
	return &deployment.RollingStrategy{ForceRecreate: recreate}
}

// play deploys the versions one after the other, and the last one that works to its end. It returns what was wrong.
func (s *scenario) play(ctx context.Context, c *simulation) error {
	for _, m := range c.machines {
		m.forgotten = s.forgotten
	}
	for i, v := range s.versions {
		before := c.invariants
		c.mu.Lock()
		c.settle()
		c.calls, c.faults = 0, v.faults
		c.invariants = append(slices.Clone(before), s.invariants(c, v.spec)...)
		c.mu.Unlock()
		err := s.try(ctx, c, v, s.recreate && i == 1)
		c.restart()
		c.invariants = before
		if len(c.violations) > 0 {
			return fmt.Errorf("version %d: %s, after: %w", i, strings.Join(c.violations, "; "), errors.Join(errViolated, err))
		}
		if i == 0 {
			s.disturb(c)
			s.close(c)
		}
	}
	last := s.versions[len(s.versions)-1].spec
	last.Container.Image = "app:final"
	return s.converge(ctx, c, last)
}

// invariants are what must hold while a version is deployed.
func (s *scenario) invariants(c *simulation, spec api.ServiceSpec) []func(*simulation) string {
	invariants := []func(*simulation) string{neverOnePortTwice}
	if spec.Mode == api.ServiceModeReplicated || spec.Mode == "" {
		invariants = append(invariants, neverTwoCopiesOfAVolume)
	}
	if spec.Mode == api.ServiceModeGlobal || spec.DesiredReplicas() == 1 {
		invariants = append(invariants, neverTwoVersionsOfAVolume("web", spec.Mode == api.ServiceModeGlobal))
	}
	if s.strategy == 0 && spec.Update.FailureAction != api.FailureRollback {
		// What is undone is as it was, where it was.
		invariants = append(invariants, neverMoreOnClosed(c))
	}
	// A single container with a volume is never replaced start-first.
	possible := len(spec.Ports) == 0 && (len(spec.Volumes) == 0 || c.working("web") > 1)
	told := spec.Update.Order == api.OrderStartFirst || spec.Update.Order == "" && len(spec.Volumes) == 0
	if possible && told {
		if spec.Mode == api.ServiceModeGlobal && s.drained > 0 {
			return invariants
		}
		if spec.Mode == api.ServiceModeGlobal {
			return append(invariants, neverFewerThan("web", c.machinesWith("web"), (*simulation).machinesWith))
		}
		invariants = append(invariants, neverFewerThan("web", min(c.working("web"), spec.DesiredReplicas()), (*simulation).working))
	}
	return invariants
}

func (s *scenario) try(ctx context.Context, c *simulation, v version, recreate bool) error {
	if v.cancelAfter > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, v.cancelAfter)
		defer cancel()
	}
	_, err := deploy(ctx, c, v.spec, s.strategyOf(recreate))
	return err
}

// disturb stops containers behind the controller's back.
func (s *scenario) disturb(c *simulation) {
	var all []*simulatedContainer
	for _, m := range c.machines {
		all = append(all, m.containers...)
	}
	for _, i := range s.exited {
		if i < len(all) {
			all[i].State, all[i].Health = api.ContainerExited, api.HealthNone
		}
	}
}

// close keeps new containers away from machines.
func (s *scenario) close(c *simulation) {
	if s.drained > 0 && s.drained <= s.machines {
		c.machines[s.drained-1].Drain = true
	}
	if s.closed > 0 && s.closed <= s.machines {
		c.machines[s.closed-1].Unschedulable = "it is being repaired"
	}
}

// converge deploys without failures until there is nothing to do, and looks at what is there.
func (s *scenario) converge(ctx context.Context, c *simulation, spec api.ServiceSpec) error {
	strategy := s.strategyOf(false)
	if s.strategy == 1 {
		strategy = nil // it may not be possible
	}
	for round := 0; ; round++ {
		c.mu.Lock()
		c.invariants = s.invariants(c, spec)
		c.mu.Unlock()
		plan, err := deploy(ctx, c, spec, strategy)
		if u := (*scheduler.UnschedulableError)(nil); errors.As(err, &u) && (len(spec.Ports) > 0 || s.drained+s.closed > 0) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		if len(c.violations) > 0 {
			return fmt.Errorf("round %d: %s", round, strings.Join(c.violations, "; "))
		}
		if plan.Empty() {
			break
		}
		if round == 3 {
			return fmt.Errorf("there is still something to do: %s", plan.Format(nil))
		}
	}
	have := c.of("web")
	want := spec.DesiredReplicas()
	if spec.Mode == api.ServiceModeGlobal && s.drained+s.closed > 0 {
		want = len(have) // as many machines as are open, and those that are closed and have one still
	} else if spec.Mode == api.ServiceModeGlobal {
		want = len(c.machines)
	}
	if len(have) != want {
		return fmt.Errorf("there are %d containers, not %d: %v", len(have), want, have)
	}
	for _, h := range have {
		if spec.Mode == api.ServiceModeGlobal && strings.HasPrefix(h, fmt.Sprintf("m%d/", s.closed)) {
			continue // what can't be replaced stays
		}
		if !strings.HasSuffix(h, "/app:final/running") && !strings.HasSuffix(h, "/app:final/healthy") {
			return fmt.Errorf("%s is not as it should be", h)
		}
	}
	return nil
}

// check plays a scenario on a clock of its own.
func check(t *testing.T, r *rapid.T, s *scenario) {
	var err error
	var log []string
	synctest.Test(t, func(t *testing.T) {
		c := newSimulation(s.machines)
		err = s.play(t.Context(), c)
		log = c.log
	})
	if err != nil {
		r.Fatalf("%v\n%s\n  %s", err, s, strings.Join(log, "\n  "))
	}
}

func TestPlansHoldWhateverFails(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) { check(t, r, drawScenario(r, []fault{lost, unanswered})) })
}

func TestPlansHoldWhenTheControllerIsKilled(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) { check(t, r, drawScenario(r, []fault{killed, killedAfter})) })
}

func TestPlansHoldWhenMachinesAreLost(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) { check(t, r, drawScenario(r, []fault{partition, lost})) })
}
