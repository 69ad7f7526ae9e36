package operator

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/access"
	"github.com/operatorkit/operatorkit/internal/faults"
	"github.com/operatorkit/operatorkit/operator/inspector"
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
// place, and none has one. Objects on hold don't keep it from being finished. The state is in a ConfigMap, see Config.StateNamespace. Its key is "upgrade".
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
	// Version is the version of the operator. It is only shown. Default: that of Sharding.
	Version string
}

func (c *UpgradeConfig) enabled() bool { return c.Budget != "" }

func (c *UpgradeConfig) setDefaults(sharding ShardingConfig) {
	if c.MinReady == 0 {
		c.MinReady = DefaultMinReady
	}
	if c.ProgressDeadline == 0 {
		c.ProgressDeadline = DefaultProgressDeadline
	}
	if c.MaxFailures == 0 {
		c.MaxFailures = DefaultMaxFailures
	}
	if c.Version == "" {
		c.Version = sharding.Version
	}
}

func (c *UpgradeConfig) validate(wrong *faults.List, config *Config) {
	if !c.enabled() {
		return
	}
	if _, err := parseBudget(c.Budget); err != nil {
		wrong.Add("Upgrade.Budget %s", err)
	}
	wrong.If(c.MinReady < 0, "Upgrade.MinReady must not be negative, is %s", c.MinReady)
	wrong.If(c.ProgressDeadline < 0, "Upgrade.ProgressDeadline must not be negative, is %s", c.ProgressDeadline)
	wrong.If(c.MaxFailures < 0, "Upgrade.MaxFailures must not be negative, is %d", c.MaxFailures)
	wrong.If(config.RESTConfig == nil, "RESTConfig must not be nil when Upgrade.Budget is set")
	wrong.If(config.stateNamespace() == "", "StateNamespace must not be empty when Upgrade.Budget is set")
}

// maxBudget is the largest budget. It bounds the size of the state.
const maxBudget = 1000

// parseBudget returns the function that computes the budget for a number of objects.
func parseBudget(text string) (func(objects int) int, error) {
	value := intstr.Parse(text)
	number, err := intstr.GetScaledValueFromIntOrPercent(&value, 100, true)
	percent := value.Type == intstr.String
	if err != nil || number < 1 || percent && number > 100 || !percent && number > maxBudget {
		return nil, fmt.Errorf("must be a number from 1 to %d, such as 5, or a percentage from 1%% to 100%%, is %q", maxBudget, text)
	}
	return func(objects int) int {
		if !percent {
			return number
		}
		return min(max(1, int(math.Ceil(float64(objects)*float64(number)/100))), maxBudget)
	}, nil
}

// newUpgrade returns the part of the operator that limits upgrades.
func (o *Operator) newUpgrade() (*upgrade.Controller, error) {
	c := o.config.Upgrade
	build := upgrade.Build{ID: c.Build, Version: c.Version}
	if build.ID == "" {
		var err error
		if build, err = upgrade.ThisBuild(c.Version); err != nil {
			return nil, fmt.Errorf("operator.Config: Upgrade.Build: %w", err)
		}
	}
	apiClient, err := stateClient(o.config.RESTConfig, o.httpClient)
	if err != nil {
		return nil, err
	}
	budget, err := parseBudget(c.Budget)
	if err != nil {
		return nil, err
	}
	config := upgrade.Config{
		Record: record.Record[upgrade.State]{
			Client: apiClient, Namespace: o.config.stateNamespace(), Name: o.config.stateName(), Key: "upgrade",
		},
		Build: build, Rules: upgrade.Rules{Budget: budget, MaxFailures: c.MaxFailures},
		MinReady: c.MinReady, ProgressDeadline: c.ProgressDeadline, Ready: c.Ready, Canaries: c.Canaries,
		Frameworks: o.config.Frameworks, Replica: "operator", Logger: o.config.Logger.With("operator", o.config.Name),
		Failed: o.upgradeFailed, Halted: func(s upgrade.State) { o.upgradeHalted(apiClient, s) },
	}
	if fence := o.config.LeaderElection.Fence; fence != nil {
		config.Writes = func() bool { return fence.Check() == nil }
	}
	if s := o.sharing; s != nil {
		config.Replica, config.Leads, config.Rules.Settle = s.This(), s.leads, o.config.LeaderElection.LeaseDuration
		config.Owns = func(key informer.Key) bool { return s.holder.Part().Owned.Has(slotOf(key)) }
		config.Live = func() (live []string) {
			_, said := s.member.view()
			for name := range said {
				live = append(live, name)
			}
			return live
		}
	}
	return upgrade.New(config), nil
}

