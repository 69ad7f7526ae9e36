package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/controller/namespace"
)

const (
	// discoveryAge is how old what the API server serves may be. The controller looks at a namespace five seconds after its deletion has
	// begun: what is in it is of a kind that was served by then.
	discoveryAge = 2 * time.Second

	namespaceWorkers = 10

	// abandonedAnnotation marks, with the value "true", the namespace of a test that has ended: once the namespace is being deleted,
	// finalizers are taken off what is in it.
	abandonedAnnotation = "operatortest.operatorkit.io/abandoned"
)

// deleteNamespaces runs Kubernetes' namespace controller, which empties the namespaces that are being deleted, until ctx ends. It differs
// from the controller manager's in that it asks the API server only for kinds of which there is something in the namespace: tests
// make and delete hundreds of them, most of them all but empty, and the original asks twice for each kind, again and again while an object has a
// finalizer. And it takes the finalizers off what is in a namespace that is marked as abandoned.
func deleteNamespaces(ctx context.Context, config *rest.Config, kinds *kinds) error {
	config = rest.CopyConfig(config)
	config.UserAgent = "namespace-controller"
	config.QPS, config.Burst = 4000, 8000 // as in the controller manager: it is chatty

	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create metadata client: %w", err)
	}
	served := &recent{discover: client.Discovery().ServerPreferredNamespacedResources}
	factory := informers.NewSharedInformerFactory(client, 0)
	namespaces := factory.Core().V1().Namespaces()
	controller := namespace.NewNamespaceController(ctx, client, occupied{metadataClient, kinds, namespaces.Lister()}, served.resources,
		namespaces, 0, corev1.FinalizerKubernetes)
	factory.Start(ctx.Done())
	go controller.Run(ctx, namespaceWorkers)
	return nil
}

// recent is what the API server has served not long ago.
type recent struct {
	discover func() ([]*metav1.APIResourceList, error)

	mu    sync.Mutex
	at    time.Time
	known []*metav1.APIResourceList
}

func (r *recent) resources() ([]*metav1.APIResourceList, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.at) < discoveryAge {
		return r.known, nil
	}
	at := time.Now()
	known, err := r.discover()
	if err != nil {
		return known, err
	}
	r.at, r.known = at, known
	return known, nil
}

// occupied is a client that asks the API server for what there is something of in a namespace, as far as that is known.
type occupied struct {
	metadata.Interface
	kinds      *kinds
	namespaces corelisters.NamespaceLister
}

func (o occupied) Resource(resource schema.GroupVersionResource) metadata.Getter {
	return getter{o.Interface.Resource(resource), o.kinds.of(resource), o.namespaces}
}

type getter struct {
	metadata.Getter
	kind       *kind
	namespaces corelisters.NamespaceLister
}

func (g getter) Namespace(name string) metadata.ResourceInterface {
	return content{g.Getter.Namespace(name), g.kind, g.namespaces, name}
}

// content is one kind in one namespace.
type content struct {
	metadata.ResourceInterface
	kind       *kind
	namespaces corelisters.NamespaceLister
	namespace  string
}

// DeleteCollection asks for nothing when all there is is being deleted already.
func (c content) DeleteCollection(ctx context.Context, options metav1.DeleteOptions, list metav1.ListOptions) error {
	if _, ending := c.waiting(); ending {
		return nil
	}
	return c.ResourceInterface.DeleteCollection(ctx, options, list)
}

// List returns what waits for its finalizers as it is known, and asks for the rest. Where nobody is left to take finalizers off, it does so.
func (c content) List(ctx context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	list, ending := c.waiting()
	if ending && (len(list.Items) == 0 || !c.abandoned()) {
		return list, nil
	}
	if ending {
		for _, object := range list.Items {
			_, err := c.Patch(ctx, object.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return nil, err
			}
		}
	}
	return c.ResourceInterface.List(ctx, options)
}

// abandoned is whether the namespace is marked as one to whose objects nobody attends any more.
func (c content) abandoned() bool {
	found, err := c.namespaces.Get(c.namespace)
	return err == nil && found.Annotations[abandonedAnnotation] == "true"
}

// waiting returns what there is, and whether it is known that nothing is there but what is being deleted and has finalizers.
func (c content) waiting() (*metav1.PartialObjectMetadataList, bool) {
	objects, known := c.kind.in(c.namespace)
	if !known {
		return nil, false
	}
	list := &metav1.PartialObjectMetadataList{}
	for _, object := range objects {
		if object.DeletionTimestamp == nil || len(object.Finalizers) == 0 {
			return nil, false
		}
		list.Items = append(list.Items, *object)
	}
	return list, true
}
