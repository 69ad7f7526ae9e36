package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
)

const (
	// heapBytes is the name under which contenders report what stays on the heap.
	heapBytes = "heap-bytes"
	// getNanoseconds is that for what a Get takes.
	getNanoseconds = "get-ns"

	// dataKeys and valueSize make a ConfigMap of 2 KB. The keys are the same in all of them, as in the
	// configurations of one application; the values are not.
	dataKeys  = 20
	valueSize = 85
	// appliedKeys is how many of the keys a second manager takes over.
	appliedKeys = 6
)

// cachedObjects measures what a ConfigMap takes in a cache with the defaults of each framework: what is left on the heap
// after its first listing, without what is collected.
func cachedObjects(ctx context.Context, e *environment) ([]line, error) {
	namespace, err := e.cluster.namespace(ctx, "cache")
	if err != nil {
		return nil, err
	}
	e.say("cache: create %d config maps of 2 KB", e.cached)
	if err := e.createConfigMaps(ctx, namespace); err != nil {
		return nil, err
	}
	s, err := e.compare(ctx, "cache",
		contender{controllerRuntime, e.cached, func(ctx context.Context, b *testing.B) error {
			return e.cacheWithControllerRuntime(ctx, b, namespace)
		}},
		contender{operatorKit, e.cached, func(ctx context.Context, b *testing.B) error {
			return e.cacheWithOperatorKit(ctx, b, namespace)
		}},
	)
	if err != nil {
		return nil, err
	}
	held := func(one sample) float64 { return one.Extra[heapBytes] / float64(e.cached) }
	what := fmt.Sprintf("cache of %d config maps of 2 KB: ", e.cached)
	return []line{
		compareLine(what+"held for each", inBytes, s, held).ratioAtMost(0.5),
		compareLine(what+"Get", inMicroseconds, s, extra(getNanoseconds)).ratioAtMost(2),
	}, nil
}

// gets reads each object once, and reports what that takes.
func (e *environment) gets(b *testing.B, namespace string, get func(client.ObjectKey) error) error {
	start := time.Now()
	for i := range e.cached {
		if err := get(client.ObjectKey{Namespace: namespace, Name: configName(i)}); err != nil {
			return err
		}
	}
	b.ReportMetric(float64(time.Since(start))/float64(e.cached), getNanoseconds)
	return nil
}

func configName(i int) string { return "config-" + strconv.Itoa(i) }

// createConfigMaps makes the objects with requests of two managers, so that their managed fields are real.
func (e *environment) createConfigMaps(ctx context.Context, namespace string) error {
	return inParallel(ctx, 16, e.cached, func(ctx context.Context, i int) error {
		created := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace,
				Name:      configName(i),
				Labels: map[string]string{
					"app.kubernetes.io/name":       "bench",
					"app.kubernetes.io/instance":   "bench-" + strconv.Itoa(i),
					"app.kubernetes.io/managed-by": "creator",
				},
				Annotations: map[string]string{"example.com/revision": strconv.Itoa(i)},
			},
			Data: map[string]string{},
		}
		for k := range dataKeys {
			created.Data[dataKey(k)] = randomText(valueSize)
		}
		if err := e.cluster.client.Create(ctx, created, client.FieldOwner("creator")); err != nil {
			return fmt.Errorf("create: %w", err)
		}
		applied := map[string]string{}
		for k := range appliedKeys {
			applied[dataKey(k)] = randomText(valueSize)
		}
		object := applycorev1.ConfigMap(created.Name, namespace).
			WithAnnotations(map[string]string{"example.com/checked-by": "applier"}).
			WithData(applied)
		if err := e.cluster.client.Apply(ctx, object, client.FieldOwner("applier"), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply: %w", err)
		}
		return nil
	})
}

func dataKey(k int) string { return "setting-" + strconv.Itoa(k) + ".conf" }

func randomText(size int) string {
	text := make([]byte, size)
	for i := range text {
		text[i] = byte('a' + rand.IntN(26))
	}
	return string(text)
}

