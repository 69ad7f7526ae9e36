package serviceprovider_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/giantswarm/micrologger"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/context/resourcecanceledcontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
)

// placed is a CRUD resource: the ConfigMap of a Postgres in one of its clusters, which edition changes.
type placed struct {
	role    string
	of      func(clusterCtx) *clusters.Cluster
	edition string
}

func inMCP(edition string) *placed {
	return &placed{mcp, func(c clusterCtx) *clusters.Cluster { return c.MCPCluster }, edition}
}

func inWorkload(edition string) *placed {
	return &placed{workload, func(c clusterCtx) *clusters.Cluster { return c.WorkloadCluster }, edition}
}

func (p *placed) client(ctx context.Context) (client.Client, error) {
	found, ok := serviceprovider.ClustersFrom(ctx)
	if !ok {
		return nil, errors.New("there are no clusters in the context")
	}
	return p.of(found).Client(), nil
}

func (p *placed) Name() string { return p.role }

func (p *placed) GetCurrentState(ctx context.Context, obj *Postgres) (*corev1.ConfigMap, error) {
	if found, ok := serviceprovider.ClustersFrom(ctx); ok && obj.DeletionTimestamp != nil && p.of(found) == nil {
		resourcecanceledcontext.SetCanceled(ctx)
		return nil, nil
	}
	c, err := p.client(ctx)
	if err != nil {
		return nil, err
	}
	m := &corev1.ConfigMap{}
	err = c.Get(ctx, client.ObjectKeyFromObject(obj), m)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	return m, nil
}

func (p *placed) GetDesiredState(ctx context.Context, obj *Postgres) (*corev1.ConfigMap, error) {
	config, ok := serviceprovider.ConfigFrom[*ProviderConfig](ctx)
	if !ok {
		return nil, errors.New("there is no config in the context")
	}
	if status, ok := serviceprovider.ObjectFrom[*Postgres](ctx); ok {
		status.Endpoint = obj.Name + ".example.com"
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: obj.Namespace, Name: obj.Name},
		Data:       map[string]string{"size": fmt.Sprint(obj.Spec.Size), "version": config.Spec.Version + p.edition},
	}, nil
}

func (p *placed) NewUpdatePatch(_ context.Context, _ *Postgres, current, desired *corev1.ConfigMap) (*framework.TypedPatch[*corev1.ConfigMap], error) {
	patch := framework.NewTypedPatch[*corev1.ConfigMap]()
	switch {
	case current == nil:
		patch.SetCreateChange(desired)
	case !cmp.Equal(current.Data, desired.Data):
		changed := current.DeepCopy()
		changed.Data = desired.Data
		patch.SetUpdateChange(changed)
	}
	return patch, nil
}

func (p *placed) NewDeletePatch(_ context.Context, _ *Postgres, current, _ *corev1.ConfigMap) (*framework.TypedPatch[*corev1.ConfigMap], error) {
	patch := framework.NewTypedPatch[*corev1.ConfigMap]()
	if current != nil {
		patch.SetDeleteChange(current)
	}
	return patch, nil
}

func (p *placed) ApplyCreateChange(ctx context.Context, _ *Postgres, m *corev1.ConfigMap) error {
	c, err := p.client(ctx)
	if err != nil {
		return err
	}
	return c.Create(ctx, m.DeepCopy())
}

func (p *placed) ApplyUpdateChange(ctx context.Context, _ *Postgres, m *corev1.ConfigMap) error {
	c, err := p.client(ctx)
	if err != nil {
		return err
	}
	return c.Update(ctx, m.DeepCopy())
}

func (p *placed) ApplyDeleteChange(ctx context.Context, _ *Postgres, m *corev1.ConfigMap) error {
	c, err := p.client(ctx)
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(c.Delete(ctx, m.DeepCopy()))
}

func quiet(t testing.TB) micrologger.Logger {
	t.Helper()
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	return logger
}

// crud makes a resource.
func crud(t testing.TB, ops framework.TypedCRUDResourceOps[*Postgres, *corev1.ConfigMap]) framework.Resource {
	t.Helper()
	r, err := framework.NewTypedCRUDResource(framework.TypedCRUDResourceConfig[*Postgres, *corev1.ConfigMap]{Logger: quiet(t), Ops: ops})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// signal is a resource that does something to the reconciliation, and changes nothing.
type signal func(ctx context.Context) error

func (signal) Name() string { return "signal" }

func (s signal) EnsureCreated(ctx context.Context, _ any) error { return s(ctx) }

func (s signal) EnsureDeleted(ctx context.Context, _ any) error { return s(ctx) }

// madeOf makes a Reconciler of resource sets.
func madeOf(t testing.TB, sets ...framework.ResourceSetConfig) *serviceprovider.Resources[*Postgres, *ProviderConfig] {
	t.Helper()
	config := framework.ResourceRouterConfig{Logger: quiet(t)}
	for _, set := range sets {
		if set.Handles == nil {
			set.Handles = framework.HandlesType[*Postgres]
		}
		made, err := framework.NewResourceSet(set)
		if err != nil {
			t.Fatal(err)
		}
		config.ResourceSets = append(config.ResourceSets, made)
	}
	router, err := framework.NewResourceRouter(config)
	if err != nil {
		t.Fatal(err)
	}
	return serviceprovider.FromResources[*Postgres, *ProviderConfig](router)
}

// version1 are the resources of a provider.
func version1(t testing.TB) framework.ResourceSetConfig {
	return framework.ResourceSetConfig{Name: "v1", Resources: []framework.Resource{crud(t, inMCP("")), crud(t, inWorkload(""))}}
}

// version2 is what shall come next: another edition in the MCP.
func version2(t testing.TB) framework.ResourceSetConfig {
	return framework.ResourceSetConfig{Name: "v2", Shadow: true, Resources: []framework.Resource{crud(t, inMCP("-enterprise")), crud(t, inWorkload(""))}}
}

// framework runs the framework of a provider until the test ends.
func (w *world) framework(r *reconciler, config framework.Config) *framework.Framework {
	w.t.Helper()
	config.Logger = quiet(w.t)
	f, err := r.Framework(config)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
	return f
}
