package informer

import (
	"slices"
	"time"

	"github.com/giantswarm/micrologger"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/internal/faults"
)

// ErrInvalidConfig is in the chain of every error about an invalid configuration in this package
// and the packages below.
var ErrInvalidConfig = faults.ErrInvalidConfig

// KubernetesConfig describes a source of Kubernetes objects.
type KubernetesConfig struct {
	// Client reads, watches and patches. It must be set, and must read from the API server and not
	// from a cache: client.NewWithWatch makes one. It needs the verbs get, list, watch, and for
	// finalizers patch.
	Client client.WithWatch
	// Object defines the kind, and must be set: a Go type that the client's scheme knows, or an
	// unstructured.Unstructured or metav1.PartialObjectMetadata with apiVersion and kind. Nothing
	// else of it is used.
	Object client.Object
	// Name identifies the source. Default: the resource and its group, such as
	// "websites.example.com". Set it when one operator has two sources of the same kind.
	Name string
	// Namespaces limits the source to these namespaces, each with its own watch. Default: all
	// namespaces. Leave it empty for kinds without namespaces.
	Namespaces []string
	// LabelSelector limits the source to the objects it matches. An object that no longer matches
	// is announced as Deleted. Default: all objects.
	LabelSelector labels.Selector
	// FieldSelector is the same for fields; the API server supports few of them. Default: all objects.
	FieldSelector fields.Selector
	// MetadataOnly stores metav1.PartialObjectMetadata instead of whole objects, which is far
	// smaller. It is implied when Object is one. Default: false.
	MetadataOnly bool
	// Transform changes each object before it is stored. It may change the object it is given, must
	// be idempotent, and must keep kind, namespace, name and resource version. When it fails, the
	// object is stored as it was received, and the error is logged. Default: [DropManagedFields];
	// use [TransformNothing] to keep everything.
	Transform cache.TransformFunc
	// Indexers are the indexes for ByIndex, by name. If one panics, the object is not indexed and
	// the panic is logged. Default: none.
	Indexers map[string]IndexFunc
	// Resync is the interval, ±10 %, at which all objects are announced again. Default: 0, which
	// is never.
	Resync time.Duration
	// Logger must be set. It logs outages and the messages of client-go, never the content of
	// objects.
	Logger micrologger.Logger
}

// representation is the form in which objects are received and stored.
type representation uint8

const (
	typed representation = iota
	untyped
	metadataOnly
)

// validate fills in defaults and returns the kind and its form. The error names every faulty field.
func (c *KubernetesConfig) validate() (schema.GroupVersionKind, representation, error) {
	var wrong faults.List
	var gvk schema.GroupVersionKind
	form := typed
	wrong.If(c.Client == nil, "Client must be set")
	wrong.If(c.Object == nil, "Object must be set")
	if len(wrong) == 0 {
		var err error
		if gvk, err = c.Client.GroupVersionKindFor(c.Object); err != nil {
			wrong.Add("Object has no known kind: %w", err)
		}
	}
	switch c.Object.(type) {
	case *unstructured.Unstructured:
		form = untyped
	case *metav1.PartialObjectMetadata:
		form = metadataOnly
	}
	if c.MetadataOnly {
		form = metadataOnly
	}
	for i, namespace := range c.Namespaces {
		switch {
		case namespace == "":
			wrong.Add("Namespaces has an empty entry at %d: leave the list empty for all namespaces", i)
		case slices.Contains(c.Namespaces[:i], namespace):
			wrong.Add("Namespaces has %q twice", namespace)
		}
	}
	for name, values := range c.Indexers {
		wrong.If(values == nil, "Indexers has no function for %q", name)
	}
	wrong.If(c.Resync < 0, "Resync must not be negative, got %s", c.Resync)
	wrong.If(c.Logger == nil, "Logger must be set")
	if err := wrong.Of("informer.KubernetesConfig"); err != nil {
		return gvk, form, err
	}

	if c.Name == "" {
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		c.Name = plural.GroupResource().String()
	}
	if c.Transform == nil {
		c.Transform = DropManagedFields
	}
	return gvk, form, nil
}
