package statemanagerresource_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
)

// setLabel is on the ConfigMaps of a board, with the name of the set.
const setLabel = "example.com/set"

// The values of services with which a board has trouble.
const (
	// unreadable can't be worked out before somebody changes them.
	unreadable = "unreadable"
	// impossible are found out to be so only when they are carried out.
	impossible = "impossible"
)

// board is a small state manager: each service is a ConfigMap with its values, in the namespace of the set.
type board struct {
	client client.Client

	mu sync.Mutex
	// failed has the generations of sets with which a service was impossible, and tried how often one was.
	failed map[client.ObjectKey]int64
	tried  int
}

var _ statemanager.StateManager = (*board)(nil)

func newBoard(c client.Client) *board {
	return &board{client: c, failed: map[client.ObjectKey]int64{}}
}

// pin is what is to be done with one ConfigMap.
type pin struct {
	action     plan.Action
	before     *corev1.ConfigMap
	after      *corev1.ConfigMap
	generation int64
}

func (b *board) Name() string { return "board" }

func (b *board) Release(client.ObjectKey) {}

func (b *board) Compute(ctx context.Context, set *statemanager.Set) (*work, error) {
	list := &corev1.ConfigMapList{}
	if err := b.client.List(ctx, list, client.InNamespace(set.ServiceSet.Namespace), client.MatchingLabels{setLabel: set.ServiceSet.Name}); err != nil {
		return nil, fmt.Errorf("list the ConfigMaps of %s: %w", set.ServiceSet.Name, err)
	}
	has := map[client.ObjectKey]*corev1.ConfigMap{}
	for i := range list.Items {
		has[client.ObjectKeyFromObject(&list.Items[i])] = &list.Items[i]
	}
	w := &work{Left: set.ServiceSet.DeletionTimestamp != nil && len(has) > 0}
	order := statemanager.NewOrder(set)
	states := map[client.ObjectKey]v1alpha1.ServiceState{}
	for _, entry := range order.Sorted() {
		key := serviceset.ServiceKey(entry.Namespace, entry.Name)
		o := b.put(set.ServiceSet, entry, has[key])
		if waits := order.Waits(entry, states); len(waits) > 0 && len(o.Changes) > 0 {
			o = operation{Service: key, Notes: []string{fmt.Sprintf("service %s waits for %s", key, waits[0])}}
		}
		if len(o.Changes) == 0 && len(o.Notes) == 0 && o.Err == nil {
			states[key] = v1alpha1.ServiceState{State: v1alpha1.ServiceStateDeployed}
		}
		w.Operations = append(w.Operations, o)
	}
	var gone []client.ObjectKey
	for key := range has {
		if order.Entry(key) == nil {
			gone = append(gone, key)
		}
	}
	for _, key := range order.Removals(gone) {
		w.Operations = append(w.Operations, b.remove(key, has[key]))
	}
	return w, nil
}

// put is the operation of a service that the set lists.
func (b *board) put(set serviceSet, entry *v1alpha1.ServiceWithValues, before *corev1.ConfigMap) operation {
	o := operation{Service: serviceset.ServiceKey(entry.Namespace, entry.Name)}
	b.mu.Lock()
	generation, failed := b.failed[o.Service]
	b.mu.Unlock()
	switch {
	case entry.Values == unreadable:
		o.Err = framework.Permanent(errors.New("the values can't be read"))
		return o
	case failed && generation == set.Generation:
		o.Err = framework.Permanent(errors.New("this is impossible"))
		return o
	case before != nil && before.DeletionTimestamp != nil:
		o.Notes = []string{fmt.Sprintf("service %s is going, and comes again then", o.Service)}
		return o
	case before != nil && before.Data["values"] == entry.Values:
		return o
	}
	after := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: entry.Namespace, Name: entry.Name, Labels: map[string]string{setLabel: set.Name}},
		Data:       map[string]string{"values": entry.Values},
	}
	p := &pin{action: plan.Create, after: after, generation: set.Generation}
	if before == nil {
		o.Changes = plan.Describe(plan.Create, after.DeepCopy(), nil)
	} else {
		p.action, p.after = plan.Update, before.DeepCopy()
		p.after.TypeMeta, p.after.Data = after.TypeMeta, after.Data
		o.Changes = plan.Describe(plan.Update, p.after.DeepCopy(), before)
	}
	o.Payload = p
	return o
}

// remove is the operation of a service that the set does not list.
func (b *board) remove(key client.ObjectKey, before *corev1.ConfigMap) operation {
	o := operation{Service: key}
	if before.DeletionTimestamp != nil {
		o.Notes = []string{fmt.Sprintf("service %s is going", key)}
		return o
	}
	before.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
	o.Changes = plan.Describe(plan.Delete, before, nil)
	o.Payload = &pin{action: plan.Delete, before: before}
	return o
}

func (b *board) CarryOut(ctx context.Context, _ *statemanager.Set, o *operation) error {
	p := o.Payload.(*pin)
	switch {
	case p.action == plan.Delete:
		return client.IgnoreNotFound(b.client.Delete(ctx, p.before, client.Preconditions{UID: ptr.To(p.before.UID)}))
	case p.after.Data["values"] == impossible:
		b.mu.Lock()
		defer b.mu.Unlock()
		b.failed[o.Service] = p.generation
		b.tried++
		return framework.Permanent(errors.New("this is impossible"))
	case p.action == plan.Create:
		return b.client.Create(ctx, p.after)
	}
	return b.client.Update(ctx, p.after)
}

// tries is how often something impossible was tried.
func (b *board) tries() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tried
}
