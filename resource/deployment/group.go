package deployment

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// Group deploys several services as one: their places are worked out together, so that those that share a volume come to one machine
// and those with one port to several. When that can't be, nothing is done. It plans once and runs once. Make one with NewGroup; its
// methods are safe for concurrent use, its fields must not change after the first call.
//
// What runs stays where it is, and what it holds is free for the others only after it has gone: one service does not move for the sake
// of another.
type Group struct {
	// Specs are what the services should be, in the order in which they are deployed. Plan resolves them.
	Specs []api.ServiceSpec
	// Strategy makes the plans. It must not have a state of its own.
	Strategy Strategy
	// Resolver resolves Specs. Default: that of Deployment.
	Resolver *ServiceSpecResolver
	// Progress is told what happens while the plan runs. Default: nobody is.
	Progress func(ProgressEvent)

	cli  Client
	mu   sync.Mutex
	plan *GroupPlan
	ran  bool
}

// NewGroup makes a deployment of several services. If strategy is nil, a default RollingStrategy is used.
func NewGroup(cli Client, specs []api.ServiceSpec, strategy Strategy) *Group {
	if strategy == nil {
		strategy = &RollingStrategy{}
	}
	return &Group{cli: cli, Specs: specs, Strategy: strategy}
}

// GroupPlan is what brings several services to their specifications.
type GroupPlan struct {
	// Plans are those of the services, in the order in which they are carried out. The first that fails ends it.
	Plans []Plan

	// planned are the same in the order in which they were made: each counts on what those before take.
	planned []*Plan
}

// Empty tells whether there is nothing to do.
func (p *GroupPlan) Empty() bool {
	return !slices.ContainsFunc(p.Plans, func(o Plan) bool { return !o.Empty() })
}

// Format returns the plan for people. Without a resolver it shows the names that were there when it was made.
func (p *GroupPlan) Format(resolver NameResolver) string {
	texts := make([]string, len(p.Plans))
	for i := range p.Plans {
		texts[i] = p.Plans[i].Format(resolver)
	}
	return strings.Join(texts, "")
}

// MarshalJSON returns the plan for programs.
func (p *GroupPlan) MarshalJSON() ([]byte, error) {
	plans := make([]*Plan, len(p.Plans))
	for i := range p.Plans {
		plans[i] = &p.Plans[i]
	}
	return json.Marshal(struct {
		Plans []*Plan `json:"plans"`
	}{plans})
}

// Run carries the plan out, as Plan.Run does for one service: what all of them take is reserved until the last one is done.
func (p *GroupPlan) Run(ctx context.Context, cli Client) error {
	if p.Empty() {
		return nil
	}
	release, err := hold(ctx, cli, p.planned...)
	if err != nil {
		return err
	}
	defer release()
	for i := range p.Plans {
		if err := p.Plans[i].Execute(withNames(ctx, p.Plans[i].names), cli); err != nil {
			return fmt.Errorf("deploy service %s: %w", p.Plans[i].ServiceName, err)
		}
	}
	return nil
}

// Plan returns a plan for all services, or why there is none. It changes nothing on machines. If a plan has been made already, the same
// one is returned.
func (g *Group) Plan(ctx context.Context) (GroupPlan, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.makePlan(ctx); err != nil {
		return GroupPlan{}, err
	}
	return *g.plan, nil
}

// Run carries the plan out and returns it; it makes one if there is none. See Deployment.Run.
func (g *Group) Run(ctx context.Context) (GroupPlan, error) {
	g.mu.Lock()
	if g.ran {
		g.mu.Unlock()
		return GroupPlan{}, ErrAlreadyRun
	}
	err := g.makePlan(ctx)
	g.ran = err == nil
	g.mu.Unlock()
	if err != nil {
		return GroupPlan{}, err
	}
	if g.Progress != nil {
		ctx = WithProgress(ctx, g.Progress)
	}
	return *g.plan, g.plan.Run(ctx, g.cli)
}

func (g *Group) makePlan(ctx context.Context) error {
	if g.plan != nil {
		return nil
	}
	state, err := scheduler.Inspect(ctx, g.cli)
	if err != nil {
		return err
	}
	specs, names := make([]api.ServiceSpec, len(g.Specs)), map[string]bool{}
	for _, spec := range g.Specs {
		names[spec.Name] = true
	}
	for i, spec := range g.Specs {
		d := Deployment{cli: g.cli, Spec: spec, Resolver: g.Resolver}
		resolver, err := d.resolver(ctx)
		if err == nil {
			specs[i], err = resolver.resolveNew(spec, state, names)
		}
		if err != nil {
			return err
		}
		names[specs[i].Name] = true
	}
	if err := checkTogether(specs); err != nil {
		return err
	}
	s := &search{group: g, specs: specs, tried: map[string]bool{}}
	s.order(state)
	plans, err := s.plan(ctx, state, nil)
	if err != nil {
		return err
	}
	g.plan = &GroupPlan{Plans: make([]Plan, len(specs))}
	for i, plan := range plans {
		g.plan.Plans[s.turns[i]] = plan
	}
	for _, turn := range s.turns {
		g.plan.planned = append(g.plan.planned, &g.plan.Plans[turn])
	}
	g.Specs = specs
	return nil
}

