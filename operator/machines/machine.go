package machines

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/context/finalizerskeptcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/cut"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// Reasons of the events on Machines.
const (
	// EventConnected says that the engine answers, or does again.
	EventConnected = "Connected"
	// EventUnreachable says that it does not.
	EventUnreachable = "Unreachable"
)

// machineFramework is the logic of the framework for Machines.
type machineFramework struct {
	*sources
	d    *operator.Dependencies
	memo statuses.Memo[*engineState]
}

func newMachines(d *operator.Dependencies, s *sources) (*framework.Framework, error) {
	f := &machineFramework{sources: s, d: d}
	status, err := statuses.New(d, f.setStatus, f.tell)
	if err != nil {
		return nil, err
	}
	r, err := statuses.Router(d, nil, f.memo, f.look, f.reports.Reports(), status, &naming{f}, &leaving{f})
	if err != nil {
		return nil, err
	}
	return d.NewFramework(framework.Config{
		Name: machinesName, Source: s.machines, ResourceRouter: r, Rights: []framework.Right{readable(secretKind)},
		Watches: []framework.Watch{{Source: s.engines, Map: machineOf}},
	})
}

// machineOf is the map function from a notice to its Machine.
func machineOf(_ context.Context, obj any) []informer.Key {
	return []informer.Key{obj.(*notice).machine}
}

func (f *machineFramework) look(ctx context.Context, m *v1alpha1.Machine) (*engineState, error) {
	c, err := f.engines.cluster(m.Namespace)
	if err != nil {
		return nil, err
	}
	// What is on it is looked at as the framework for services does, whose containers they are.
	ctx = identity.NewContext(ctx, &identity.Scope{Identity: f.deployer.Identity()})
	// Before what is on the machine: what a plan that ends now has put there is seen.
	planned := f.rollouts.on(client.ObjectKeyFromObject(m))
	state, err := c.look(ctx, m.Name)
	if err != nil {
		return nil, err
	}
	state.planned = planned
	return state, nil
}

// setStatus makes the status of a machine, unless another operator does.
func (f *machineFramework) setStatus(ctx context.Context, m *v1alpha1.Machine) error {
	if f.reports.Refusal(m) != nil {
		return nil
	}
	state, err := f.memo.Get(ctx)
	if err != nil {
		return err
	}
	left, status := usersOf(m, state), &m.Status
	status.ObservedGeneration = m.Generation
	if state.Engine.Version != "" {
		status.EngineVersion = state.Engine.Version
	}
	if state.machine != nil && state.machine.Available() {
		status.LastSeen = lastSeen(&state.machine.Inventory)
	}
	ready := readyOf(state)
	if m.DeletionTimestamp != nil && len(left) > 0 {
		ready.Reason = ReasonInUse
		ready.Message = "it is deleted once no containers of services are on it: " + strings.Join(left, ", ")
	}
	ready.Message = cut.Text(ready.Message, statuses.MaxMessage)
	ready.ObservedGeneration = m.Generation
	status.Conditions = statuses.SetConditions(status.Conditions, []metav1.Condition{ready})
	return nil
}

// readyOf says whether an engine answers.
func readyOf(state *engineState) metav1.Condition {
	ready := metav1.Condition{Type: ConditionReady, Status: metav1.ConditionUnknown, Reason: ReasonConnecting, Message: "it was not connected to yet"}
	switch {
	case state.machine == nil:
	case state.machine.State == api.MachineGone:
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, ReasonGone, "spec.gone says that it won't come back"
	case state.machine.Unknown():
		ready.Reason, ready.Message = ReasonUnreachable, state.machine.Reason
	default:
		ready.Status, ready.Reason = metav1.ConditionTrue, ReasonConnected
		ready.Message = fmt.Sprintf("engine %s, API %s, %s", state.Engine.Version, state.Engine.APIVersion, state.Engine.OperatingSystem)
	}
	return ready
}

// usersOf returns the names of the services that have containers on a machine, or may have, or are about to.
func usersOf(m *v1alpha1.Machine, state *engineState) []string {
	is := state.machine
	switch {
	case is == nil || is.State == api.MachineGone:
		return nil
	case is.Blind() && m.Status.EngineVersion == "":
		// Nobody has ever been there.
		return nil
	case is.Blind():
		return []string{"it can't be seen; bring it back, or say in spec.gone that it won't come back"}
	}
	inventory := &is.Inventory
	if is.Unknown() {
		inventory = is.LastSeen
	}
	services := map[string]bool{}
	for _, name := range state.planned {
		services[name] = true
	}
	for i := range inventory.Containers {
		if c := &inventory.Containers[i]; c.ServiceName != "" && state.owner.Owns(c.Owner) {
			services[c.ServiceName] = true
		}
	}
	return slices.Sorted(maps.Keys(services))
}

// tell writes events on engines that answer, and that don't.
func (f *machineFramework) tell(ctx context.Context, before, after *v1alpha1.Machine) {
	was, is := statuses.Find(before.Status.Conditions, ConditionReady), statuses.Find(after.Status.Conditions, ConditionReady)
	switch {
	case was.Reason == is.Reason:
	case is.Reason == ReasonConnected:
		framework.Recorder(ctx, f.d.Recorder).Event(after, corev1.EventTypeNormal, EventConnected, is.Message)
	case is.Reason == ReasonUnreachable:
		framework.Recorder(ctx, f.d.Recorder).Event(after, corev1.EventTypeWarning, EventUnreachable, is.Message)
	}
}

// leaving is the resource that keeps a Machine as long as there may be containers of services on it. It changes nothing.
type leaving struct{ *machineFramework }

var _ framework.Planner = (*leaving)(nil)

// Name implements framework.Resource.
func (l *leaving) Name() string { return "leaving" }

// EnsureCreated implements framework.Resource.
func (l *leaving) EnsureCreated(context.Context, any) error { return nil }

// EnsureDeleted implements framework.Resource.
func (l *leaving) EnsureDeleted(ctx context.Context, obj any) error {
	state, err := l.memo.Get(ctx)
	if err != nil {
		return err
	}
	if len(usersOf(obj.(*v1alpha1.Machine), state)) > 0 {
		finalizerskeptcontext.SetKept(ctx)
	}
	return nil
}

// Plan implements framework.Planner.
func (l *leaving) Plan(context.Context, plan.Event, any) ([]plan.Change, error) { return nil, nil }
