// Package objectresource is a ready-made resource: any set of Kubernetes objects that belongs to
// one primary object.
//
// A function says which objects should be there. The resource creates them, puts changes and drift
// right by server-side apply, and deletes those that are no longer desired:
//
//	pages, err := objectresource.New(objectresource.Config[*v1alpha1.Website]{
//		Name:   "pages",
//		Client: c,
//		Logger: logger,
//		Kinds:  []client.Object{&appsv1.Deployment{}, &corev1.Service{}},
//		Desired: func(ctx context.Context, site *v1alpha1.Website) ([]client.Object, error) {
//			return []client.Object{deployment(site), service(site)}, nil
//		},
//	})
//
// So that changes of these objects reconcile their primary, watch them with [OwnerMap]; so that the
// current state does not take a request for each kind, give the same sources as Stores, which have
// the index of [OwnerIndexers]. An operator gets both at once:
//
//	owned, err := d.Own(&v1alpha1.Website{}, &appsv1.Deployment{}, &corev1.Service{}) // owned.Stores, owned.Watches
//
// # Whose objects
//
// Every object is marked: by the label [OwnerLabel], which stands for the operator, the framework,
// the resource and the primary (see package identity), by the label [OperatorLabel], by annotations
// with the full names, and by an owner reference where there can be one: to an owner of the same
// namespace or without a namespace. It belongs to one resource of one primary. An object that
// exists and has no mark is refused with a [RefusedError], unless Config.Adopt is set, also if the
// primary is its controller; one that is marked by, or controlled by, somebody else is refused in
// any case, and the error names whose it is. What has to be deleted is found by the label, and is
// deleted only if nobody else controls it, and if it is no copy of another object.
//
// # Former names
//
// When the operator, the framework or the resource gets another name, it is given the former one,
// and what stands under that is taken over in place: the plan shows an update that is "taken over
// from" it, and fields that are no longer desired go away. A resource can be split. Both parts have
// the former name then, or the one that has it still stands last:
//
//	Resources: []framework.Resource{
//		configs, // Config.Name "configs", FormerNames "objects"
//		objects, // Config.Name "objects"
//	}
//
// There is no way back to a version that does not know the new name: it refuses what it finds. In
// that version, the new name goes to FormerNames.
//
// # Promises
//
//   - A patch lists the objects to create, to update and to delete, with the fields that change.
//     There is no patch when nothing changes, also for objects that the server fills with defaults
//     or writes in another notation.
//   - Fields that are no longer desired are removed. Fields that others set and that were never
//     desired are left alone.
//   - Computing patches writes nothing. Where an object looks different, the server is asked by a
//     dry run what applying would change; an answer that it is nothing is remembered, for the last
//     65,536 such objects of a resource. The plan of an update without fields is that of fields
//     which are set, or not set any more, while no value changes.
//   - An object that does not keep what is applied to it, because an admission webhook or policy
//     changes it, is told once, by a warning event on the primary ([ReasonNotKept]) and in the log,
//     with the fields and without their values. It is no error.
//   - The stringData of a Secret is applied as data: a key that is withdrawn goes, and is in the
//     plan. A label or an annotation of an unstructured object that is no text is a permanent error
//     of that object.
//   - Creating never touches an object that exists; updating never creates one. An object that
//     appeared, or was changed, deleted or replaced, since the patch was computed is neither
//     updated nor deleted, by its UID and resource version. It is a conflict
//     (apierrors.IsConflict): the next reconciliation computes a new patch.
//   - Each object fails alone: one that is refused, by this package or by the API server, keeps no
//     other from being created and updated, nor from being in the plan. The errors are joined.
//     Nothing is deleted before they are mended.
//   - An object that is being deleted although it is desired is waited for and created anew.
//   - Before a primary goes, the API server is asked for those of its objects that can't have an
//     owner reference: a store may lack one, which nobody would find any more.
//   - An object of a kind in Config.Replace whose update the API server refuses is deleted, without
//     its dependents, and created anew; one that could not be created stays as it is.
//   - Values of Secrets appear in no state, change, log line or error.
//
// A resource is safe for concurrent use for different primaries. The objects that Desired returns
// are not changed.
package objectresource