// checkTogether finds what several specifications say in two ways.
func checkTogether(specs []api.ServiceSpec) error {
	var wrong []error
	services := map[string]bool{}
	type said struct {
		by     string
		volume api.VolumeSpec
	}
	volumes := map[string]said{}
	for _, spec := range specs {
		if services[spec.Name] {
			wrong = append(wrong, fmt.Errorf("there are two services of the name %s", spec.Name))
		}
		services[spec.Name] = true
		for _, v := range spec.MountedVolumes(api.VolumeTypeVolume) {
			first, known := volumes[v.Name]
			if !known {
				volumes[v.Name] = said{spec.Name, v}
				continue
			}
			if first.by != spec.Name && !sameVolume(first.volume, v) {
				wrong = append(wrong, fmt.Errorf("services %s and %s describe volume %s in two ways", first.by, spec.Name, v.Name))
			}
		}
	}
	return errors.Join(wrong...)
}

// sameVolume tells whether two descriptions are those of one volume.
func sameVolume(a, b api.VolumeSpec) bool {
	for _, v := range []*api.VolumeSpec{&a, &b} {
		v.Type = api.VolumeTypeVolume
		driver := api.VolumeDriver{Name: v.DriverName()}
		if v.Driver != nil {
			driver.Options = v.Driver.Options
		}
		v.Driver = &driver
	}
	return equality.Semantic.DeepEqual(a, b)
}

// searches is how many ways to place a group are tried before it is given up.
const searches = 1000

// search looks for places for several services. It plans one after the other, and when there is none for one of them tries again with one
// of those that are in its way kept away from where it is.
type search struct {
	group *Group
	specs []api.ServiceSpec
	// turns are the numbers of specs in the order in which they are planned.
	turns []int
	tried map[string]bool
}

// order puts those first that have the fewest machines to choose from.
func (s *search) order(state *scheduler.ClusterState) {
	choice := make([]int, len(s.specs))
	for i, spec := range s.specs {
		s.turns = append(s.turns, i)
		if spec.Mode == api.ServiceModeGlobal && s.sharesVolume(&spec) {
			// It comes where the volume is.
			choice[i] = math.MaxInt
			continue
		}
		if sched, err := scheduler.New(state, spec); err == nil && spec.Mode != api.ServiceModeGlobal {
			choice[i] = sched.Eligible() - spec.DesiredReplicas() + 1
		}
	}
	slices.SortStableFunc(s.turns, func(a, b int) int { return cmp.Compare(choice[a], choice[b]) })
}

// sharesVolume reports whether a service shares a volume with one that is not global.
func (s *search) sharesVolume(spec *api.ServiceSpec) bool {
	return slices.ContainsFunc(spec.MountedVolumes(api.VolumeTypeVolume), func(v api.VolumeSpec) bool {
		return slices.ContainsFunc(s.specs, func(other api.ServiceSpec) bool {
			mounted := other.MountedVolumes(api.VolumeTypeVolume)
			return other.Mode != api.ServiceModeGlobal && slices.ContainsFunc(mounted, func(o api.VolumeSpec) bool { return o.Name == v.Name })
		})
	})
}

// plan returns the plans in the order of turns. The error is why the first way did not work.
func (s *search) plan(ctx context.Context, state *scheduler.ClusterState, away []scheduler.Pair) ([]Plan, error) {
	plans, err := s.tryTo(ctx, state.KeepingAway(away))
	s.tried[keyOf(away)] = true
	var nowhere *scheduler.UnschedulableError
	if !errors.As(err, &nowhere) {
		return plans, err
	}
	for _, way := range nowhere.Coming {
		// Plans of others that run now don't go out of the way.
		mine := slices.ContainsFunc(s.specs, func(spec api.ServiceSpec) bool { return spec.Name == way.Service })
		next := append(slices.Clone(away), way)
		if !mine || slices.Contains(away, way) || len(s.tried) >= searches || s.tried[keyOf(next)] {
			continue
		}
		if plans, err := s.plan(ctx, state, next); err == nil {
			return plans, nil
		}
	}
	return nil, err
}

// keyOf says which services are kept away from which machines.
func keyOf(away []scheduler.Pair) string {
	return fmt.Sprint(slices.SortedFunc(slices.Values(away), func(a, b scheduler.Pair) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.MachineID, b.MachineID))
	}))
}

// tryTo plans one service after the other.
func (s *search) tryTo(ctx context.Context, state *scheduler.ClusterState) ([]Plan, error) {
	var plans []Plan
	for _, i := range s.turns {
		spec := s.specs[i]
		plan, err := s.group.Strategy.Plan(ctx, &snapshot{s.group.cli, state}, serviceIn(state, spec.Name), spec)
		if err != nil {
			return nil, fmt.Errorf("plan service %s: %w", spec.Name, err)
		}
		plans = append(plans, plan)
		state = state.With(plan.taking(state.Owner))
	}
	return plans, nil
}
