package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/inspector/graph"
	"github.com/operatorkit/operatorkit/operator/servicesets"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

const (
	// graphsRepeated is how often a graph is drawn in a run.
	graphsRepeated = 10
	// graphsLabel is on the clusters and the MultiClusterService of one world, with its namespace as value.
	graphsLabel = "bench.operatorkit.io/world"
)

// graphs is how many services a MultiClusterService has, on how many clusters, from few to many; each number is a multiple of the first.
type graphs struct {
	services int
	clusters []int
}

// graphsOfClusters measures how long it takes to draw the services of a MultiClusterService, and how that grows with the clusters
// that it is counted on.
func graphsOfClusters(ctx context.Context, e *environment) (lines []line, err error) {
	var contenders []contender
	for _, clusters := range e.graphs.clusters {
		e.say("graphs: make %d clusters", clusters)
		w, err := newGraphWorld(ctx, e, clusters)
		if w != nil {
			defer func() { err = errors.Join(err, w.close(ctx)) }()
		}
		if err != nil {
			return nil, err
		}
		contenders = append(contenders, contender{ofClusters(clusters), graphsRepeated, w.draw})
	}
	s, err := e.compare(ctx, "graphs", contenders...)
	if err != nil {
		return nil, err
	}
	for _, clusters := range e.graphs.clusters {
		what := fmt.Sprintf("graph of %d services on %d clusters: ", e.graphs.services, clusters)
		one := series{operatorKit: s[ofClusters(clusters)]}
		lines = append(lines, reportLine(what+"time", inMicroseconds, one, nanoseconds), reportLine(what+"memory", inBytes, one, memory))
	}
	few, most := e.graphs.clusters[0], e.graphs.clusters[len(e.graphs.clusters)-1]
	return append(lines, line{
		Measure: fmt.Sprintf("graph of %d services on %d clusters to %d: time", e.graphs.services, most, few),
		Unit:    counted,
		Ratio:   s.ratio(ofClusters(most), ofClusters(few), nanoseconds),
	}.ratioAtMost(float64(most/few))), nil
}

func ofClusters(clusters int) string { return strconv.Itoa(clusters) + " clusters" }

// graphWorld is an operator of service sets, and one MultiClusterService that is deployed on all of so many clusters.
type graphWorld struct {
	graphs
	clusters int
	client   client.Client
	system   string
	provider *v1alpha1.StateManagementProvider
	multi    *v1alpha1.MultiClusterService

	inspect func(context.Context) ([]*graph.Graph, error)
	stop    func() error
}

// newGraphWorld makes the clusters, and waits until all of them have all services. A world that comes with an error has to be closed.
func newGraphWorld(ctx context.Context, e *environment, clusters int) (*graphWorld, error) {
	w := &graphWorld{graphs: e.graphs, clusters: clusters, stop: func() error { return nil }}
	scheme, err := fleetScheme()
	if err != nil {
		return nil, err
	}
	if w.client, err = client.New(e.cluster.config, client.Options{HTTPClient: e.cluster.http, Scheme: scheme}); err != nil {
		return nil, err
	}
	if err := installKinds(ctx, w.client); err != nil {
		return nil, err
	}
	if w.system, err = e.cluster.namespace(ctx, "graphs"); err != nil {
		return nil, err
	}
	if err := w.create(ctx); err != nil {
		return w, err
	}
	if err := w.start(ctx, e.cluster); err != nil {
		return w, err
	}
	if err := untilWithin(ctx, fleetTimeout, w.report); err != nil {
		return w, fmt.Errorf("wait until %d clusters have their services: %w", clusters, err)
	}
	if err := until(ctx, w.drawn); err != nil {
		return w, fmt.Errorf("wait until the graph has them: %w", err)
	}
	return w, nil
}

// labels are what tells the world from others on the same API server.
func (w *graphWorld) labels() map[string]string { return map[string]string{graphsLabel: w.system} }

// create makes the clusters and the MultiClusterService.
func (w *graphWorld) create(ctx context.Context) error {
	w.provider = &v1alpha1.StateManagementProvider{
		ObjectMeta: metav1.ObjectMeta{Name: w.system},
		Spec:       v1alpha1.StateManagementProviderSpec{Selector: metav1.LabelSelector{MatchLabels: w.labels()}},
	}
	w.multi = &v1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Name: w.system, Labels: w.labels()}}
	w.multi.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: w.labels()}
	w.multi.Spec.ServiceSpec.Provider.Name = w.system
	for i := range w.services {
		template := &v1alpha1.ServiceTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: w.system, Name: templateOf(i, 1)}}
		template.Spec.Helm = &v1alpha1.HelmChart{Repository: "https://charts.example.com", Chart: chartName, Version: chartVersion}
		if err := w.client.Create(ctx, template); err != nil {
			return err
		}
		w.multi.Spec.ServiceSpec.Services = append(w.multi.Spec.ServiceSpec.Services, v1alpha1.Service{
			Name: fmt.Sprintf("app-%d", i), Template: template.Name,
		})
	}
	err := inParallel(ctx, 10, w.clusters, func(ctx context.Context, i int) error {
		return w.client.Create(ctx, &v1alpha1.ClusterDeployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.system, Name: nameOf(i), Labels: w.labels()},
		})
	})
	if err != nil {
		return err
	}
	if err := w.client.Create(ctx, w.provider); err != nil {
		return err
	}
	return w.client.Create(ctx, w.multi)
}

