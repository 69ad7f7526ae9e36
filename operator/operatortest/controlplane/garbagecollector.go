package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
)

const (
	// Discovery is looked at this often while CustomResourceDefinitions change…
	busySyncPeriod = time.Second
	// …which is taken to be over this long after the last change…
	busyDuration = 10 * time.Second
	// …and this often otherwise.
	idleSyncPeriod = 30 * time.Second

	garbageCollectorWorkers = 10
)

// collectGarbage runs Kubernetes' garbage collector, which deletes the objects
// whose owners are gone, until ctx ends. It differs from the controller
// manager's in two ways: it learns of a new kind of owner within about a
// second instead of thirty, and it caches metadata only.
func collectGarbage(ctx context.Context, config *rest.Config, kinds *kinds) error {
	config = rest.CopyConfig(config)
	config.UserAgent = "garbage-collector"

	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create metadata client: %w", err)
	}
	started := make(chan struct{})
	close(started)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	collector, err := garbagecollector.NewGarbageCollector(ctx, client, metadataClient, mapper,
		garbagecollector.DefaultIgnoredResources(), kinds, started)
	if err != nil {
		return fmt.Errorf("create garbage collector: %w", err)
	}

	changed, err := definitionChanges(kinds)
	if err != nil {
		return err
	}
	go collector.Run(ctx, garbageCollectorWorkers, idleSyncPeriod)
	for ctx.Err() == nil {
		syncFor(ctx, collector, client.Discovery(), busySyncPeriod, busyDuration)
		syncUntil(ctx, collector, client.Discovery(), idleSyncPeriod, changed)
	}
	return nil
}

// syncFor keeps the collector's kinds up to date for a duration.
func syncFor(ctx context.Context, gc *garbagecollector.GarbageCollector, d discovery.DiscoveryInterface, period, duration time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	gc.Sync(ctx, d, period)
}

// syncUntil keeps the collector's kinds up to date until something changed.
func syncUntil(ctx context.Context, gc *garbagecollector.GarbageCollector, d discovery.DiscoveryInterface, period time.Duration, changed <-chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-changed:
			cancel()
		case <-ctx.Done():
		}
	}()
	gc.Sync(ctx, d, period)
}

// definitionChanges receives after CustomResourceDefinitions have changed.
func definitionChanges(kinds *kinds) (<-chan struct{}, error) {
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default: // one is waiting already
		}
	}
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	_, err := kinds.of(definitions).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { notify() },
		UpdateFunc: func(any, any) { notify() },
		DeleteFunc: func(any) { notify() },
	})
	if err != nil {
		return nil, fmt.Errorf("watch CustomResourceDefinitions: %w", err)
	}
	return changed, nil
}
