package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// cleanupTimeout ends a clean-up whose server does not answer.
const cleanupTimeout = time.Minute

// cluster is the API server that rows work against. All contenders share its HTTP client and what it has learned of the
// API, so that none of them pays for what the others get for nothing.
type cluster struct {
	config *rest.Config
	http   *http.Client
	mapper meta.RESTMapper
	client client.WithWatch

	namespaces []string
	stop       func(context.Context) error
}

// newCluster uses the API server that the environment names, or starts one.
func newCluster(ctx context.Context) (*cluster, error) {
	if kubeconfig := os.Getenv(operatortest.KubeconfigVariable); kubeconfig != "" {
		config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("load %s=%s: %w", operatortest.KubeconfigVariable, kubeconfig, err)
		}
		return connect(config)
	}
	return startCluster(ctx, operatortest.Config{})
}

// startCluster starts an API server, which close stops.
func startCluster(ctx context.Context, config operatortest.Config) (*cluster, error) {
	instance, err := operatortest.Run(ctx, config)
	if err != nil {
		return nil, err
	}
	c, err := connect(instance.RESTConfig())
	if err != nil {
		return nil, errors.Join(err, instance.Stop(ctx))
	}
	c.stop = instance.Stop
	return c, nil
}

func connect(config *rest.Config) (*cluster, error) {
	config.QPS = -1
	c := &cluster{config: config}
	var err error
	if c.http, err = rest.HTTPClientFor(config); err != nil {
		return nil, err
	}
	if c.mapper, err = apiutil.NewDynamicRESTMapper(config, c.http); err != nil {
		return nil, err
	}
	if _, err := c.mapper.RESTMapping(corev1.SchemeGroupVersion.WithKind("ConfigMap").GroupKind()); err != nil {
		return nil, fmt.Errorf("ask %s for its API: %w", config.Host, err)
	}
	c.client, err = client.NewWithWatch(config, client.Options{HTTPClient: c.http, Mapper: c.mapper, Scheme: scheme.Scheme})
	return c, err
}

// tracked returns a client as operator.Dependencies has it: the sources that are made with it know what it writes.
func (c *cluster) tracked() (client.WithWatch, error) {
	writes := &informer.Writes{}
	own, err := client.NewWithWatch(c.config, client.Options{
		HTTPClient: &http.Client{Transport: writes.Transport(c.http.Transport)}, Mapper: c.mapper, Scheme: scheme.Scheme,
	})
	if err != nil {
		return nil, err
	}
	return writes.Client(own), nil
}

// namespace makes a namespace that close deletes.
func (c *cluster) namespace(ctx context.Context, row string) (string, error) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-" + strings.ToLower(row) + "-"}}
	if err := c.client.Create(ctx, ns); err != nil {
		return "", fmt.Errorf("create a namespace: %w", err)
	}
	c.namespaces = append(c.namespaces, ns.Name)
	return ns.Name, nil
}

// close deletes the namespaces that were made. The deletion of what is in them goes on in the API server. A server that
// was started for this run is stopped instead.
func (c *cluster) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	defer c.http.CloseIdleConnections()
	if c.stop != nil {
		return c.stop(ctx)
	}
	var errs []error
	for _, name := range c.namespaces {
		err := c.client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if err != nil {
			errs = append(errs, fmt.Errorf("delete namespace %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// inParallel calls do for 0 to n-1, from that many goroutines. The first error ends it.
func inParallel(ctx context.Context, goroutines, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	indexes := make(chan int, n)
	for i := range n {
		indexes <- i
	}
	close(indexes)
	var left atomic.Int64
	left.Store(int64(n))
	var running sync.WaitGroup
	for range goroutines {
		running.Go(func() {
			for i := range indexes {
				if ctx.Err() != nil {
					return
				}
				if err := do(ctx, i); err != nil {
					cancel(err)
					return
				}
				left.Add(-1)
			}
		})
	}
	running.Wait()
	if left.Load() == 0 {
		return nil
	}
	return context.Cause(ctx)
}
