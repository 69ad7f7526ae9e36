package main

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

// The ways of a reconciliation in the row noop, and one through the queue that does nothing.
const (
	directly     = "ProcessUpdate"
	throughQueue = "queue"
	doingNothing = "empty"
)

// noopReconciliations measures what three CRUD resources cost that read the current state from a store and find it as it
// should be: the steps, and a private copy of every object that is read. The aims are for those that come through the queue, in time
// as multiple of what one takes there that does nothing.
func noopReconciliations(ctx context.Context, e *environment) ([]line, error) {
	primaries, resources, err := e.settledObjects()
	if err != nil {
		return nil, err
	}
	s, err := e.compare(ctx, "noop",
		contender{directly, e.noops, func(ctx context.Context, b *testing.B) error { return processAll(ctx, b, primaries, resources) }},
		contender{throughQueue, e.noops, func(ctx context.Context, b *testing.B) error { return e.queueAll(ctx, b, primaries, resources, false) }},
		contender{doingNothing, e.keys, e.emptyWithOperatorKit},
	)
	if err != nil {
		return nil, err
	}
	var lines []line
	for _, way := range []string{directly, throughQueue} {
		what := fmt.Sprintf("no-op of three CRUD resources, %s: ", way)
		one := series{operatorKit: s[way]}
		times := reportLine(what+"time", inMicroseconds, one, nanoseconds)
		counts := reportLine(what+"allocations", counted, one, allocations)
		if way == throughQueue {
			times.Ratio = s.ratio(throughQueue, doingNothing, nanoseconds)
			times, counts = times.ratioAtMost(4), counts.atMost(40)
		}
		lines = append(lines, times, counts, reportLine(what+"memory", inBytes, one, memory))
	}
	return lines, nil
}

// settledObjects returns primaries, and three resources which keep a child each whose store has all children.
func (e *environment) settledObjects() (*informer.Push, []framework.Resource, error) {
	primaries := informer.NewPush("primaries")
	children := informer.NewPush("children")
	var resources []framework.Resource
	for _, name := range []string{"first", "second", "third"} {
		ops := childOps{
			name:     name,
			suffix:   "-" + name,
			children: children,
			create:   func(context.Context, *corev1.ConfigMap) error { return errUnexpectedChange },
		}
		r, err := newChildResource(ops)
		if err != nil {
			return nil, nil, err
		}
		resources = append(resources, r)
	}
	for i := range e.noops {
		primary := newPrimary("default", i)
		if err := primaries.Update(primary); err != nil {
			return nil, nil, err
		}
		for _, r := range resources {
			if err := children.Update(desiredChild(primary, "-"+r.Name())); err != nil {
				return nil, nil, err
			}
		}
	}
	return primaries, resources, nil
}

// newPrimary returns a primary as it is before it is created.
func newPrimary(namespace string, i int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      "object-" + strconv.Itoa(i),
			Labels:    map[string]string{roleLabel: rolePrimary},
		},
		Data: map[string]string{"page": "Page " + strconv.Itoa(i)},
	}
}

func processAll(ctx context.Context, b *testing.B, primaries *informer.Push, resources []framework.Resource) error {
	objects := primaries.List()
	b.StartTimer()
	defer b.StopTimer()
	for _, obj := range objects {
		if err := framework.ProcessUpdate(ctx, obj, resources); err != nil {
			return err
		}
	}
	return nil
}

func (e *environment) queueAll(ctx context.Context, b *testing.B, primaries *informer.Push, resources []framework.Resource, inspected bool) error {
	done := newCountdown(e.noops)
	f, err := newInspectedFramework(framework.Config{Source: primaries, Workers: emptyWorkers}, inspected,
		append(resources[:len(resources):len(resources)], countingResource{done})...)
	if err != nil {
		return err
	}
	return timed(ctx, b, f.Run, done)
}
