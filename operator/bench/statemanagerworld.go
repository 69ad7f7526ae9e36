package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/servicesets"
	"github.com/operatorkit/operatorkit/operator/statemanagers"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// fleetTimeout ends a wait for all services of all clusters.
const fleetTimeout = 10 * time.Minute

// fleetWorld is many clusters in one API server, with the operators that put services onto them. A cluster is a namespace, and an
// identity that may write there and nowhere else.
type fleetWorld struct {
	fleet
	cluster *cluster
	client  client.WithWatch
	// system is the namespace of what is on the management cluster, and spaces are those that stand for clusters.
	system string
	spaces []string
	// links are the ways to the clusters, and management is that to the management cluster.
	links      []*link
	management link
	// versions are those of the service that changes, on each cluster.
	versions []int

	folder string
	charts *chartServer
	stop   func() error
}

// newFleetWorld makes everything but the clusters, and starts the operators.
func newFleetWorld(ctx context.Context, e *environment) (w *fleetWorld, err error) {
	w = &fleetWorld{fleet: e.fleet, cluster: e.cluster, versions: make([]int, e.fleet.clusters), stop: func() error { return nil }}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close(ctx))
		}
	}()
	scheme, err := fleetScheme()
	if err != nil {
		return w, err
	}
	if w.client, err = client.NewWithWatch(e.cluster.config, client.Options{HTTPClient: e.cluster.http, Scheme: scheme}); err != nil {
		return w, err
	}
	if err := installKinds(ctx, w.client); err != nil {
		return w, err
	}
	if w.system, err = e.cluster.namespace(ctx, "statemanager"); err != nil {
		return w, err
	}
	for range w.clusters {
		space, err := e.cluster.namespace(ctx, "statemanager")
		if err != nil {
			return w, err
		}
		w.spaces, w.links = append(w.spaces, space), append(w.links, &link{})
	}
	if w.folder, err = os.MkdirTemp("", "bench"); err != nil {
		return w, err
	}
	if w.charts, err = serveCharts(w.objects); err != nil {
		return w, err
	}
	if err := w.createTemplates(ctx); err != nil {
		return w, err
	}
	return w, w.start(ctx, scheme)
}

// start runs the operators, on two links: the one to the management cluster, and the one to each other.
func (w *fleetWorld) start(ctx context.Context, scheme *runtime.Scheme) error {
	logger, err := operatorKitLogger()
	if err != nil {
		return err
	}
	restConfig := rest.CopyConfig(w.cluster.config)
	restConfig.Wrap(w.management.transport)
	d, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: "bench", RESTConfig: restConfig, Scheme: scheme, Logger: logger, Namespaces: []string{w.system},
	})
	if err != nil {
		return err
	}
	sources, err := servicesets.NewSources(d, w.system)
	if err != nil {
		return err
	}
	frameworks, err := servicesets.New(d, servicesets.Config{SystemNamespace: w.system, Sources: sources})
	if err != nil {
		return err
	}
	managers, err := statemanagers.New(d, statemanagers.Config{
		SystemNamespace: w.system, Sources: sources,
		Native: &statemanagers.NativeConfig{
			// A provider of its own: one operator has a provider, and the API server may be shared.
			Provider: w.system,
			Fetch:    fetch.Config{Folder: w.folder},
			Targets: statemanagers.Targets{
				// What is measured is the work, not the limits; and no probes but those of a dead cluster.
				QPS: -1, ProbeInterval: time.Hour, MinRetry: 100 * time.Millisecond, MaxRetry: time.Second,
				WrapTransport: w.wrap,
			},
		},
	})
	if err != nil {
		return err
	}
	stop, err := runFrameworks(ctx, d, append(frameworks, managers...)...)
	if err != nil {
		return err
	}
	w.stop = func() error {
		provider := &v1alpha1.StateManagementProvider{ObjectMeta: metav1.ObjectMeta{Name: w.system}}
		return errors.Join(stop(), client.IgnoreNotFound(w.client.Delete(context.WithoutCancel(ctx), provider)))
	}
	return nil
}

// runFrameworks runs an operator of these frameworks until stop is called.
func runFrameworks(ctx context.Context, d *operator.Dependencies, frameworks ...*framework.Framework) (stop func() error, err error) {
	o, err := operator.New(operator.Config{Name: d.Name, Logger: d.Logger, RESTConfig: d.RESTConfig, Registry: d.Registry, Frameworks: frameworks})
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- o.Run(running) }()
	return func() error {
		cancel()
		defer d.Close()
		return <-ended
	}, nil
}

// wrap puts the link of a cluster into the way of its requests.
func (w *fleetWorld) wrap(key target.Key, next http.RoundTripper) http.RoundTripper {
	if i := slices.IndexFunc(w.all(), func(i int) bool { return nameOf(i) == key.Name }); i >= 0 {
		return w.links[i].transport(next)
	}
	return next
}

// all are the numbers of the clusters.
func (w *fleetWorld) all() []int {
	numbers := make([]int, w.clusters)
	for i := range numbers {
		numbers[i] = i
	}
	return numbers
}

func nameOf(i int) string { return fmt.Sprintf("cluster-%d", i) }

