package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/operator/serviceprovider"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
)

// orderSettings is how many settings of 85 bytes an order has.
const orderSettings = 20

// providedObjects measures what an object of a service provider takes: what is left on the heap when all objects are ready, without
// what is collected. With controller-runtime it is a controller that reads its objects from the cache, as its users write it.
func providedObjects(ctx context.Context, e *environment) (_ []line, err error) {
	namespace, err := e.cluster.namespace(ctx, "serviceprovider")
	if err != nil {
		return nil, err
	}
	p := &provided{environment: e, namespace: namespace}
	remove, err := p.define(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	e.say("serviceprovider: create %d orders of 2 KB", e.provided)
	if err := p.createOrders(ctx); err != nil {
		return nil, err
	}
	s, err := e.compare(ctx, "serviceprovider",
		contender{controllerRuntime, e.provided, p.withControllerRuntime}, contender{operatorKit, e.provided, p.withOperatorKit})
	if err != nil {
		return nil, err
	}
	held := func(one sample) float64 { return one.Extra[heapBytes] / float64(e.provided) }
	what := fmt.Sprintf("service provider with %d objects of 2 KB: ", e.provided)
	return []line{compareLine(what+"held for each", inBytes, s, held).ratioAtMost(1)}, nil
}

// provided are the objects of a service provider.
type provided struct {
	*environment
	namespace string
}

// define installs the definition of the API, and returns what removes it.
func (p *provided) define(ctx context.Context) (remove func() error, err error) {
	crd := orderDefinition(p.namespace)
	if err := p.cluster.client.Create(ctx, crd); err != nil {
		return nil, fmt.Errorf("create a definition: %w", err)
	}
	remove = func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		return errors.Join(p.letGo(ctx), client.IgnoreNotFound(p.cluster.client.Delete(ctx, crd)))
	}
	for {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(orderKind(p.namespace).GroupVersion().WithKind("OrderList"))
		err := p.cluster.client.List(ctx, list, client.InNamespace(p.namespace))
		switch {
		case err == nil:
			return remove, nil
		case !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err):
			return nil, errors.Join(fmt.Errorf("wait for the definition: %w", err), remove())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), remove())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// letGo takes the finalizers off the orders that are left.
func (p *provided) letGo(ctx context.Context) error {
	orders := &unstructured.UnstructuredList{}
	orders.SetGroupVersionKind(orderKind(p.namespace).GroupVersion().WithKind("OrderList"))
	err := p.cluster.client.List(ctx, orders, client.InNamespace(p.namespace))
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	return inParallel(ctx, 16, len(orders.Items), func(ctx context.Context, i int) error {
		body := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		return client.IgnoreNotFound(p.cluster.client.Patch(ctx, &orders.Items[i], body))
	})
}

func (p *provided) createOrders(ctx context.Context) error {
	if err := p.cluster.client.Create(ctx, &newProviderConfig(p.namespace).ConfigMap); err != nil {
		return fmt.Errorf("create the config: %w", err)
	}
	return inParallel(ctx, 16, p.provided, func(ctx context.Context, i int) error {
		settings := map[string]any{}
		for k := range orderSettings {
			settings[dataKey(k)] = randomText(valueSize)
		}
		order := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"settings": settings}}}
		order.SetGroupVersionKind(orderKind(p.namespace))
		order.SetNamespace(p.namespace)
		order.SetName("order-" + strconv.Itoa(i))
		if err := p.cluster.client.Create(ctx, order); err != nil {
			return fmt.Errorf("create an order: %w", err)
		}
		return nil
	})
}

// manager makes one that has no cache of its own in use.
func (p *provided) manager() (manager.Manager, error) {
	return manager.New(p.cluster.config, manager.Options{
		Scheme:         orderScheme(p.namespace),
		Logger:         controllerRuntimeLogger(),
		Metrics:        server.Options{BindAddress: "0"},
		Controller:     config.Controller{SkipNameValidation: new(true)},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return p.cluster.mapper, nil },
		Client:         client.Options{HTTPClient: p.cluster.http},
		Cache:          cache.Options{HTTPClient: p.cluster.http, DefaultNamespaces: map[string]cache.Config{p.namespace: {}}},
	})
}

func (p *provided) withControllerRuntime(ctx context.Context, b *testing.B) error {
	before := heap()
	m, err := p.manager()
	if err != nil {
		return err
	}
	done := newCountdown(p.provided)
	err = builder.ControllerManagedBy(m).Named("orders").For(&order{}).
		Complete(reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			o := &order{}
			if err := m.GetClient().Get(ctx, request.NamespacedName, o); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			done.one()
			return reconcile.Result{}, nil
		}))
	if err != nil {
		return err
	}
	return p.held(ctx, b, before, m, done)
}

func (p *provided) withOperatorKit(ctx context.Context, b *testing.B) error {
	before := heap()
	m, err := p.manager()
	if err != nil {
		return err
	}
	here, err := clusters.New("here", p.cluster.config, orderScheme(p.namespace))
	if err != nil {
		return err
	}
	done := newCountdown(p.provided)
	r, err := serviceprovider.NewAPIReconcilerBuilder[*order, *providerConfig]().
		PlatformCluster(here).OnboardingCluster(here).ClusterAccessReconciler(accessAtHand{here}).
		EmptyObjectProvider(func() *order { return &order{} }).Namespaces(p.namespace).
		ProviderConfig(newProviderConfig(p.namespace)).Reconciler(orderCounter{done}).Build()
	if err != nil {
		return err
	}
	if err := r.SetupWithManager(m, "orders", nil); err != nil {
		return err
	}
	return p.held(ctx, b, before, m, done)
}

// held runs a manager until all objects were reconciled, and reports what it holds then.
func (p *provided) held(ctx context.Context, b *testing.B, before uint64, m manager.Manager, done *countdown) error {
	stop, err := begin(ctx, b, m.Start, done)
	if err == nil {
		b.ReportMetric(float64(heap())-float64(before), heapBytes)
	}
	return errors.Join(err, stop())
}
