package story

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/internal/demo"
	"github.com/operatorkit/operatorkit/examples/platform"
	"github.com/operatorkit/operatorkit/operator/statemanagers"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// world is where the story takes place: the cluster of the operator, those with the services, and a registry.
type world struct {
	*demo.Demo

	native   *statemanagers.NativeConfig
	registry string // host and port
	clusters []*cluster
	progress *progress
	// docs is the service that joins the others later.
	docs v1alpha1.Service
}

// prepare makes everything but the operator: the registry with the charts, the API, the templates, and the clusters.
func (w *world) prepare(ctx context.Context, d *demo.Demo) error {
	w.Demo = d
	w.native.Fetch.Folder = filepath.Join(d.Folder, "charts")
	if err := w.serveRegistry(); err != nil {
		return err
	}
	published, err := platform.PublishCharts(ctx, w.registry)
	if err != nil {
		return err
	}
	w.Step("publishing %d versions of three charts in an OCI registry at %s", published, w.registry)
	if err := w.Quietly(ctx, "crds", "--apply"); err != nil {
		return err
	}
	objects, err := platform.Catalog(w.Namespace, w.registry)
	if err != nil {
		return err
	}
	for name, instance := range d.Clusters {
		kubeconfig, err := os.ReadFile(instance.Kubeconfig())
		if err != nil {
			return fmt.Errorf("read the kubeconfig of cluster %s: %w", name, err)
		}
		objects = append(objects, platform.Cluster(w.Namespace, name, kubeconfig)...)
		c, err := newCluster(name, instance)
		if err != nil {
			return err
		}
		w.clusters = append(w.clusters, c)
	}
	slices.SortFunc(w.clusters, byName)
	services, err := platform.Services()
	if err != nil {
		return err
	}
	list := &services.Spec.ServiceSpec.Services
	last := len(*list) - 1
	w.docs, *list = (*list)[last], (*list)[:last]
	for _, obj := range append(objects, client.Object(services)) {
		if err := w.Client.Create(ctx, obj); err != nil {
			return fmt.Errorf("create %T %s: %w", obj, obj.GetName(), err)
		}
	}
	w.progress = newProgress()
	w.Go("the watch of service sets", func(ctx context.Context) error { return w.progress.follow(ctx, w.Client, w.Namespace) })
	return nil
}

// serveRegistry serves an OCI registry on loopback until the story ends.
func (w *world) serveRegistry() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the registry: %w", err)
	}
	w.registry = listener.Addr().String()
	server := &http.Server{
		Handler:           registry.New(registry.Logger(log.New(io.Discard, "", 0))),
		ReadHeaderTimeout: time.Minute,
	}
	w.Go("the registry", func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { _ = server.Close() })
		defer stop()
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	return nil
}
