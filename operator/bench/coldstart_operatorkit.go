package main

import (
	"context"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

// withOperatorKit is a framework with a CRUD resource, the primaries as its source, and the children watched.
func (w coldStart) withOperatorKit(ctx context.Context, b *testing.B) error {
	own, err := w.tracked()
	if err != nil {
		return err
	}
	primaries, err := w.source(own, "primaries", rolePrimary)
	if err != nil {
		return err
	}
	children, err := w.source(own, "children", roleChild)
	if err != nil {
		return err
	}
	done := newCountdown(len(w.primaries))
	child, err := newChildResource(childOps{name: "child", suffix: "-child", children: children, create: creator(own, done)})
	if err != nil {
		return err
	}
	counter := &reconciliationCounter{}
	f, err := newInspectedFramework(framework.Config{
		Source:  primaries,
		Workers: w.workers,
		Watches: []framework.Watch{{Source: children, Map: informer.OwnerMap(schema.GroupKind{Kind: "ConfigMap"})}},
	}, w.inspected, counter, child)
	if err != nil {
		return err
	}
	return w.counted(ctx, b, f.Run, done, &counter.count)
}

func (w coldStart) source(own client.WithWatch, name, role string) (informer.Source, error) {
	logger, err := operatorKitLogger()
	if err != nil {
		return nil, err
	}
	return informer.NewKubernetes(informer.KubernetesConfig{
		Client:        own,
		Object:        &corev1.ConfigMap{},
		Name:          name,
		Namespaces:    []string{w.namespace},
		LabelSelector: labels.SelectorFromSet(labels.Set{roleLabel: role}),
		Logger:        logger,
	})
}

// reconciliationCounter counts reconciliations.
type reconciliationCounter struct{ count atomic.Int64 }

func (*reconciliationCounter) Name() string { return "counter" }

func (r *reconciliationCounter) EnsureCreated(context.Context, any) error {
	r.count.Add(1)
	return nil
}

func (*reconciliationCounter) EnsureDeleted(context.Context, any) error { return nil }
