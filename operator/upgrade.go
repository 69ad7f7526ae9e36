package operator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/operator/internal/record"
	"github.com/operatorkit/operatorkit/operator/internal/upgrade"
)

// The defaults of an UpgradeConfig.
const (
	DefaultMinReady         = 10 * time.Second
	DefaultProgressDeadline = 10 * time.Minute
	DefaultMaxFailures      = 1
)

// UpgradeConfig limits how many objects a new build of the operator changes at a time.
//
// A build is the hash of the executable and of its arguments. An upgrade starts when an operator
// starts to work with another build than the last one. From then on, the first resource that would
// change something for an object, or that can't predict it, asks for a place. There are as many
// places as the budget says. An object without a place is left exactly as it is, its status
// included, also if the new build fails for it: it then waits for a place, too.
//
// An object gives its place back when it has been ready for MinReady. If it is not ready within
// ProgressDeadline, or fails with a permanent error, it is a failure. At MaxFailures failures, or
// when failed objects have all places, the upgrade halts until somebody resumes it, finishes it, or
// runs another build. An object that was not ready before it got its place is no failure: it gives
// the place back after ProgressDeadline. One in a framework.Fight gives it back after MinReady.
//
// These need no place: new objects, deletions, objects whose users have changed them (their
// generation is newer than status.observedGeneration), and the status of the object itself. Changes
// that correct what happened while the operator was down need one.
//
// The annotation operatorkit.io/upgrade of an object decides otherwise. While it is "hold", nothing
// of the object changes that would need a place, also after the upgrade. "now" lets it be changed
// without a place.
//
// An upgrade is finished when every object has been reconciled by the new build, none waits for a
// place, and none has one. Objects on hold don't keep it from being finished. The state is in a
// ConfigMap, see Config.StateNamespace. Its key is "upgrade".
type UpgradeConfig struct {
	// Budget is the number of objects that may have a place: a number, such as "5", or a percentage
	// of all objects of all frameworks, such as "2%", which is rounded up. It is 1000 at most.
	// Default: empty, upgrades are not limited.
	Budget string
	// MinReady is how long an object must be ready before it gives its place back. Default:
	// DefaultMinReady (10 s).
	MinReady time.Duration
	// ProgressDeadline is how long an object may take from its admission until it is ready.
	// Default: DefaultProgressDeadline (10 min).
	ProgressDeadline time.Duration
	// MaxFailures is the number of failures at which the upgrade halts. Default: DefaultMaxFailures
	// (1).
	MaxFailures int
	// Canaries selects the objects that get places first. Others get one when all canaries are
	// done. Default: none, the order is that of a hash of the names.
	Canaries labels.Selector
	// Ready reports whether an object is ready. It is called with copies, for one object at a time.
	// Default: its condition Ready is True for its newest generation. Without that condition,
	// kstatus decides. Objects that are not Kubernetes objects are ready once they are reconciled.
	Ready func(obj any) bool
	// Build identifies the build. Default: the hash of the executable and the arguments of this
	// process.
	Build string
}

func (c *UpgradeConfig) enabled() bool { return c.Budget != "" }

func (c *UpgradeConfig) setDefaults() {
	c.MinReady = cmp.Or(c.MinReady, DefaultMinReady)
	c.ProgressDeadline = cmp.Or(c.ProgressDeadline, DefaultProgressDeadline)
	c.MaxFailures = cmp.Or(c.MaxFailures, DefaultMaxFailures)
}

func (c *UpgradeConfig) validate(wrong *faults.List, config *Config) {
	if !c.enabled() {
		return
	}
	if _, err := parseBudget(c.Budget); err != nil {
		wrong.Add("Upgrade.Budget %s", err)
	}
	wrong.If(min(c.MinReady, c.ProgressDeadline) < 0 || c.MaxFailures < 0, "Upgrade.MinReady, ProgressDeadline and MaxFailures must not be negative")
	wrong.If(config.RESTConfig == nil, "RESTConfig must not be nil when Upgrade.Budget is set")
	wrong.If(config.stateNamespace() == "", "StateNamespace must not be empty when Upgrade.Budget is set")
}

// maxBudget is the largest budget. It bounds the size of the state.
const maxBudget = 1000