// start runs the operator.
func (w *graphWorld) start(ctx context.Context, c *cluster) error {
	logger, err := operatorKitLogger()
	if err != nil {
		return err
	}
	d, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: "bench", RESTConfig: c.config, Scheme: w.client.Scheme(), Logger: logger, Namespaces: []string{w.system}, InspectorAddress: "127.0.0.1:0",
	})
	if err != nil {
		return err
	}
	frameworks, err := servicesets.New(d, servicesets.Config{
		SystemNamespace: w.system, MultiClusterServices: labels.SelectorFromSet(w.labels()),
	})
	if err != nil {
		return err
	}
	w.inspect = func(ctx context.Context) ([]*graph.Graph, error) {
		return d.Inspector.Graphs(ctx, frameworks[1], informer.Key{Name: w.multi.Name})
	}
	w.stop, err = runFrameworks(ctx, d, frameworks...)
	return err
}

// report tells for each cluster, as a state manager does, that the services that its sets list are deployed, and no others. It returns whether
// all sets of all clusters had been told of before.
func (w *graphWorld) report(ctx context.Context) (bool, error) {
	var sets v1alpha1.ServiceSetList
	if err := w.client.List(ctx, &sets, client.InNamespace(w.system)); err != nil {
		return false, err
	}
	var left []*v1alpha1.ServiceSet
	for i := range sets.Items {
		if set := &sets.Items[i]; len(set.Status.Services) != len(set.Spec.Services) {
			left = append(left, set)
		}
	}
	err := inParallel(ctx, 10, len(left), func(ctx context.Context, i int) error {
		left[i].Status.Services = nil
		for _, s := range left[i].Spec.Services {
			left[i].Status.Services = append(left[i].Status.Services, v1alpha1.ServiceState{
				Name: s.Name, Namespace: s.Namespace, Template: s.Template, Version: s.Version, State: v1alpha1.ServiceStateDeployed,
			})
		}
		err := w.client.Status().Update(ctx, left[i])
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return nil // it has changed since, and is told of the next time
		}
		return err
	})
	return len(left) == 0 && len(sets.Items) == w.clusters, err
}

// drawn tells whether the graph has all clusters with all services.
func (w *graphWorld) drawn(ctx context.Context) (bool, error) {
	graphs, err := w.inspect(ctx)
	if err != nil || len(graphs) == 0 || len(graphs[0].Nodes) != w.services {
		return false, err
	}
	want := fmt.Sprintf("deployed on %d of %d clusters", w.clusters, w.clusters)
	return !slices.ContainsFunc(graphs[0].Nodes, func(n graph.Node) bool { return n.Message != want }), nil
}

// draw draws the graph.
func (w *graphWorld) draw(ctx context.Context, b *testing.B) error {
	b.StartTimer()
	defer b.StopTimer()
	for range graphsRepeated {
		if whole, err := w.drawn(ctx); err != nil || !whole {
			return cmp.Or(err, errors.New("the graph lacks clusters"))
		}
	}
	return nil
}

// close takes everything away again, and ends the operator.
func (w *graphWorld) close(ctx context.Context) error {
	var errs []error
	for _, o := range []client.Object{w.multi, w.provider} {
		errs = append(errs, client.IgnoreNotFound(w.client.Delete(ctx, o)))
	}
	errs = append(errs,
		w.client.DeleteAllOf(ctx, &v1alpha1.ClusterDeployment{}, client.InNamespace(w.system)), untilWithin(ctx, fleetTimeout, w.gone))
	return errors.Join(append(errs, w.stop())...)
}

// gone tells whether nothing is left that the operator waits for.
func (w *graphWorld) gone(ctx context.Context) (bool, error) {
	if _, err := w.report(ctx); err != nil {
		return false, err
	}
	var clusters v1alpha1.ClusterDeploymentList
	if err := w.client.List(ctx, &clusters, client.InNamespace(w.system)); err != nil || len(clusters.Items) > 0 {
		return false, err
	}
	err := w.client.Get(ctx, client.ObjectKeyFromObject(w.multi), &v1alpha1.MultiClusterService{})
	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}
