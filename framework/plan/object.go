package plan

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
)

// object is a Kubernetes object with its metadata.
type object struct {
	value reflect.Value
	kruntime.Object
	meta metav1.Object
}

// kubernetesObject returns the value as an object, if it is one and not a list.
func kubernetesObject(v reflect.Value) (object, bool) {
	o, ok := as[kruntime.Object](v)
	if !ok {
		return object{}, false
	}
	m, err := meta.Accessor(o)
	if err != nil {
		return object{}, false
	}
	return object{reflect.ValueOf(o), o, m}, true
}

// name returns the name of the object. If the object does not have its kind set, as objects read by
// a client do not, the kind is the name of its Go type.
func (o object) name() Object {
	gvk := o.GetObjectKind().GroupVersionKind()
	if gvk.Kind == "" {
		return Object{Kind: kindOf(o.value.Type()), Namespace: o.meta.GetNamespace(), Name: o.meta.GetName()}
	}
	return Object{
		APIVersion: gvk.GroupVersion().String(),
		Kind:       gvk.Kind,
		Namespace:  o.meta.GetNamespace(),
		Name:       o.meta.GetName(),
	}
}

// maintained are the metadata fields that the server sets, and the name and namespace, which Object
// has.
var maintained = [...]string{
	"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink", "name", "namespace",
}

// full returns all fields of an object.
func (e encoder) full(o object) any {
	var made any
	if u, ok := o.Object.(*unstructured.Unstructured); ok {
		made = e.value(reflect.ValueOf(u.Object))
	} else {
		made = e.structure(reflect.Indirect(o.value))
	}
	made = e.finish(made)
	fields, ok := made.(map[string]any)
	if !ok {
		return made
	}
	if name := o.name(); isSecret(name.APIVersion, name.Kind) && !e.plain {
		hideSecret(fields)
	}
	return fields
}

// content returns the fields of an object that its author sets.
func (e encoder) content(o object) any {
	made := e.full(o)
	fields, ok := made.(map[string]any)
	if !ok {
		return made
	}
	delete(fields, "status")
	delete(fields, "apiVersion")
	delete(fields, "kind")
	if metadata, ok := fields["metadata"].(map[string]any); ok {
		for _, name := range maintained {
			delete(metadata, name)
		}
		if len(metadata) == 0 {
			delete(fields, "metadata")
		}
	}
	return fields
}

// object describes the change of a Kubernetes object.
func (d describer) object(o object, hidden bool) Change {
	change := Change{Action: d.action, Object: o.name()}
	before, found := d.objectBefore(change.Object)
	if !found || d.action == Create {
		before = o
	}
	if !hidden {
		change = change.Describing(before.meta)
	}
	if d.action == Create {
		change.Fields = redact(Diff(nil, encoder{onlySet: true}.visible(o, hidden)))
		return change
	}
	change.Object.UID, change.Object.Version = before.meta.GetUID(), before.meta.GetResourceVersion()
	if d.action == Update {
		var fields map[string]any
		if found {
			fields = encoder{}.visible(before, hidden)
		}
		change.Fields = redact(Diff(fields, encoder{onlySet: !found}.visible(o, hidden)))
	}
	return change
}

// visible returns the content of an object. If hidden, the values that must not be shown are
// hidden.
func (e encoder) visible(o object, hidden bool) map[string]any {
	fields, _ := e.content(o).(map[string]any)
	if hidden {
		hideValues(fields, "")
	}
	return fields
}

// objectBefore finds the object of that name in the current state.
func (d describer) objectBefore(name Object) (object, bool) {
	for _, t := range d.before {
		if o, ok := kubernetesObject(t.value); ok && sameObject(o.name(), name) {
			return o, true
		}
	}
	return object{}, false
}

// sameObject compares names. An unknown API version matches every other.
func sameObject(a, b Object) bool {
	return a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name &&
		(a.APIVersion == "" || b.APIVersion == "" || a.APIVersion == b.APIVersion)
}
