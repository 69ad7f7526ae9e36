package upgrade

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/giantswarm/micrologger"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/access"
	"github.com/operatorkit/operatorkit/operator/internal/record"
)

// Config configures a Controller. All fields without a comment about a default are required.
type Config struct {
	// Record is where the replicas share the state.
	Record record.Record[State]
	Build  Build
	Rules  Rules
	// MinReady is how long an object must be ready before it gives its place back, and
	// ProgressDeadline is how long that may take.
	MinReady, ProgressDeadline time.Duration
	// Ready reports whether an object is ready. It is called with copies. Default: IsReady.
	Ready func(obj any) bool
	// Canaries selects the objects that go first. Default: none.
	Canaries   labels.Selector
	Frameworks []*framework.Framework
	// Share returns the share of this replica in the work, and nil while it must not write.
	Share func() *Share
	// Operator is the name of the operator, and of its Deployment in the namespace of Record.
	Operator string
	Logger   micrologger.Logger
}

// Share is the share of a replica in the work.
type Share struct {
	// Replica is the name of the replica, and Live are those of all replicas at work.
	Replica string
	Live    []string
	// Leads is true for the replica that starts and finishes upgrades.
	Leads bool
	// Owns reports whether the replica reconciles an object.
	Owns func(key informer.Key) bool
}

// Controller limits the changes of a replica to those that the state admits. It is safe for
// concurrent use.
type Controller struct {
	config     Config
	frameworks map[string]*framework.Framework
	// fault is the text of the error of the last round.
	fault string

	mu sync.Mutex
	// state is the last known state. It is empty before the first round.
	state State
	// objects are those that this process has tried to reconcile in this run of the upgrade.
	objects map[id]*object
}

// New returns a controller, and makes it a policy of the frameworks.
func New(config Config) *Controller {
	if config.Ready == nil {
		config.Ready = IsReady
	}
	config.Rules.Canaries = config.Canaries != nil && !config.Canaries.Empty()
	c := &Controller{config: config, frameworks: map[string]*framework.Framework{}, objects: map[id]*object{}}
	for _, f := range config.Frameworks {
		c.frameworks[f.Name()] = f
		f.Require(policy{c, f.Name()})
		access.EngineOf(f).OnEnd(func(e access.End) { c.ended(id{f.Name(), e.Key}, e) })
	}
	return c
}

// State returns the last known state. It is empty before there is one.
func (c *Controller) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// The pauses between two rounds, and how long one may take.
const (
	roundPeriod  = 500 * time.Millisecond
	idlePeriod   = 5 * time.Second
	roundTimeout = 30 * time.Second
)

// Run writes and follows the state until ctx ends.
func (c *Controller) Run(ctx context.Context) {
	for ctx.Err() == nil {
		pause := idlePeriod
		if phase := c.State().Phase; phase == "" || phase == Running {
			pause = roundPeriod
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
			c.Round(ctx)
		}
	}
}

// Round reads the state, adds what this replica contributes, and follows it. An error is logged, and
// the next round tries again. Round is not called twice at once, nor at the same time as Run.
func (c *Controller) Round(ctx context.Context) {
	share := c.config.Share()
	if share == nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	err := c.round(limited, *share)
	if err != nil && ctx.Err() == nil && err.Error() != c.fault {
		const message = "the state of the upgrade can't be read or written, retrying; objects that wait for it stay unchanged"
		c.config.Logger.Log("level", "error", "message", message, "error", err.Error())
	}
	c.fault = fmt.Sprint(err)
}

func (c *Controller) round(ctx context.Context, share Share) error {
	round, known := c.contribution(time.Now(), share), c.State()
	state, err := c.config.Record.Change(ctx, func(s *State) error {
		if share.Leads && s.Phase == "" {
			// Somebody has deleted the ConfigMap.
			*s = known
			s.Places, s.Reports = slices.Clone(known.Places), maps.Clone(known.Reports)
		}
		if share.Leads {
			s.Begin(c.config.Build, round.Now)
		}
		if s.Run == known.Run {
			s.Apply(c.config.Rules, round)
		}
		return nil
	})
	if err != nil || state.Phase == "" {
		return err // Until the replica that leads has written a state, the last one counts.
	}
	c.follow(state, share)
	c.report(ctx, known, state, share)
	return nil
}

// follow makes a state the one that counts, and enqueues the objects that may go on.
func (c *Controller) follow(now State, share Share) {
	for _, of := range c.admit(now, share) {
		c.frameworks[of.framework].Enqueue(of.key)
	}
}

// admit makes a state the one that counts, and returns the objects that may go on.
func (c *Controller) admit(now State, share Share) (admitted []id) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, was := c.state, c.isCurrent()
	c.state = now
	anotherRun := before.Run != now.Run
	if was && anotherRun {
		clear(c.objects) // What is known was about the last run.
	}
	if !c.isCurrent() {
		return nil
	}
	if anotherRun && before.Phase != "" {
		for _, of := range c.all(share) {
			if c.objects[of] == nil {
				admitted = append(admitted, of)
			}
		}
	}
	for of, o := range c.objects {
		if o.held != "" && (!was || now.Phase == Finished && !o.onHold || now.Has(o.Object)) {
			o.held = ""
			admitted = append(admitted, of)
		}
	}
	if now.Phase == Finished {
		clear(c.objects)
	}
	return admitted
}

// all returns the objects of this replica.
func (c *Controller) all(share Share) (all []id) {
	for name, f := range c.frameworks {
		for _, key := range f.Keys() {
			if share.Owns(key) {
				all = append(all, id{name, key})
			}
		}
	}
	return all
}