// parseBudget returns the function that computes the budget for a number of objects.
func parseBudget(text string) (func(objects int) int, error) {
	limit := intstr.Parse(text)
	number, err := intstr.GetScaledValueFromIntOrPercent(&limit, 100, true)
	if err != nil || number < 1 || number > maxBudget || number > 100 && limit.Type == intstr.String {
		return nil, fmt.Errorf("must be a number from 1 to %d, such as 5, or a percentage from 1%% to 100%%, is %q", maxBudget, text)
	}
	return func(objects int) int {
		number, _ := intstr.GetScaledValueFromIntOrPercent(&limit, objects, true)
		return min(max(1, number), maxBudget)
	}, nil
}

// newUpgrade returns the part of the operator that limits upgrades.
func (o *Operator) newUpgrade() (*upgrade.Controller, error) {
	c := o.config.Upgrade
	build := upgrade.Build{ID: c.Build, Version: o.config.Sharding.Version}
	var err error
	if build.ID == "" {
		if build, err = upgrade.ThisBuild(build.Version); err != nil {
			return nil, fmt.Errorf("operator.Config: Upgrade.Build: %w", err)
		}
	}
	budget, err := parseBudget(c.Budget)
	if err != nil {
		return nil, err
	}
	apiClient, err := stateClient(o.config.RESTConfig, o.httpClient)
	if err != nil {
		return nil, err
	}
	rules := upgrade.Rules{Budget: budget, MaxFailures: c.MaxFailures}
	if o.sharing != nil {
		rules.Settle = o.config.LeaderElection.LeaseDuration
	}
	return upgrade.New(upgrade.Config{
		Record: record.Record[upgrade.State]{
			Client: apiClient, Namespace: o.config.stateNamespace(), Name: o.config.stateName(), Key: "upgrade",
		},
		Build: build, Rules: rules, MinReady: c.MinReady, ProgressDeadline: c.ProgressDeadline, Ready: c.Ready, Canaries: c.Canaries,
		Frameworks: o.config.Frameworks, Share: o.upgradeShare, Operator: o.config.Name, Logger: o.config.Logger.With("operator", o.config.Name),
	}), nil
}

// upgradeShare returns the share of this replica in an upgrade, and nil while it must not write.
func (o *Operator) upgradeShare() *upgrade.Share {
	if fence := o.config.LeaderElection.Fence; fence != nil && fence.Check() != nil {
		return nil
	}
	s := o.sharing
	if s == nil {
		const one = "operator"
		return &upgrade.Share{Replica: one, Live: []string{one}, Leads: true, Owns: func(informer.Key) bool { return true }}
	}
	_, live := s.member.view()
	owned := s.holder.Part().Owned
	return &upgrade.Share{
		Replica: s.This(), Live: slices.Collect(maps.Keys(live)), Leads: s.leads(),
		Owns: func(key informer.Key) bool { return owned.Has(slotOf(key)) },
	}
}

// The reasons of the events about upgrades.
const (
	ReasonUpgradeFailed = upgrade.ReasonFailed
	ReasonUpgradeHalted = upgrade.ReasonHalted
)

// registerUpgrade registers the metrics of upgrades.
func (o *Operator) registerUpgrade() error {
	for _, gauge := range []struct {
		name, help string
		value      func(upgrade.State) int
	}{
		{"running", "Whether an upgrade is under way: 1 until it is finished, also while it is paused or halted.", func(s upgrade.State) int {
			return oneIf(s.Phase != "" && s.Phase != upgrade.Finished)
		}},
		{"halted", "Whether the upgrade is halted after failures: 1 or 0.", func(s upgrade.State) int { return oneIf(s.Phase == upgrade.Halted) }},
		{"places_used", "Objects that the upgrade has admitted and that are not ready yet.", func(s upgrade.State) int { return len(s.Places) }},
		{"held_objects", "Objects that wait for a place, by the last reports of the replicas.", func(s upgrade.State) int { return s.Total().Held }},
		{"failures", "Failures of the upgrade since it has started or was resumed.", func(s upgrade.State) int { return s.Failures }},
		{"done_objects", "Objects that the upgrade has admitted and that became ready.", func(s upgrade.State) int { return s.Done }},
	} {
		options := prometheus.GaugeOpts{
			Name: "operatorkit_operator_upgrade_" + gauge.name, Help: gauge.help, ConstLabels: prometheus.Labels{"operator": o.config.Name},
		}
		read := func() float64 { return float64(gauge.value(o.upgrade.State())) }
		if err := o.config.Registry.Register(prometheus.NewGaugeFunc(options, read)); err != nil {
			return err
		}
	}
	return nil
}

func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}
