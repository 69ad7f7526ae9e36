package deployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// Why a deployment does not run, to be found with errors.Is.
var (
	// ErrAlreadyRun is a deployment that has run, or runs. Make another one.
	ErrAlreadyRun = errors.New("the deployment has been run already; make a new one")
	// ErrStalePlan is a plan that was made for another state of the machines: what it depends on has changed, or another plan that is
	// being carried out is about to change it. The error says what. Make a new deployment, and look at its plan.
	ErrStalePlan = errors.New("what is on the machines has changed since the plan was made")
)

// Deployment manages the process of creating or updating a service to match a specification. It plans once and runs once. Make one
// with NewDeployment; its methods are safe for concurrent use, its fields must not change after the first call.
type Deployment struct {
	// Service is the service as it is. Plan sets it unless it is set; nil is a service that is not known.
	Service *api.Service
	// Spec is what the service should be. Plan resolves it.
	Spec api.ServiceSpec
	// Strategy makes the plan.
	Strategy Strategy
	// Resolver resolves Spec. Default: one with the domain of the cluster, which does not pin images.
	Resolver *ServiceSpecResolver
	// Progress is told what happens while the plan runs, as by WithProgress. Default: nobody is.
	Progress func(ProgressEvent)
	// Completed says of a job that it is known to have completed, also if its container is not there: then it is not run. Attempt is the
	// attempt to be made of a job: one that failed is not run again in the attempt in which it did.
	Completed bool
	Attempt   string
	// State is what is on the machines. Default: they are asked when the plan is made.
	State *scheduler.ClusterState

	cli  Client
	mu   sync.Mutex
	plan *Plan
	// ran tells that Run was called and had a plan.
	ran bool
}

// NewDeployment creates a new deployment for the given service specification. If strategy is nil, a default RollingStrategy is used. A
// specification without a name is that of a new service: it gets a name that no service has.
func NewDeployment(cli Client, spec api.ServiceSpec, strategy Strategy) *Deployment {
	if strategy == nil {
		strategy = &RollingStrategy{}
	}
	return &Deployment{cli: cli, Spec: spec, Strategy: strategy}
}

// Plan returns a plan of operations to reconcile the service to the specification. It changes nothing on machines. If a plan has been
// made already, the same one is returned.
func (d *Deployment) Plan(ctx context.Context) (Plan, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.makePlan(ctx); err != nil {
		return Plan{}, err
	}
	return *d.plan, nil
}

func (d *Deployment) makePlan(ctx context.Context) error {
	if d.plan != nil {
		return nil
	}
	if d.State == nil {
		var err error
		if d.State, err = scheduler.Inspect(ctx, d.cli); err != nil {
			return err
		}
	}
	named := d.Spec
	if d.Service != nil {
		named.Name = cmp.Or(named.Name, d.Service.Name)
	}
	resolver, err := d.resolver(ctx)
	if err != nil {
		return err
	}
	spec, err := resolver.resolveNew(named, d.State)
	if err != nil {
		return err
	}
	if d.Service == nil {
		d.Service = serviceIn(d.State, spec.Name)
	}
	if d.Service != nil && d.Service.Name != spec.Name {
		return fmt.Errorf("service %s can't be called %s: deploy that as a new service, and remove this one", d.Service.Name, spec.Name)
	}
	if spec.Mode == api.ServiceModeJob {
		job := api.Service{Name: spec.Name, Mode: spec.Mode}
		if d.Service != nil {
			job = *d.Service
		}
		job.Completed, job.Attempt = d.Completed, d.Attempt
		d.Service = &job
	}
	plan, err := d.Strategy.Plan(ctx, &snapshot{d.cli, d.State}, d.Service, spec)
	if err != nil {
		return fmt.Errorf("plan service %s: %w", spec.Name, err)
	}
	d.Spec, d.plan = spec, &plan
	return nil
}

func (d *Deployment) resolver(ctx context.Context) (*ServiceSpecResolver, error) {
	if d.Resolver != nil {
		return d.Resolver, nil
	}
	resolver := &ServiceSpecResolver{}
	if !needsDomain(&d.Spec) {
		return resolver, nil
	}
	domain, err := d.cli.GetDomain(ctx)
	if err != nil && !errors.Is(err, api.ErrNotFound) {
		return nil, fmt.Errorf("get the domain of the cluster: %w", err)
	}
	resolver.ClusterDomain = domain
	return resolver, nil
}

// Run executes the plan and returns it; it makes one if there is none. The plan says the ID of the service that was created or
// updated.
//
// A plan that was made for another state is ErrStalePlan, and a second call ErrAlreadyRun. When ctx ends, or the plan fails, what was
// done stays (unless a rollback was asked for), what was under way is brought to an end or undone, and the next plan goes on from
// there. See ErrPaused, ErrRolledBack and PartialError.
func (d *Deployment) Run(ctx context.Context) (Plan, error) {
	plan, err := d.start(ctx)
	if err != nil {
		return Plan{}, err
	}
	if d.Progress != nil {
		ctx = WithProgress(ctx, d.Progress)
	}
	if err := plan.Run(ctx, d.cli); err != nil {
		return *plan, fmt.Errorf("deploy service %s: %w", plan.ServiceName, err)
	}
	return *plan, nil
}

// start returns the plan if it may run.
func (d *Deployment) start(ctx context.Context) (*Plan, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ran {
		return nil, ErrAlreadyRun
	}
	if err := d.makePlan(ctx); err != nil {
		return nil, err
	}
	d.ran = true
	return d.plan, nil
}
