// Package objectresource is a ready-made resource: any set of Kubernetes objects that belongs to one primary object.
//
// A function says which objects should be there. The resource creates them, puts changes and drift right by server-side
// apply, and deletes those that are no longer desired:
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
// So that changes of these objects reconcile their primary, watch them with [OwnerMap]; so that the current state does
// not take a request for each kind, give the same sources as Stores:
//
//	services, err := informer.NewKubernetes(informer.KubernetesConfig{
//		Client: c, Object: &corev1.Service{}, Logger: logger, Indexers: objectresource.OwnerIndexers(),
//	})
//	watch := framework.Watch{Source: services, Map: objectresource.OwnerMap(websiteKind)}
//
// # Whose objects
//
// Every object is marked by the label [OwnerLabel], a few annotations, and an owner reference where there can be one: to
// an owner of the same namespace or without a namespace. It belongs to one resource of one primary. An object that
// exists and has no such mark is refused with a [RefusedError], unless Config.Adopt is set; one that is marked by, or
// controlled by, somebody else is refused in any case. What has to be deleted is found by the label, and is deleted only
// if nobody else controls it, if it is no copy of another object, and if it is still the same one (by its UID).
//
// # Promises
//
//   - A patch lists the objects to create, to update and to delete, with the fields that change. There is no patch when
//     nothing changes, also for objects that the server fills with defaults or writes in another notation.
//   - Fields that are no longer desired are removed. Fields that others set and that were never desired are left alone.
//   - Computing patches writes nothing. Where an object looks different, the server is asked by a dry run what applying
//     would change; an answer that it is nothing is remembered.
//   - Creating never touches an object that exists, updating never creates one. An object that was deleted or replaced
//     meanwhile is a conflict (apierrors.IsConflict): the next reconciliation computes a new patch.
//   - An object that is being deleted although it is desired is waited for and created anew.
//   - Values of Secrets appear in no state, change, log line or error.
//
// A resource is safe for concurrent use for different primaries. The objects that Desired returns are not changed.
package objectresource
