package native

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/internal/panics"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
	"github.com/operatorkit/operatorkit/resource/statemanager/window"
)

// firstAnswer is how long a computation waits for the first answer of a cluster. After that a notice tells.
const firstAnswer = 2 * time.Second

// computation is one Compute.
type computation struct {
	manager *Manager
	set     *statemanager.Set
	memory  *memory
	cluster *target.Cluster
	order   *statemanager.Order
	now     time.Time
	// owner is what carriers know the set by, and former are the keepers whose place its keeper takes.
	owner  carrier.Owner
	former []carrier.Keeper

	work statemanager.Work
	// known has the states of the services as they are known so far, and states the same by key.
	known  *statemanager.States
	states map[client.ObjectKey]v1alpha1.ServiceState
	// found is what carriers list of the set, by key; nil while it need not be known.
	found map[client.ObjectKey][]carrier.Found
	// conflict is the first service with an object that somebody else manages, if the work ends there.
	conflict *client.ObjectKey
	// windows are what the change windows of the set say, as far as it was asked.
	windows map[window.What]verdict
}

// Compute implements statemanager.Planner.
func (m *Manager) Compute(ctx context.Context, set *statemanager.Set) (*statemanager.Work, error) {
	memory := m.memoryOf(set)
	cluster, err := m.config.Clusters.Acquire(memory.cluster, ownKey(set))
	if err != nil {
		return nil, fmt.Errorf("use the cluster of ServiceSet %s: %w", ownKey(set), err)
	}
	c := &computation{
		manager: m, set: set, memory: memory, cluster: cluster, order: statemanager.NewOrder(set),
		now: m.config.Clock.Now(), windows: map[window.What]verdict{},
	}
	if err := c.own(ctx); err != nil {
		return nil, err
	}
	c.beginStates()
	reached := awaitAnswer(ctx, cluster)
	c.work.Conditions = []metav1.Condition{cluster.Condition()}
	if !reached {
		c.unreachable(untilReached)
		return c.finish(), nil
	}
	memory.connected(cluster.Health().Since)
	memory.objects.begin()
	if err := c.list(ctx); err != nil {
		return c.interrupted(ctx, err)
	}
	if err := c.services(ctx); err != nil {
		return c.interrupted(ctx, err)
	}
	if err := cluster.Watch(ownKey(set), memory.kinds()...); err != nil {
		return nil, err
	}
	return c.finish(), nil
}

// beginStates forgets all states but those of the status.
func (c *computation) beginStates() {
	c.known = statemanager.NewStates(c.set.ServiceSet, c.now, passing...)
	c.states = c.known.Entered()
}

// awaitAnswer tells whether a cluster can be reached. One that has not answered yet is given a moment.
func awaitAnswer(ctx context.Context, cluster *target.Cluster) bool {
	waiting, cancel := context.WithTimeout(ctx, firstAnswer)
	defer cancel()
	return cluster.AwaitAnswer(waiting) == nil
}

// interrupted returns what is known of a set whose cluster has stopped to answer meanwhile, or does not let us look: its states
// stay as they are.
func (c *computation) interrupted(ctx context.Context, err error) (*statemanager.Work, error) {
	if ctx.Err() != nil {
		return nil, err
	}
	condition := c.cluster.Condition()
	c.beginStates()
	switch {
	case apierrors.IsForbidden(err):
		condition.Status, condition.Reason = metav1.ConditionFalse, ReasonForbidden
		condition.Message = fmt.Sprintf("%s, but its kubeconfig lacks rights: %s: grant them, or put another kubeconfig into its Secret",
			strings.TrimSuffix(condition.Message, "."), statemanager.FirstLine(refusal(err)))
		c.work = statemanager.Work{Conditions: []metav1.Condition{condition}, Operations: []statemanager.Operation{{Err: err}}}
		c.unreachable("waits until the kubeconfig of the cluster has the rights to look at it")
	case lost(err) && c.cluster.Err() != nil:
		c.work = statemanager.Work{Conditions: []metav1.Condition{condition}}
		c.unreachable(untilReached)
	default:
		// Whether the cluster or only this request is at fault is not known before the next probe.
		return nil, err
	}
	return c.finish(), nil
}

