package servicesetresource

import (
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// serviceKind is what a plan calls a service of a ServiceSet, which is no object of its own.
const serviceKind = "service"

// changesOf describes a write: the set itself, if that is all of it or the services are not, and the services by key.
func changesOf(o *serviceset.OwnerOperation) []plan.Change {
	var before, after *v1alpha1.ServiceSet
	set := plan.Change{Object: plan.Object{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ServiceSetKind, Namespace: o.Key.Namespace, Name: o.Key.Name,
	}}
	switch operationOf(o) {
	case v1alpha1.ServiceSetOperationCreate:
		after = o.Operation.ServiceSet
		set.Action, set.Fields = plan.Create, fieldsOf(plan.Create, frame(after), nil)
	case v1alpha1.ServiceSetOperationUpdate:
		before, after = o.Operation.Before, o.Operation.ServiceSet
		set.Action, set.Fields = plan.Update, fieldsOf(plan.Update, frame(after), frame(before))
		set.Description = ended(before, after)
	case v1alpha1.ServiceSetOperationDelete:
		before, set.Action = o.Operation.Before, plan.Delete
	default:
		return nil
	}
	if before != nil {
		set.Object.UID, set.Object.Version = before.UID, before.ResourceVersion
	}
	services := servicesOf(o, before, after)
	if set.Action == plan.Update && len(set.Fields) == 0 && set.Description == "" && len(services) > 0 {
		return services
	}
	return append([]plan.Change{set}, services...)
}

// frame is a set without its services and those that are being removed.
func frame(set *v1alpha1.ServiceSet) *v1alpha1.ServiceSet {
	framed := *set
	framed.Spec.Services, framed.Spec.Removing = nil, nil
	return &framed
}

// ended names the services whose removal is over.
func ended(before, after *v1alpha1.ServiceSet) string {
	left := entriesOf(after)
	still := removing(after)
	var gone []string
	for i := range before.Spec.Removing {
		if key := before.Spec.Removing[i].Key(); left[key] == nil && !still[key] {
			gone = append(gone, key.String())
		}
	}
	switch len(gone) {
	case 0:
		return ""
	case 1:
		return gone[0] + " is gone"
	}
	return strings.Join(gone, ", ") + " are gone"
}

// removing returns the services that are on their way out.
func removing(set *v1alpha1.ServiceSet) map[client.ObjectKey]bool {
	keys := make(map[client.ObjectKey]bool, len(set.Spec.Removing))
	for i := range set.Spec.Removing {
		keys[set.Spec.Removing[i].Key()] = true
	}
	return keys
}

// servicesOf describes what becomes of the services of a set, by key.
func servicesOf(o *serviceset.OwnerOperation, before, after *v1alpha1.ServiceSet) []plan.Change {
	was, is := entriesOf(before), entriesOf(after)
	keys := make([]client.ObjectKey, 0, max(len(was), len(is)))
	for key := range was {
		keys = append(keys, key)
	}
	for key := range is {
		if was[key] == nil {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, v1alpha1.CompareKeys)
	decided := decisionsOf(o)
	var changes []plan.Change
	for _, key := range keys {
		if c, differs := serviceChange(was[key], is[key], decided[key]); differs {
			c.Object = serviceObject(o, key)
			changes = append(changes, c)
		}
	}
	return changes
}

func entriesOf(set *v1alpha1.ServiceSet) map[client.ObjectKey]*v1alpha1.ServiceWithValues {
	if set == nil {
		return nil
	}
	entries := make(map[client.ObjectKey]*v1alpha1.ServiceWithValues, len(set.Spec.Services))
	for i := range set.Spec.Services {
		entries[set.Spec.Services[i].Key()] = &set.Spec.Services[i]
	}
	return entries
}

func decisionsOf(o *serviceset.OwnerOperation) map[client.ObjectKey]*serviceset.Decision {
	if o.Operation.Resolution == nil {
		return nil
	}
	list := o.Operation.Resolution.Decisions
	decided := make(map[client.ObjectKey]*serviceset.Decision, len(list))
	for i := range list {
		decided[list[i].Service] = &list[i]
	}
	return decided
}

// serviceChange describes what becomes of a service, and tells whether it changes.
func serviceChange(was, is *v1alpha1.ServiceWithValues, d *serviceset.Decision) (c plan.Change, differs bool) {
	switch {
	case was == nil:
		c = plan.Change{Action: plan.Create, Fields: entryFields(plan.Create, is, nil), Description: phrase(d)}
	case is == nil:
		c = plan.Change{Action: plan.Delete}
		if d != nil {
			c.Description = d.Message
		}
	default:
		c = plan.Change{Action: plan.Update, Fields: entryFields(plan.Update, is, was)}
		if was.Template != is.Template || was.Version != is.Version {
			c.Description = phrase(d)
		}
		return c, len(c.Fields) > 0
	}
	return c, true
}

// entryFields are the fields of an entry that change. Those that name it, and the generation, which follows, are left out.
func entryFields(action plan.Action, is, was *v1alpha1.ServiceWithValues) []plan.FieldChange {
	var before any
	if was != nil {
		before = *was
	}
	return slices.DeleteFunc(fieldsOf(action, *is, before), func(f plan.FieldChange) bool {
		return f.Path == "name" || f.Path == "namespace" || f.Path == "generation"
	})
}

// fieldsOf returns the fields that a change of one thing has in a plan.
func fieldsOf(action plan.Action, after, before any) []plan.FieldChange {
	changes := plan.Describe(action, after, before)
	if len(changes) == 0 {
		return nil
	}
	return changes[0].Fields
}

// phrase is what a decision says of its service.
func phrase(d *serviceset.Decision) string {
	if d == nil {
		return ""
	}
	return strings.TrimPrefix(d.String(), d.Service.String()+" ")
}

// serviceObject names a service in a plan, and whom it comes from, unless that is the cluster.
func serviceObject(o *serviceset.OwnerOperation, key client.ObjectKey) plan.Object {
	object := plan.Object{Kind: serviceKind, Namespace: key.Namespace, Name: key.Name}
	if o.Owner.Kind != v1alpha1.ClusterDeploymentKind {
		object.Name += " of " + o.Owner.String()
	}
	return object
}