// shownUpgrade shows the upgrade on the page.
type shownUpgrade struct{ *upgrade.Controller }

// maxShown is how many objects that wait the page lists.
const maxShown = 10

// Upgrade implements inspector.Upgrades.
func (u shownUpgrade) Upgrade() *inspector.Upgrade {
	state, known := u.State()
	if !known || state.Phase == upgrade.Finished || state.Phase == "" {
		return nil
	}
	total := state.Total()
	shown := &inspector.Upgrade{
		From: state.From.String(), To: state.To.String(), Phase: string(state.Phase), Since: state.Since, Reason: state.Reason, Done: state.Done,
		Objects: total.Objects, Unseen: total.Unseen, Held: total.Held,
	}
	for _, p := range state.Places {
		o := inspector.UpgradeObject{
			Framework: p.Framework, Namespace: p.Namespace, Name: p.Name, Failed: p.Failed != "", Why: p.Failed, Since: p.Since,
		}
		if !o.Failed {
			o.Why = "is not ready yet"
		}
		shown.Places = append(shown.Places, o)
	}
	for _, h := range u.Held(maxShown) {
		shown.Waiting = append(shown.Waiting, inspector.UpgradeObject{Framework: h.Framework, Namespace: h.Namespace, Name: h.Name, Why: h.Why})
	}
	return shown
}

// The reasons of the events about upgrades.
const (
	ReasonUpgradeFailed = "UpgradeFailed"
	ReasonUpgradeHalted = "UpgradeHalted"
)

// upgradeFailed writes an event on an object that has failed.
func (o *Operator) upgradeFailed(obj any, why string) {
	access.EngineOf(o.config.Frameworks[0]).Warn(obj, ReasonUpgradeFailed, "This object was changed by the upgrade of the operator and "+why)
}

// upgradeHalted writes an event on the Deployment of the operator, if there is one of its name.
func (o *Operator) upgradeHalted(c client.Client, s upgrade.State) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	deployment := &metav1.PartialObjectMetadata{}
	deployment.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	key := client.ObjectKey{Namespace: o.config.stateNamespace(), Name: o.config.Name}
	if err := c.Get(ctx, key, deployment); err != nil {
		o.log("no event on the Deployment says that the upgrade is halted", "error", err.Error())
		return
	}
	access.EngineOf(o.config.Frameworks[0]).Warn(deployment, ReasonUpgradeHalted, fmt.Sprintf(
		"The upgrade from %s to %s is halted: %s. Go back to the former build, or fix the cause and run '%s upgrade resume'.",
		s.From, s.To, s.Reason, o.config.Name))
}

// registerUpgrade registers the metrics of upgrades.
func (o *Operator) registerUpgrade() error {
	labels := prometheus.Labels{"operator": o.config.Name}
	gauge := func(name, help string, value func(upgrade.State) float64) error {
		return o.config.Registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "operatorkit_operator_upgrade_" + name, Help: help, ConstLabels: labels,
		}, func() float64 {
			state, _ := o.upgrade.State()
			return value(state)
		}))
	}
	for _, err := range []error{
		gauge("running", "Whether an upgrade is under way: 1 until it is finished, also while it is paused or halted.", func(s upgrade.State) float64 {
			return oneIf(s.Phase != "" && s.Phase != upgrade.Finished)
		}),
		gauge("halted", "Whether the upgrade is halted after failures: 1 or 0.", func(s upgrade.State) float64 { return oneIf(s.Phase == upgrade.Halted) }),
		gauge("places_used", "Objects that the upgrade has admitted and that are not ready yet.", func(s upgrade.State) float64 { return float64(len(s.Places)) }),
		gauge("held_objects", "Objects that wait for a place, by the last reports of the replicas.", func(s upgrade.State) float64 { return float64(s.Total().Held) }),
		gauge("failures", "Failures of the upgrade since it has started or was resumed.", func(s upgrade.State) float64 { return float64(s.Failures) }),
		gauge("done_objects", "Objects that the upgrade has admitted and that became ready.", func(s upgrade.State) float64 { return float64(s.Done) }),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