// ends tells whether an error of one service ends the computation: nothing is known about any service then. While the cluster answers, such as
// where one of its APIs does not or a webhook refuses in the words of an API server, the error is that of the service.
func (c *computation) ends(ctx context.Context, err error) bool {
	switch {
	case err == nil:
		return false
	case ctx.Err() != nil:
		return true
	case !lost(err):
		return false
	}
	system := &metav1.PartialObjectMetadata{}
	system.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err = c.cluster.Client().Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system)
	return err != nil && !apierrors.IsForbidden(err)
}

// alone does something for one service. A panic is the service's own failure.
func (c *computation) alone(key client.ObjectKey, do func() error) error {
	err := panics.Recovered(do)
	if panicked := (*panics.Error)(nil); errors.As(err, &panicked) {
		c.hold(key, c.begin(key), false, err)
		return nil
	}
	return err
}

// services looks at each service of the set, and at each that is to be taken away. An error says that the cluster does not answer.
func (c *computation) services(ctx context.Context) error {
	for _, entry := range c.order.Sorted() {
		if err := c.alone(entry.Key(), func() error { return c.entry(ctx, entry) }); err != nil {
			return err
		}
	}
	for _, key := range c.order.Removals(c.leaving()) {
		if err := c.alone(key, func() error { return c.leave(ctx, key) }); err != nil {
			return err
		}
	}
	return nil
}

// list finds out what the cluster has of the set, where the status may not tell: at the beginning, when the cluster may be
// another one, and before a set is let go. It does so again until the status tells.
func (c *computation) list(ctx context.Context) error {
	if c.memory.isListed() && c.set.ServiceSet.DeletionTimestamp == nil {
		return nil
	}
	c.found = map[client.ObjectKey][]carrier.Found{}
	told := true
	for _, by := range []carrier.Carrier{c.manager.config.Helm, c.manager.config.Manifests} {
		all, err := by.List(ctx, c.cluster, c.owner, c.former...)
		if err != nil {
			return fmt.Errorf("list what the cluster has of ServiceSet %s: %w", ownKey(c.set), err)
		}
		for _, found := range all {
			if found.Unreadable != nil && c.unknown(found.Key) {
				// It may be forged. What the set knows of fails on its own.
				c.work.Notes = append(c.work.Notes, fmt.Sprintf("service %s, which the cluster names, is left as it is: %v", found.Key, found.Unreadable))
				continue
			}
			c.found[found.Key] = append(c.found[found.Key], found)
			told = told && c.isTold(found)
		}
	}
	if told {
		c.memory.nowListed()
	}
	return nil
}

// isTold tells whether the stored status has what was found. What this Compute enters may not get there: it may be a plan, or end with an error.
func (c *computation) isTold(found carrier.Found) bool {
	state := c.order.State(found.Key)
	if state == nil || state.State == v1alpha1.ServiceStatePending {
		return false
	}
	return state.Type == found.Type || state.Type == "" && c.order.Entry(found.Key) == nil
}

// finish puts the work together, in an order that is always the same.
func (c *computation) finish() *statemanager.Work {
	c.work.Services = c.known.Sorted()
	c.memory.forget(func(key client.ObjectKey) bool {
		_, known := c.states[key]
		return known
	})
	if c.set.ServiceSet.DeletionTimestamp != nil && len(c.work.Services) > 0 {
		c.work.Left = true
	}
	return &c.work
}

// requeue has the set looked at again after a while; zero is never.
func (c *computation) requeue(after time.Duration) {
	if after > 0 && (c.work.Requeue == 0 || after < c.work.Requeue) {
		c.work.Requeue = after
	}
}

// operate adds an operation, unless there is nothing to say. After a conflict that ends the work, changes are withheld.
func (c *computation) operate(o statemanager.Operation) {
	if c.conflict != nil && *c.conflict != o.Service && len(o.Changes) > 0 {
		o.Notes = append(o.Notes, fmt.Sprintf("service %s is left as it is, because somebody else manages an object of service %s", o.Service, c.conflict))
		o.Changes, o.Payload = nil, nil
	}
	if len(o.Changes) > 0 || len(o.Notes) > 0 || o.Err != nil {
		c.work.Operations = append(c.work.Operations, o)
	}
}

// conflicts notes an error about an object that somebody else manages, if the work is to end there.
func (c *computation) conflicts(key client.ObjectKey, err error) {
	if c.conflict == nil && c.set.Config.StopOnConflict && carrier.IsConflict(err) {
		c.conflict = &key
	}
}
