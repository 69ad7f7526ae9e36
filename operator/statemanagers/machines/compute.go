package machines

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// computation is one Compute.
type computation struct {
	manager *Manager
	set     *statemanager.Set
	owner   carrier.Owner
	order   *statemanager.Order
	states  *statemanager.States
	inputs  *native.Inputs
	work    statemanager.Work
	// there are the MachineServices of the namespace, by name.
	there map[string]*placed
	// names are the services of the set that the names of MachineServices are for.
	names map[string]client.ObjectKey
	// conflict is the first service whose name somebody else has, if the work ends there.
	conflict *client.ObjectKey
}

func (m *Manager) newComputation(ctx context.Context, set *statemanager.Set) (*computation, error) {
	there, err := m.list(ctx, set.ServiceSet.Namespace)
	if err != nil {
		return nil, err
	}
	c := &computation{
		manager: m, set: set, there: there, order: statemanager.NewOrder(set), inputs: native.NewInputs(m.config.Client, m.config.Fetcher),
		states: statemanager.NewStates(set.ServiceSet, m.config.Clock.Now(), passing...),
	}
	keeper, _ := carrier.Keepers(ctx, m.Name(), nil, "")
	c.owner = ownerOf(keeper, set.ServiceSet)
	c.nameServices()
	return c, nil
}

// Compute implements statemanager.Planner.
func (m *Manager) Compute(ctx context.Context, set *statemanager.Set) (*statemanager.Work, error) {
	c, err := m.newComputation(ctx, set)
	if err != nil {
		return nil, err
	}
	for _, entry := range c.order.Sorted() {
		if err := c.entry(ctx, entry); err != nil {
			return nil, err
		}
	}
	for _, key := range c.order.Removals(c.leaving()) {
		c.leave(key)
	}
	c.work.Services = c.states.Sorted()
	c.work.Left = set.ServiceSet.DeletionTimestamp != nil && len(c.work.Services) > 0
	return &c.work, nil
}

// Suspend implements statemanager.Suspender: the operator of MachineServices leaves them alone, too. The states stay as they are.
func (m *Manager) Suspend(ctx context.Context, set *statemanager.Set) (*statemanager.Work, error) {
	c, err := m.newComputation(ctx, set)
	if err != nil {
		return nil, err
	}
	for _, p := range c.own() {
		if !paused(p) {
			c.operate(pauseOperation(p.key(), p, true))
		}
		c.work.Left = true
	}
	c.work.Services = set.ServiceSet.Status.Services
	return &c.work, nil
}

// own returns the MachineServices that the set has, by name.
func (c *computation) own() []*placed {
	var own []*placed
	for _, p := range c.there {
		if p.isOf(c.set.ServiceSet) {
			own = append(own, p)
		}
	}
	slices.SortFunc(own, func(a, b *placed) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return own
}

// nameServices gives each name to one service of the set: the one that has it already, or the first one by its key.
func (c *computation) nameServices() {
	c.names = map[string]client.ObjectKey{}
	for _, entry := range c.order.Sorted() {
		key := entry.Key()
		if entry.HelmAction == v1alpha1.HelmActionUninstall {
			continue
		}
		first, taken := c.names[key.Name]
		has := c.of(key)
		if !taken || has != nil && has.isOf(c.set.ServiceSet) || c.of(first) == nil && v1alpha1.CompareKeys(key, first) < 0 {
			c.names[key.Name] = key
		}
	}
}

// of returns the MachineService that was made for a service by a set of the same cluster; nil if there is none.
func (c *computation) of(key client.ObjectKey) *placed {
	p := c.there[key.Name]
	if p == nil || !p.isFor(key) || c.setOf(p) == nil {
		return nil
	}
	return p
}

// setOf returns the set of the same cluster that has a MachineService; nil if there is none.
func (c *computation) setOf(p *placed) *v1alpha1.ServiceSet {
	if p.isOf(c.set.ServiceSet) {
		return c.set.ServiceSet
	}
	i := slices.IndexFunc(c.set.Others, func(other *v1alpha1.ServiceSet) bool { return p.isOf(other) })
	if i < 0 {
		return nil
	}
	return c.set.Others[i]
}

// obstacle says why a service can't have the MachineService of its name; nil if it can.
func (c *computation) obstacle(key client.ObjectKey) error {
	mend := "on machines a service is known by its name alone: give one of the two another name"
	name := client.ObjectKey{Namespace: c.set.ServiceSet.Namespace, Name: key.Name}
	conflict := func(format string, args ...any) error {
		return fmt.Errorf("%w: MachineService %s %s", carrier.ErrConflict, name, fmt.Sprintf(format, args...))
	}
	if first := c.names[key.Name]; first != key {
		return conflict("is for service %s, and %s", first, mend)
	}
	p := c.there[key.Name]
	switch {
	case p == nil:
		return nil
	case p.owner() == "" || p.GetLabels()[carrier.OwnerLabel] == "" && p.GetAnnotations()[carrier.OwnerAnnotation] == "":
		return conflict("was made by somebody else: delete it if nobody needs it, or give the service another name")
	case c.setOf(p) == nil && (&carrier.Service{Owner: c.owner, Former: p.former}).ClaimOn(p.GetLabels()) != carrier.Inherited:
		return conflict("belongs to %s, and %s", carrier.Whose(p), mend)
	case c.setOf(p) == nil:
		return conflict("is for service %s of ServiceSet %s, and %s; if that set is gone, delete the MachineService", p.key(), p.owner(), mend)
	case !p.isFor(key):
		return conflict("is for service %s of ServiceSet %s, and %s", p.key(), p.owner(), mend)
	}
	return nil
}

// operate adds an operation, unless there is nothing to say. After a conflict that ends the work, changes are withheld.
func (c *computation) operate(o statemanager.Operation) {
	if c.conflict != nil && *c.conflict != o.Service && len(o.Changes) > 0 {
		o.Notes = append(o.Notes, fmt.Sprintf(
			"service %s is left as it is, because somebody else has the MachineService of service %s", o.Service, c.conflict))
		o.Changes, o.Payload = nil, nil
	}
	if len(o.Changes) > 0 || len(o.Notes) > 0 || o.Err != nil {
		c.work.Operations = append(c.work.Operations, o)
	}
}

// dryRun tells whether everything is only planned. The deletion of a set is meant as it is said.
func (c *computation) dryRun() bool {
	return c.set.Config.SyncMode == v1alpha1.SyncModeDryRun && c.set.ServiceSet.DeletionTimestamp == nil
}