func (e *environment) cacheWithControllerRuntime(ctx context.Context, b *testing.B, namespace string) error {
	return e.heldByControllerRuntime(ctx, b, namespace, e.cached, &corev1.ConfigMap{}, &corev1.ConfigMapList{}, func(ctx context.Context, c client.Reader) error {
		return e.gets(b, namespace, func(key client.ObjectKey) error { return c.Get(ctx, key, &corev1.ConfigMap{}) })
	})
}

func (e *environment) cacheWithOperatorKit(ctx context.Context, b *testing.B, namespace string) error {
	return e.heldByOperatorKit(ctx, b, namespace, e.cached, informer.KubernetesConfig{Object: &corev1.ConfigMap{}}, func(_ context.Context, source *informer.Kubernetes) error {
		return e.gets(b, namespace, func(key client.ObjectKey) error {
			obj, exists, err := source.Get(key)
			if err != nil || !exists {
				return fmt.Errorf("read %s, which is there: %t: %w", key, exists, err)
			}
			obj.(*corev1.ConfigMap).DeepCopy()
			return nil
		})
	})
}

// heldByControllerRuntime measures what a cache holds of as many objects as are wanted in a namespace, once read has read what it wants.
func (e *environment) heldByControllerRuntime(
	ctx context.Context, b *testing.B, namespace string, want int, object client.Object, all client.ObjectList, read func(context.Context, client.Reader) error,
) error {
	before := heap()
	c, err := cache.New(e.cluster.config, cache.Options{
		HTTPClient:        e.cluster.http,
		Mapper:            e.cluster.mapper,
		Scheme:            scheme.Scheme,
		DefaultNamespaces: map[string]cache.Config{namespace: {}},
	})
	if err != nil {
		return err
	}
	return held(ctx, b, before, want, c.Start, func(ctx context.Context) (int, error) {
		if _, err := c.GetInformer(ctx, object); err != nil {
			return 0, err
		}
		if !c.WaitForCacheSync(ctx) {
			return 0, errors.New("the cache was ended before it was synced")
		}
		listed := all.DeepCopyObject().(client.ObjectList) // which is not held
		err := c.List(ctx, listed, client.UnsafeDisableDeepCopy)
		return meta.LenList(listed), errors.Join(err, read(ctx, c))
	})
}

// heldByOperatorKit measures what a source holds of as many objects as are wanted in a namespace, once read has read what it wants.
func (e *environment) heldByOperatorKit(
	ctx context.Context, b *testing.B, namespace string, want int, config informer.KubernetesConfig, read func(context.Context, *informer.Kubernetes) error,
) error {
	logger, err := operatorKitLogger()
	if err != nil {
		return err
	}
	before := heap()
	config.Client, config.Namespaces, config.Logger = e.cluster.client, []string{namespace}, logger
	source, err := informer.NewKubernetes(config)
	if err != nil {
		return err
	}
	return held(ctx, b, before, want, source.Run, func(ctx context.Context) (int, error) {
		err := source.WaitForSync(ctx)
		return source.Status().Objects, errors.Join(err, read(ctx, source))
	})
}

// held runs a cache until it has listed as many objects as are wanted, and reports what it holds then.
func held(ctx context.Context, b *testing.B, before uint64, want int, run func(context.Context) error, list func(context.Context) (int, error)) error {
	done := newCountdown(1)
	listed := make(chan error, 1)
	stop, err := begin(ctx, b, func(ctx context.Context) error {
		go func() {
			n, err := list(ctx)
			if err == nil && n != want {
				err = fmt.Errorf("%d of %d objects are in the cache", n, want)
			}
			listed <- err
			done.one()
		}()
		return run(ctx)
	}, done)
	if err == nil {
		err = <-listed
		b.ReportMetric(float64(heap()-before), heapBytes)
	}
	err = errors.Join(err, stop())
	runtime.KeepAlive(list)
	return err
}

// heap returns the bytes on the heap that are in use: the least of several looks, because what was just used
// for a request may survive one collection.
func heap() uint64 {
	var least uint64
	for look := range 5 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if look == 0 || m.HeapAlloc < least {
			least = m.HeapAlloc
		}
	}
	return least
}
