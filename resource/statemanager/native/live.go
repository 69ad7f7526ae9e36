package native

import (
	"context"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// ours selects all that state managers put onto clusters, so that all sets of a cluster share one watch of a kind.
var ours = mustExist(carrier.OwnerLabel)

func mustExist(label string) labels.Selector {
	requirement, err := labels.NewRequirement(label, selection.Exists, nil)
	if err != nil {
		panic(err)
	}
	return labels.NewSelector().Add(*requirement)
}

// watchOf returns how a kind is watched. Of Secrets only the metadata: releases are large, and their data is secret.
func watchOf(kind schema.GroupVersionKind) target.Kind {
	secret := kind.Group == "" && kind.Kind == statemanager.KindSecret
	return target.Kind{GroupVersionKind: kind, Selector: ours, Whole: !secret}
}

// freshness remembers how new the objects of one service have to be. After something was written, a watch may not have heard
// of it: it would show a Deployment of before as healthy. So each object is read from the cluster once after each write,
// and the watch is believed again when it has come as far.
type freshness struct {
	// written tells that something was written since the cluster was connected.
	written bool
	// read are the resource versions that were read since the last write.
	read map[objectKey]uint64
}

type objectKey struct {
	kind schema.GroupVersionKind
	key  client.ObjectKey
}

// believes tells whether an object is new enough. Resource versions of one kind can be compared since Kubernetes 1.35, and could in
// fact before, with etcd.
func (f *freshness) believes(key objectKey, resourceVersion string) bool {
	if !f.written {
		return true
	}
	least, ok := f.read[key]
	version, err := strconv.ParseUint(resourceVersion, 10, 64)
	return ok && err == nil && version >= least
}

// wrote notes that something is being written.
func (f *freshness) wrote() { f.written, f.read = true, map[objectKey]uint64{} }

// saw notes what the cluster has answered.
func (f *freshness) saw(key objectKey, resourceVersion string) {
	if version, err := strconv.ParseUint(resourceVersion, 10, 64); f.written && err == nil {
		f.read[key] = version
	}
}

// live reads objects as the watches of a cluster have them, and asks the cluster for others. It is for one service.
type live struct {
	cluster   *target.Cluster
	freshness *freshness
}

var _ client.Reader = (*live)(nil)

// Get implements client.Reader.
func (l *live) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	kind, err := apiutil.GVKForObject(obj, l.cluster.Client().Scheme())
	if err != nil {
		return fmt.Errorf("kind of %T: %w", obj, err)
	}
	id := objectKey{kind, key}
	if len(opts) == 0 && l.watched(id, obj) {
		return nil
	}
	if err := l.cluster.Client().Get(ctx, key, obj, opts...); err != nil {
		return err
	}
	l.freshness.saw(id, obj.GetResourceVersion())
	return nil
}

// List implements client.Reader.
func (l *live) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return l.cluster.Client().List(ctx, list, opts...)
}

// watched fills in an object as a watch has it, if that is new enough.
func (l *live) watched(id objectKey, obj client.Object) bool {
	objects, ok := l.cluster.Objects(watchOf(id.kind))
	if !ok {
		return false
	}
	if status := objects.Status(); !status.Synced || status.LastError != nil {
		return false
	}
	found, exists, err := objects.Get(id.key)
	if err != nil || !exists {
		return false
	}
	from, ok := found.(client.Object)
	return ok && l.freshness.believes(id, from.GetResourceVersion()) && fill(obj, from)
}

// fill makes an object what another one is, which is the caller's own, if that has all that the object can hold.
func fill(obj, from client.Object) bool {
	switch obj := obj.(type) {
	case *metav1.PartialObjectMetadata:
		kind := from.GetObjectKind().GroupVersionKind()
		switch from := from.(type) {
		case *metav1.PartialObjectMetadata:
			*obj = *from
		case *unstructured.Unstructured:
			whole := &metav1.PartialObjectMetadata{}
			if runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, whole) != nil {
				return false
			}
			*obj = *whole
		default:
			return false
		}
		obj.SetGroupVersionKind(kind)
		return true
	case *unstructured.Unstructured:
		whole, ok := from.(*unstructured.Unstructured)
		if ok {
			obj.Object = whole.Object
		}
		return ok
	}
	whole, ok := from.(*unstructured.Unstructured)
	return ok && runtime.DefaultUnstructuredConverter.FromUnstructured(whole.Object, obj) == nil
}
