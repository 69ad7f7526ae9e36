// Package patching changes the objects of a service as its patches say, after they were rendered: by the strategic merge patches and the
// JSON patches of kustomize, for charts and for manifests alike.
//
//	patches, err := patching.Of(service.Entry.Patches)
//	for i, object := range objects {
//		objects[i], matched, err = patches.Apply(ctx, object, namespace)
//	}
//	err = patches.Missed() // those that have found no object
//
// Patches are applied in their order, each to what the ones before have left. Errors are permanent but for those of the context: they
// name the patch, and the object where there is one. Values of objects are in none.
package patching
