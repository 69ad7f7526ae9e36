package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

const (
	// removalRounds is how often a chart is removed at most: counts hardly vary.
	removalRounds = 3
	// readsOfTarget is the name under which the row reports what was read.
	readsOfTarget = "reads-of-target"
)

// chartRemovals measures what the native state manager reads and writes on a cluster until nothing is left of a chart of many
// objects, from the moment that its service is not listed any more.
func chartRemovals(ctx context.Context, e *environment) (lines []line, err error) {
	own := *e
	own.fleet = fleet{clusters: 1, services: 1, charts: 1, objects: e.chartObjects}
	own.rounds = min(e.rounds, removalRounds)
	w, err := newFleetWorld(ctx, &own)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close(ctx)) }()
	if err := w.createClusters(ctx); err != nil {
		return nil, err
	}
	s, err := own.compare(ctx, "chartremoval", contender{operatorKit, 1, w.removeChart})
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("removal of a chart of %d objects: ", e.chartObjects)
	return []line{
		reportLine(what+"reads of its cluster", counted, s, extra(readsOfTarget)).atMost(readsPerObject*float64(e.chartObjects) + readsOfRelease),
		reportLine(what+"writes to its cluster", counted, s, extra(writesOfAll)),
		reportLine(what+"time", inMicroseconds, s, nanoseconds),
	}, nil
}

// What may be read: each object before it is deleted and to see that it is gone, and what tells of the release.
const (
	readsPerObject = 2
	readsOfRelease = 8
)

// removeChart puts the chart onto the cluster, and measures how it is taken away.
func (w *fleetWorld) removeChart(ctx context.Context, b *testing.B) error {
	if err := w.listServices(ctx, w.servicesOf(0)); err != nil {
		return err
	}
	if err := w.awaitChart(ctx); err != nil {
		return err
	}
	l := w.links[0]
	requests, writes := l.count(), l.writes.Load()
	b.StartTimer()
	if err := w.listServices(ctx, []v1alpha1.Service{}); err != nil {
		return err
	}
	err := until(ctx, func(ctx context.Context) (bool, error) {
		left, err := w.leftOfCharts(ctx)
		return left == 0, err
	})
	b.StopTimer()
	if err != nil {
		return err
	}
	if err := w.quiet(ctx); err != nil {
		return err
	}
	requests, writes = l.count()-requests, l.writes.Load()-writes
	b.ReportMetric(float64(requests-writes), readsOfTarget)
	b.ReportMetric(float64(writes), writesOfAll)
	return nil
}

// listServices has the first cluster list these services.
func (w *fleetWorld) listServices(ctx context.Context, services []v1alpha1.Service) error {
	list, err := json.Marshal(services)
	if err != nil {
		return err
	}
	cd := &v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.system, Name: nameOf(0)}}
	document := fmt.Sprintf(`[{"op": "add", "path": "/spec/serviceSpec/services", "value": %s}]`, list)
	return w.client.Patch(ctx, cd, client.RawPatch(types.JSONPatchType, []byte(document)))
}

// awaitChart waits until the chart is there, and nothing happens any more.
func (w *fleetWorld) awaitChart(ctx context.Context) error {
	seen, err := w.follow(ctx)
	if err != nil {
		return err
	}
	defer seen.stop()
	if err := seen.await(ctx, w.all(), w.deployed(1)); err != nil {
		return err
	}
	if err := w.quiet(ctx); err != nil {
		return err
	}
	left, err := w.leftOfCharts(ctx)
	if err == nil && left != w.objects+1 {
		err = fmt.Errorf("the chart has %d objects with its release, want %d", left, w.objects+1)
	}
	return err
}

// leftOfCharts is how many objects there are of charts and their releases on the first cluster.
func (w *fleetWorld) leftOfCharts(ctx context.Context) (int, error) {
	var objects corev1.ConfigMapList
	if err := w.client.List(ctx, &objects, client.InNamespace(w.spaces[0]), client.MatchingLabels{chartLabel: chartName}); err != nil {
		return 0, err
	}
	var releases corev1.SecretList
	err := w.client.List(ctx, &releases, client.InNamespace(w.spaces[0]), client.MatchingLabels{"owner": "helm"})
	return len(objects.Items) + len(releases.Items), err
}
