package servicesetresource_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/plantest"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// world is the ServiceSets of a cluster as plans show them: a thing for each service of each set, and one for the rest of the
// set. A write of a set is expanded to those for which it changes something, by comparing what was sent with what was there.
type world struct {
	k       *kit
	cluster string
	// sets are those of the last look.
	sets map[string]*v1alpha1.ServiceSet
	// again is set for the second look of a check.
	again bool
	read  int
	made  []plantest.Write
}

// Things implements plantest.World. For the second look, a set in which nothing but services has changed is the one of the
// first look: plans do not name it.
func (w *world) Things(ctx context.Context) (map[plan.Object]plantest.Thing, error) {
	list := &v1alpha1.ServiceSetList{}
	if err := w.k.user.List(ctx, list, client.InNamespace(w.k.namespace), client.MatchingLabels{v1alpha1.ClusterLabel: w.cluster}); err != nil {
		return nil, err
	}
	things, sets := map[plan.Object]plantest.Thing{}, map[string]*v1alpha1.ServiceSet{}
	for i := range list.Items {
		set := &list.Items[i]
		sets[set.Name] = set
		object := nameOfSet(set)
		object.UID, object.Version = set.UID, set.ResourceVersion
		before := w.sets[set.Name]
		if w.again && before != nil && before.UID == set.UID && sameFrame(before, set) && !ends(before, set) {
			object.Version = before.ResourceVersion
		}
		things[nameOfSet(set)] = plantest.Thing{Object: object, Fields: frameOf(set), Terminating: set.DeletionTimestamp != nil}
		for _, s := range set.Spec.Services {
			name := nameOfService(set, &s)
			things[name] = plantest.Thing{Object: name, Fields: fieldsOf(&s)}
		}
	}
	if w.sets = sets; w.again {
		w.sets = nil
	}
	w.again = !w.again
	return things, nil
}

// Writes implements plantest.World.
func (w *world) Writes() ([]plantest.Write, error) {
	recorded := w.k.faults.Writes()
	for _, r := range recorded[w.read:] {
		more, err := w.expand(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r, err)
		}
		w.made = append(w.made, more...)
	}
	w.read = len(recorded)
	return slices.Clone(w.made), nil
}

// expand returns for what a write changes something.
func (w *world) expand(r operatortest.Write) ([]plantest.Write, error) {
	before := w.sets[r.Name]
	if r.Verb == "delete" {
		made := []plantest.Write{{Object: nameOfSet(before), Delete: true}}
		for _, s := range before.Spec.Services {
			made = append(made, plantest.Write{Object: nameOfService(before, &s), Delete: true})
		}
		return made, nil
	}
	after := &v1alpha1.ServiceSet{}
	if err := json.Unmarshal(r.Body, after); err != nil {
		return nil, err
	}
	var services []plantest.Write
	for _, key := range keysOf(before, after) {
		was, is := find(before, key), find(after, key)
		switch {
		case is == nil:
			services = append(services, plantest.Write{Object: nameOfService(before, was), Delete: true})
		case was == nil || !reflect.DeepEqual(fieldsOf(was), fieldsOf(is)):
			services = append(services, plantest.Write{Object: nameOfService(after, is)})
		}
	}
	if before == nil || !sameFrame(before, after) || ends(before, after) || len(services) == 0 {
		return append([]plantest.Write{{Object: nameOfSet(after)}}, services...), nil
	}
	return services, nil
}

func nameOfSet(set *v1alpha1.ServiceSet) plan.Object {
	return plan.Object{APIVersion: "services.operatorkit.io/v1alpha1", Kind: "ServiceSet", Namespace: set.Namespace, Name: set.Name}
}

func nameOfService(set *v1alpha1.ServiceSet, s *v1alpha1.ServiceWithValues) plan.Object {
	o := plan.Object{Kind: "service", Namespace: s.Namespace, Name: s.Name}
	if set.Spec.MultiClusterService != "" {
		o.Name += " of MultiClusterService " + set.Spec.MultiClusterService
	}
	return o
}

// frameOf returns the fields of a set beside its services.
func frameOf(set *v1alpha1.ServiceSet) map[string]any {
	all := unstructuredOf(set)
	metadata := map[string]any{}
	for _, name := range []string{"labels", "annotations", "ownerReferences", "finalizers"} {
		if value, ok := all["metadata"].(map[string]any)[name]; ok {
			metadata[name] = value
		}
	}
	spec := all["spec"].(map[string]any)
	delete(spec, "services")
	delete(spec, "removing")
	return map[string]any{"metadata": metadata, "spec": spec}
}

func sameFrame(a, b *v1alpha1.ServiceSet) bool { return len(plan.Diff(frameOf(a), frameOf(b))) == 0 }

// ends tells whether the removal of a service has come to its end, which the set only notes.
func ends(before, after *v1alpha1.ServiceSet) bool {
	return slices.ContainsFunc(before.Spec.Removing, func(r v1alpha1.ServiceRemoval) bool {
		return find(after, serviceset.ServiceKey(r.Namespace, r.Name)) == nil &&
			!slices.ContainsFunc(after.Spec.Removing, func(s v1alpha1.ServiceRemoval) bool { return s.Namespace == r.Namespace && s.Name == r.Name })
	})
}

func fieldsOf(s *v1alpha1.ServiceWithValues) map[string]any {
	fields := unstructuredOf(s)
	delete(fields, "name")
	delete(fields, "namespace")
	delete(fields, "generation") // it follows from the rest
	return fields
}

func unstructuredOf(value any) map[string]any {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(value)
	if err != nil {
		panic(err)
	}
	return fields
}

func find(set *v1alpha1.ServiceSet, key client.ObjectKey) *v1alpha1.ServiceWithValues {
	if set == nil {
		return nil
	}
	for i := range set.Spec.Services {
		if s := &set.Spec.Services[i]; s.Namespace == key.Namespace && s.Name == key.Name {
			return s
		}
	}
	return nil
}

// keysOf returns the keys of the services of both sets.
func keysOf(sets ...*v1alpha1.ServiceSet) []client.ObjectKey {
	var keys []client.ObjectKey
	for _, set := range sets {
		for i := 0; set != nil && i < len(set.Spec.Services); i++ {
			keys = append(keys, client.ObjectKey{Namespace: set.Spec.Services[i].Namespace, Name: set.Spec.Services[i].Name})
		}
	}
	slices.SortFunc(keys, func(a, b client.ObjectKey) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(keys)
}
