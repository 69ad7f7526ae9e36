package main

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// kinds are caches of the metadata of all objects, a kind each, which the controllers share.
type kinds struct {
	factory metadatainformer.SharedInformerFactory
	stop    <-chan struct{}

	mu  sync.Mutex
	all map[schema.GroupVersionResource]*kind
}

func newKinds(ctx context.Context, client metadata.Interface) *kinds {
	return &kinds{
		factory: metadatainformer.NewSharedInformerFactory(client, 0),
		stop:    ctx.Done(),
		all:     map[schema.GroupVersionResource]*kind{},
	}
}

// of returns the cache of a kind, which is being filled when it is a new one.
func (k *kinds) of(resource schema.GroupVersionResource) *kind {
	k.mu.Lock()
	defer k.mu.Unlock()
	if known, ok := k.all[resource]; ok {
		return known
	}
	known := &kind{GenericInformer: k.factory.ForResource(resource)}
	// The informer is new, and can't be running yet.
	_ = known.Informer().SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		known.lost()
		cache.DefaultWatchErrorHandler(ctx, r, err)
	})
	k.all[resource] = known
	k.factory.Start(k.stop)
	return known
}

// ForResource gives the garbage collector caches of metadata, also for the kinds which have typed ones: it looks at nothing else.
func (k *kinds) ForResource(resource schema.GroupVersionResource) (informers.GenericInformer, error) {
	return k.of(resource), nil
}

// Start is there for the garbage collector. What it could start runs.
func (k *kinds) Start(<-chan struct{}) {}

// kind is the cache of one kind.
type kind struct {
	informers.GenericInformer

	mu     sync.Mutex
	lostAt *string // the version of what was known when the API server could not be watched, until there is a later one
}

// lost notes that the API server does not answer, perhaps because the kind is not served for a while.
func (k *kind) lost() {
	k.mu.Lock()
	defer k.mu.Unlock()
	version := k.Informer().LastSyncResourceVersion()
	k.lostAt = &version
}

// in returns what is in a namespace, and whether that is known.
func (k *kind) in(namespace string) ([]*metav1.PartialObjectMetadata, bool) {
	if !k.Informer().HasSynced() || k.outOfDate() {
		return nil, false
	}
	found, err := k.Informer().GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return nil, false
	}
	objects := make([]*metav1.PartialObjectMetadata, 0, len(found))
	for _, f := range found {
		object, ok := f.(*metav1.PartialObjectMetadata)
		if !ok {
			return nil, false
		}
		objects = append(objects, object)
	}
	return objects, true
}

func (k *kind) outOfDate() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lostAt != nil && k.Informer().LastSyncResourceVersion() != *k.lostAt {
		k.lostAt = nil
	}
	return k.lostAt != nil
}
