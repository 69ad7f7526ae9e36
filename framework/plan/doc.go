// Package plan describes what a reconciliation would change. A framework's Plan returns it, and
// resources, the command line and the inspector page exchange it: it has only values, which can't
// execute anything.
//
//	p, err := f.Plan(ctx, informer.Key{Namespace: "default", Name: "home"})
//	for _, r := range p.Resources {
//		for _, c := range r.Changes {
//			fmt.Println(r.Name, c.Action, c.Object)
//		}
//	}
//	plan.WriteText(os.Stdout, []*plan.Plan{p}, plan.TextOptions{Color: plan.ColorWanted(os.Stdout)})
//	plan.WriteJSON(file, []*plan.Plan{p}) // later, with a new plan: plan.Equal, plan.Difference
//
// Changes come from the patches of resources. Describe documents how it describes them. Changer and
// Describer let the author of a resource describe them better.
//
// # JSON
//
// WriteJSON writes an object with these fields. Fields without a value are left out.
//
//	version                  1
//	plans[]                  one for each object
//	  framework              name of the framework
//	  object                 the reconciled object: apiVersion, kind, namespace, name, uid, version
//	  event                  "update" or "delete"
//	  resourceSet            name of the resource set
//	  outcome                "planned", "canceled", "failed" or "ignored"
//	  reason                 why it is not "planned", in words
//	  resources[]            in their order
//	    name                 name of the resource
//	    changes[]            in the order in which they would be applied
//	      action             "create", "update" or "delete"
//	      object             the object that changes, as above
//	      labels, annotations  those of the object that changes
//	      fields[]           the fields that change: path, old, new (any JSON value), sensitive
//	      description        the change in words
//	    notes[]              the things that do not change, and why, in words
//	    opaque               true for a resource that can't predict its changes
//	    skipped, error       why it would not run, and why it failed, in words
//	    verdicts[]           decisions of guards: guard, action ("deny", "approve", "warn", "limit"),
//	                         changes (action, object), fingerprint, message
//	summary                  create, update, delete: the number of each
//
// # Shadows
//
// Compare returns how the plan of a shadow resource set, the next version of an operator's logic,
// differs from that of the active one. Summarize counts many such comparisons ("v2 would change 3
// of 214 objects") and the places where they differ. WriteShadowText shows them, and
// WriteShadowJSON writes an object with these fields:
//
//	version                  1
//	comparisons[]            one for each object and shadow set
//	  framework, object, event  as above
//	  active, shadow         names of the resource sets
//	  differences[]          changes that are not the same in both plans
//	    resource             name of the resource
//	    object               the object that changes
//	    active, shadow       the change by each set, as above; if the action of both is the same,
//	                         only the fields that differ
//	  opaque[]               names of resources of the shadow that can't predict their changes
//	  error                  why there is nothing to compare, in words
//	shadows[]                one for each framework and shadow set
//	  framework, shadow      their names
//	  objects, differing, failed  how many objects were compared, differ, and can't be compared
//	  places[]               where they differ: resource, kind, path (or action of the whole
//	                         object), objects
//	  otherPlaces            the number of further places
//
// # Promises
//
//   - A plan of the same state is the same: changes are in the order in which they would be
//     applied, fields are sorted by path.
//   - Values of Secrets, and others that are marked as sensitive, are not in a plan at all: not in
//     its text, nor in its JSON, nor in the Go value.
//   - The JSON form is stable: fields are added to it, but none is removed or given another meaning
//     within a version.
package plan
