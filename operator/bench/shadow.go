package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
)

// The contenders of the row shadow: operatorkit beside a shadow resource set, and without one.
const (
	besideShadow = "beside a shadow"
	alone        = "alone"
)

// compared is the name under which it is reported how many objects were compared with the shadow.
const compared = "compared"

// shadowWorkers is how many objects are reconciled at the same time.
const shadowWorkers = 10

// besideShadows measures what a shadow resource set costs the active one: how fast it creates a child for each of many
// primaries, and how soon for one that is created while the one before is compared.
func besideShadows(ctx context.Context, e *environment) ([]line, error) {
	throughput, err := e.shadowThroughput(ctx)
	if err != nil {
		return nil, err
	}
	latency, err := e.shadowLatency(ctx)
	if err != nil {
		return nil, err
	}
	return []line{
		shadowLine(fmt.Sprintf("cold start of %d primaries beside a shadow: time for each", e.primaries), throughput),
		shadowLine("change of one object beside a shadow: until its child is there", latency),
		{
			Measure: fmt.Sprintf("changes of %d objects beside a shadow: %s meanwhile", e.changes, compared),
			Unit:    counted,
			Figures: map[string]float64{operatorKit: latency.median(besideShadow, extra(compared))},
		},
	}, nil
}

// shadowLine is a line whose ratio is that to operatorkit alone.
func shadowLine(measure string, s series) line {
	l := line{
		Measure: measure,
		Unit:    inMicroseconds,
		Figures: map[string]float64{operatorKit: s.median(besideShadow, nanoseconds)},
		Ratio:   s.ratio(besideShadow, alone, nanoseconds),
	}
	return l.ratioAtMost(1.10)
}

func (e *environment) shadowThroughput(ctx context.Context) (series, error) {
	namespace, err := e.cluster.namespace(ctx, "shadow")
	if err != nil {
		return nil, err
	}
	work := coldStart{cluster: e.cluster, namespace: namespace, primaries: make([]*corev1.ConfigMap, e.primaries), workers: shadowWorkers}
	err = inParallel(ctx, shadowWorkers, e.primaries, func(ctx context.Context, i int) error {
		work.primaries[i] = newPrimary(namespace, i)
		return e.cluster.client.Create(ctx, work.primaries[i])
	})
	if err != nil {
		return nil, fmt.Errorf("create primaries: %w", err)
	}
	start := func(shadow bool) func(context.Context, *testing.B) error {
		return work.cleared(func(ctx context.Context, b *testing.B) error {
			own, err := work.tracked()
			if err != nil {
				return err
			}
			done := newCountdown(e.primaries)
			f, err := work.frameworkWith(own, shadow, creator(own, done))
			if err != nil {
				return err
			}
			return timed(ctx, b, f.Run, done)
		})
	}
	return e.compare(ctx, "shadow, cold start",
		contender{besideShadow, e.primaries, start(true)}, contender{alone, e.primaries, start(false)})
}

func (e *environment) shadowLatency(ctx context.Context) (series, error) {
	namespace, err := e.cluster.namespace(ctx, "shadow")
	if err != nil {
		return nil, err
	}
	work := coldStart{cluster: e.cluster, namespace: namespace, workers: shadowWorkers}
	change := func(shadow bool) func(context.Context, *testing.B) error {
		return func(ctx context.Context, b *testing.B) error {
			return errors.Join(work.oneByOne(ctx, b, shadow, e.changes), work.deletePrimaries(ctx), work.deleteChildren(ctx))
		}
	}
	return e.compare(ctx, "shadow, one by one",
		contender{besideShadow, e.changes, change(true)}, contender{alone, e.changes, change(false)})
}

// oneByOne creates one primary after the other, each when the child of the one before is there.
func (w coldStart) oneByOne(ctx context.Context, b *testing.B, shadow bool, changes int) error {
	own, err := w.tracked()
	if err != nil {
		return err
	}
	created := make(chan string, 2*changes)
	f, err := w.frameworkWith(own, shadow, func(ctx context.Context, child *corev1.ConfigMap) error {
		err := client.IgnoreAlreadyExists(own.Create(ctx, child))
		if err == nil && child.UID != "" {
			created <- child.Name
		}
		return err
	})
	if err != nil {
		return err
	}
	create := func(i int) error {
		if err := w.client.Create(ctx, newPrimary(w.namespace, i)); err != nil {
			return err
		}
		select {
		case <-created:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	runCtx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- f.Run(runCtx) }()
	err = create(changes) // when this one has its child, the framework runs
	b.StartTimer()
	for i := 0; i < changes && err == nil; i++ {
		err = create(i)
	}
	b.StopTimer()
	for _, s := range f.Shadows() {
		b.ReportMetric(float64(s.Objects), compared)
	}
	cancel()
	return errors.Join(err, <-ended)
}

func (w coldStart) deletePrimaries(ctx context.Context) error {
	err := w.client.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(w.namespace), client.MatchingLabels{roleLabel: rolePrimary})
	if err != nil {
		return fmt.Errorf("delete primaries: %w", err)
	}
	return nil
}

// frameworkWith is the framework of withOperatorKit. Its shadow would give every primary another child.
func (w coldStart) frameworkWith(
	own client.WithWatch, shadow bool, create func(context.Context, *corev1.ConfigMap) error,
) (*framework.Framework, error) {
	primaries, err := w.source(own, "primaries", rolePrimary)
	if err != nil {
		return nil, err
	}
	children, err := w.source(own, "children", roleChild)
	if err != nil {
		return nil, err
	}
	logger, err := operatorKitLogger()
	if err != nil {
		return nil, err
	}
	suffixes := map[string]string{"v1": "-child"}
	if shadow {
		suffixes["v2"] = "-other"
	}
	router := framework.ResourceRouterConfig{Logger: logger}
	for version, suffix := range suffixes {
		child, err := newChildResource(childOps{name: "child", suffix: suffix, children: children, create: create})
		if err != nil {
			return nil, err
		}
		set, err := framework.NewResourceSet(framework.ResourceSetConfig{
			Name: version, Shadow: version == "v2", Handles: framework.HandlesType[any], Resources: []framework.Resource{child},
		})
		if err != nil {
			return nil, err
		}
		router.ResourceSets = append(router.ResourceSets, set)
	}
	config := framework.Config{
		Source: primaries, Workers: w.workers, Logger: logger, DisableFinalizer: true,
		Watches: []framework.Watch{{Source: children, Map: informer.OwnerMap(schema.GroupKind{Kind: "ConfigMap"})}},
	}
	if config.ResourceRouter, err = framework.NewResourceRouter(router); err != nil {
		return nil, err
	}
	return framework.New(config)
}
