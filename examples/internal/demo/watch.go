package demo

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/operatorkit/operatorkit/resource/objectresource"
)

// watch prints what happens to the objects of a kind until ctx ends.
func (d *Demo) watch(ctx context.Context, kind client.ObjectList) {
	for ctx.Err() == nil {
		list := kind.DeepCopyObject().(client.ObjectList)
		changes, err := d.Client.Watch(ctx, list, client.InNamespace(d.Namespace))
		if err != nil {
			// The kind may not be served yet: the operator brings its definition along.
			d.pause(ctx)
			continue
		}
		d.follow(changes)
		changes.Stop()
	}
}

func (d *Demo) follow(changes watch.Interface) {
	last := map[types.UID]map[string]any{}
	for e := range changes.ResultChan() {
		obj, ok := e.Object.(client.Object)
		if !ok {
			return
		}
		now, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil || obj.GetName() == "kube-root-ca.crt" {
			continue
		}
		before := last[obj.GetUID()]
		last[obj.GetUID()] = now
		switch e.Type {
		case watch.Added:
			d.printer.change("+", d.name(obj), "created")
		case watch.Modified:
			d.printer.change("~", d.name(obj), changed(before, now))
		case watch.Deleted:
			d.printer.change("-", d.name(obj), "deleted")
			delete(last, obj.GetUID())
		}
	}
}

// name gives an object as kubectl does: kind and name.
func (d *Demo) name(obj client.Object) string {
	gvk, err := apiutil.GVKForObject(obj, d.Client.Scheme())
	if err != nil {
		return obj.GetName()
	}
	return strings.ToLower(gvk.Kind) + "/" + obj.GetName()
}

// uninteresting are fields that change with every change.
var uninteresting = []string{"metadata.managedFields", "metadata.resourceVersion", "metadata.generation",
	"metadata.deletionGracePeriodSeconds", "metadata.annotations." + objectresource.AppliedAnnotation}

// changed says in which fields two states of a thing differ: their paths, and the values that are short.
func changed(before, now map[string]any) string {
	return strings.Join(changedFields(before, now, ""), ", ")
}

func changedFields(before, now map[string]any, path string) []string {
	var fields []string
	names := slices.Collect(maps.Keys(now))
	for name := range before {
		if _, ok := now[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		field := strings.TrimPrefix(path+"."+name, ".")
		if slices.Contains(uninteresting, field) || reflect.DeepEqual(before[name], now[name]) {
			continue
		}
		was, wasMap := before[name].(map[string]any)
		is, isMap := now[name].(map[string]any)
		if wasMap && isMap {
			fields = append(fields, changedFields(was, is, field)...)
			continue
		}
		fields = append(fields, field+values(before[name], now[name]))
	}
	return fields
}

// maxValue is how many bytes a value may have to be shown.
const maxValue = 40

// values shows two values if both are short.
func values(before, now any) string {
	was, wasShort := short(before)
	is, isShort := short(now)
	if !wasShort || !isShort {
		return ""
	}
	return ": " + was + " → " + is
}

// short shows a value unless it is long, or of several lines or parts.
func short(value any) (string, bool) {
	switch value.(type) {
	case nil:
		return "nothing", true
	case map[string]any, []any:
		return "", false
	}
	text := fmt.Sprint(value)
	return text, len(text) <= maxValue && !strings.Contains(text, "\n")
}
