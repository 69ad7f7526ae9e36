package plantest

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// Cluster is the objects of a namespace as a World, and those without a namespace whose name begins with its name.
type Cluster struct {
	// Client looks at the objects. It must not go through Faults. Required.
	Client client.Client
	// Faults is what the resources write through. Required.
	Faults *operatortest.Faults
	// Namespace is where the objects are. Required.
	Namespace string
	// Kinds are the kinds of the objects. Required.
	Kinds []client.Object
	// Defaulted are, by kind, the places that the API server fills in when an object is created. Default: none.
	Defaulted map[string][]string
}

// publishedByCluster is a config map that appears in each namespace by itself.
const publishedByCluster = "kube-root-ca.crt"

// Things implements World.
func (c *Cluster) Things(ctx context.Context) (map[plan.Object]Thing, error) {
	things := map[plan.Object]Thing{}
	for _, kind := range c.Kinds {
		gvk, err := c.Client.GroupVersionKindFor(kind)
		if err != nil {
			return nil, fmt.Errorf("find the kind of a %T: %w", kind, err)
		}
		namespaced, err := c.Client.IsObjectNamespaced(kind)
		if err != nil {
			return nil, fmt.Errorf("find out whether a %s has a namespace: %w", gvk.Kind, err)
		}
		var options []client.ListOption
		if namespaced {
			options = append(options, client.InNamespace(c.Namespace))
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := c.Client.List(ctx, list, options...); err != nil {
			return nil, fmt.Errorf("list the objects of kind %s: %w", gvk.Kind, err)
		}
		for i := range list.Items {
			u := &list.Items[i]
			if u.GetName() == publishedByCluster || !namespaced && !strings.HasPrefix(u.GetName(), c.Namespace) {
				continue
			}
			thing := thingOf(gvk, u)
			thing.Defaulted = c.Defaulted[gvk.Kind]
			things[nameOf(thing.Object)] = thing
		}
	}
	return things, nil
}

func thingOf(gvk schema.GroupVersionKind, u *unstructured.Unstructured) Thing {
	fields := maps.Clone(u.Object)
	for _, name := range []string{"apiVersion", "kind", "status"} {
		delete(fields, name)
	}
	metadata, _ := fields["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	for _, name := range []string{"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
		delete(metadata, name)
	}
	fields["metadata"] = metadata
	return Thing{
		Fields:      fields,
		Terminating: u.GetDeletionTimestamp() != nil,
		Object: plan.Object{
			APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName(),
			UID: u.GetUID(), Version: u.GetResourceVersion(),
		},
	}
}

// Writes implements World.
func (c *Cluster) Writes() ([]Write, error) {
	var writes []Write
	for _, w := range c.Faults.Writes() {
		resource := schema.GroupVersionResource{Group: w.Group, Version: w.Version, Resource: w.Resource}
		gvk, err := c.Client.RESTMapper().KindFor(resource)
		if err != nil {
			return nil, fmt.Errorf("find the kind of %s: %w", w, err)
		}
		if w.Subresource != "" {
			return nil, fmt.Errorf("%s is of a part of an object, which plans do not know", w)
		}
		writes = append(writes, Write{
			Object: plan.Object{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Namespace: w.Namespace, Name: w.Name},
			Delete: w.Verb == "delete",
		})
	}
	return writes, nil
}