// requests are how many requests there were.
type requests struct{ targets, management, writes int64 }

func (w *fleetWorld) counts() requests {
	all := requests{management: w.management.count(), writes: w.management.writes.Load()}
	for _, l := range w.links {
		all.targets += l.count()
		all.writes += l.writes.Load()
	}
	return all
}

// quiet waits until nobody asks for anything any more.
func (w *fleetWorld) quiet(ctx context.Context) error {
	var count atomic.Int64
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for watching.Err() == nil {
			all := w.counts()
			count.Store(all.targets + all.management)
			time.Sleep(pollInterval)
		}
	}()
	return untilQuiet(ctx, &count)
}

// change gives a cluster the other version of the service that changes.
func (w *fleetWorld) change(ctx context.Context, i int) error {
	w.versions[i] = 3 - w.versions[i]
	cd := &v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.system, Name: nameOf(i)}}
	document := fmt.Sprintf(`[{"op": "replace", "path": "/spec/serviceSpec/services/%d/template", "value": %q}]`,
		w.changing(), templateOf(w.changing(), w.versions[i]))
	return w.client.Patch(ctx, cd, client.RawPatch(types.JSONPatchType, []byte(document)))
}

// changing is the number of the service that changes: the last one, which is made of manifests.
func (w *fleetWorld) changing() int { return w.services - 1 }

// deployed returns a condition: all services are deployed, the one that changes in a version.
func (w *fleetWorld) deployed(version int) func(int, *v1alpha1.ServiceSet) bool {
	return func(_ int, set *v1alpha1.ServiceSet) bool {
		deployed, changed := 0, false
		for i := range set.Status.Services {
			s := &set.Status.Services[i]
			if s.State == v1alpha1.ServiceStateDeployed {
				deployed++
				changed = changed || s.Template == templateOf(w.changing(), version)
			}
		}
		return deployed == w.services && changed
	}
}

// following is what is seen of the service sets.
type following struct {
	watch watch.Interface
	sets  map[string]*v1alpha1.ServiceSet
}

// follow begins to look at the service sets.
func (w *fleetWorld) follow(ctx context.Context) (*following, error) {
	watching, err := w.client.Watch(ctx, &v1alpha1.ServiceSetList{}, client.InNamespace(w.system))
	if err != nil {
		return nil, fmt.Errorf("watch the service sets: %w", err)
	}
	return &following{watching, map[string]*v1alpha1.ServiceSet{}}, nil
}

func (f *following) stop() { f.watch.Stop() }

// await waits until a condition holds for the sets of some clusters.
func (f *following) await(ctx context.Context, clusters []int, holds func(int, *v1alpha1.ServiceSet) bool) error {
	ctx, cancel := context.WithTimeout(ctx, fleetTimeout)
	defer cancel()
	for {
		left := slices.ContainsFunc(clusters, func(i int) bool {
			set := f.sets[nameOf(i)]
			return set == nil || !holds(i, set)
		})
		if !left {
			return nil
		}
		select {
		case event, open := <-f.watch.ResultChan():
			if !open {
				return errors.New("the watch of service sets ended")
			}
			if set, ok := event.Object.(*v1alpha1.ServiceSet); ok {
				f.sets[set.Name] = set
			}
		case <-ctx.Done():
			return fmt.Errorf("wait for service sets: %w", ctx.Err())
		}
	}
}

// close takes all services away again, and ends the operators.
func (w *fleetWorld) close(ctx context.Context) error {
	var errs []error
	for _, l := range w.links {
		l.mend()
	}
	if w.client != nil && w.system != "" {
		errs = append(errs, w.deleteClusters(ctx))
	}
	errs = append(errs, w.stop(), w.deleteIdentities(ctx))
	if w.charts != nil {
		w.charts.Close()
	}
	if w.folder != "" {
		errs = append(errs, os.RemoveAll(w.folder))
	}
	return errors.Join(errs...)
}

// deleteClusters deletes all clusters, and waits until they are gone.
func (w *fleetWorld) deleteClusters(ctx context.Context) error {
	if err := w.client.DeleteAllOf(ctx, &v1alpha1.ClusterDeployment{}, client.InNamespace(w.system)); err != nil {
		return fmt.Errorf("delete the clusters: %w", err)
	}
	return untilWithin(ctx, fleetTimeout, func(ctx context.Context) (bool, error) {
		left := &metav1.PartialObjectMetadataList{}
		left.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ClusterDeploymentKind + "List"))
		err := w.client.List(ctx, left, client.InNamespace(w.system))
		return err == nil && len(left.Items) == 0, client.IgnoreNotFound(err)
	})
}

// create creates objects that may be there already.
func (w *fleetWorld) create(ctx context.Context, objects ...client.Object) error {
	for _, o := range objects {
		if err := w.client.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// files is the ConfigMap with the manifests of a template.
func (w *fleetWorld) files(service, version int) *corev1.ConfigMap {
	name := templateOf(service, version)
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.system, Name: name},
		Data: map[string]string{"app.yaml": fmt.Sprintf(
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app-%d}\ndata: {version: \"%d\"}\n", service, version)},
	}
}
