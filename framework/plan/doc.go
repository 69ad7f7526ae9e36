// Package plan says what a reconciliation would change. It is what a framework's Plan returns, and what resources, the
// command line and the inspector page speak with each other: values only, without a way to carry anything out.
//
//	p, err := f.Plan(ctx, informer.Key{Namespace: "default", Name: "home"})
//	for _, r := range p.Resources {
//		for _, c := range r.Changes {
//			fmt.Println(r.Name, c.Action, c.Object)
//		}
//	}
//	plan.WriteText(os.Stdout, []*plan.Plan{p}, plan.TextOptions{Color: plan.ColorWanted(os.Stdout)})
//	plan.WriteJSON(file, []*plan.Plan{p}) // and later, with a plan made anew: plan.Equal, plan.Difference
//
// Changes come from the patches of resources: see Describe for what it makes of them, and Changer and Describer for
// how a resource's author says it better.
//
// # JSON
//
// WriteJSON writes an object with these fields. Those without a value are left out.
//
//	version                  1
//	plans[]                  one for each object
//	  framework              name of the framework
//	  object                 what is reconciled: apiVersion, kind, namespace, name, uid, version
//	  event                  "update" or "delete"
//	  resourceSet            name of the resource set
//	  outcome                "planned", "canceled", "failed" or "ignored"
//	  reason                 why it is not "planned", in words
//	  resources[]            in their order
//	    name                 name of the resource
//	    changes[]            in the order in which they would be applied
//	      action             "create", "update" or "delete"
//	      object             what changes, as above
//	      fields[]           the fields that change: path, old, new (any JSON value), sensitive
//	      description        what happens, in words
//	    notes[]              what stays as it is, and why, in words
//	    opaque               true for a resource that can't tell what it would do
//	    skipped, error       why it would not run, and what went wrong, in words
//	summary                  create, update, delete: how many there are of each
//
// # Shadows
//
// Compare tells how the plan of a shadow resource set, the next version of an operator's logic, differs from that of the
// active one; Summarize says of many such comparisons "v2 would change 3 of 214 objects", and where. WriteShadowText shows
// them, and WriteShadowJSON writes an object with these fields:
//
//	version                  1
//	comparisons[]            one for each object and shadow set
//	  framework, object, event  as above
//	  active, shadow         names of the resource sets
//	  differences[]          changes that are not the same in both plans
//	    resource             name of the resource
//	    object               what changes
//	    active, shadow       what each would do: a change as above, with the fields that differ if both do the same
//	  opaque[]               names of resources of the shadow that can't tell what they would do
//	  error                  why there is nothing to compare, in words
//	shadows[]                one for each framework and shadow set
//	  framework, shadow      their names
//	  objects, differing, failed  how many objects were compared, differ, and can't be compared
//	  places[]               where they differ: resource, kind, path (or action of the whole object), objects
//	  otherPlaces            how many more places there are
//
// # Promises
//
//   - A plan of the same world is the same: changes stand in the order in which they would be applied, fields sorted by
//     path.
//   - Values of Secrets, and others that are marked as sensitive, are not in a plan at all: not in its text, nor in its
//     JSON, nor in the Go value.
//   - The JSON form is stable: fields are added to it, but none is removed or given another meaning within a version.
package plan
