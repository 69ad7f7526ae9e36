// Package manifest is the carrier for templates that are kustomizations or plain manifests: it renders them, and applies them to
// a cluster by server-side apply, with an inventory of what it put there.
//
//	manifests, err := manifest.New(manifest.Config{})
//	…
//	result, err := manifests.Compute(ctx, cluster, live, service)
//	if len(result.Changes) > 0 {
//		err = manifests.CarryOut(ctx, cluster, service, result)
//	}
//
// # Rendering
//
// Of a template with resources, the files of the folder that end in .yaml, .yml or .json are taken in the order of their names,
// without those in folders below it, as `kubectl apply -f folder` takes them. A template with kustomize is what `kustomize build
// folder` prints, with the same restriction to files in and below each kustomization. Nothing is run or fetched for it: a
// kustomization that names something remote, a plugin that is not built in, a chart or an OpenAPI schema is refused with a message. Generators and
// transformers with configurations of their own are files or in the kustomization itself, and no folders. A JSON patch (RFC 6902) with the
// operation copy is refused, because a few of them double an object again and again: add what it copies instead. Sizes, numbers
// of objects and time are bounded by Config.Limits, the aliases of YAML are counted as what they stand for, and replacements and vars with which
// objects could grow without a bound are refused.
//
// Labels and annotations have to be text: a number or a boolean among them is refused, and null is an empty text. Items of a list of one kind,
// such as a ConfigMapList, have that kind where they say none. The stringData of a Secret is applied as data, so that a key which is withdrawn
// goes, and is in the plan.
//
// # Values
//
// Values replace references in the finished objects, in the notation of shells and of Flux:
//
//	${replicas}           the value replicas
//	${image.tag}          the value tag in the map image
//	${replicas:-2}        the value, or 2 where there is none
//	${port:string}        the value as a text, where a number would not do
//	$${HOME}              the text ${HOME}
//
// A field that is nothing but a reference becomes the value with its type: a number, a list, a map; quotes around it don't
// matter. Anything else is text. References are replaced in fields after the YAML was read: a value never adds a field, and is not
// looked through for references. A reference without a value and without a default is an error that names the object, its
// file and the field. Keys of maps stay as they are. Whole numbers keep all their digits. What is within a text, or has :string, keeps them
// beyond those that an API server can store as a number.
//
// A service without any values gets its files as they are. So does an object with the annotation [SubstituteAnnotation] with the
// value "disabled", which is for scripts and the like.
//
// # Patches
//
// Patches of the service (package patching) change the finished objects: references in a patch stay as they are.
//
// # Applying
//
// Objects are applied in the order of Flux's package ssa: definitions and namespaces first, workloads after what they need,
// webhooks last. What is of a new kind waits until its definition is established. Objects whose definition changes are tried out by a dry run
// after that, before other objects are applied. Objects without a namespace get that of the
// service, which is created when it is missing and never deleted, as by `helm install --create-namespace`. One that is created has the label
// app.kubernetes.io/managed-by: operatorkit.
//
// An object that has the labels of the service is its own: its fields are taken back from whoever changed them, unless
// Config.StopOnConflict of the set makes that a [ConflictError]. An object that is there and has no such labels is taken over if no
// field has to be taken from another field manager, and is a ConflictError otherwise. What belongs to another keeper (package carrier), another service, a Helm
// release, another tool or a controller is refused with a [RefusedError]. With adopt, what is nobody's or another tool's (Flux, Argo CD, kubectl) is taken
// over as it is: it gets the marks, its fields go from that tool's field manager to the service's, and what differs is applied after that. What has a former name's marks is taken over as it is, with
// its fields. What has changed since it was planned is a conflict, and is worked out anew. Both come before anything is written.
//
// # Inventory
//
// A Secret in the namespace of the service, with the labels of [carrier.LabelsOf], has the names of its objects and, as it
// was applied, what they were made of; without changes it is the only thing that is read. It is written before objects are, so
// a crash leaves nothing behind that nobody knows, and completed after the last one.
//
// # Taking away
//
// What is no longer part of a service is deleted after the rest was applied and is ready, such as the ConfigMaps that a kustomization has
// generated for an earlier version: their Pods may be running still. Until then they are in the inventory, so that a crash or another version
// does not lose them. If the new version never gets ready, they stay until the service changes or is removed. When the
// service is removed, all of it is deleted in the opposite order; what holds an object is waited for before that is deleted which may
// have to let it go. Not deleted are, and lose their labels instead:
//
//   - an object with the annotation [carrier.PruneAnnotation] with the value "disabled", in the manifest or on the cluster;
//   - a definition that has objects which are not of this service;
//   - a namespace with anything that is not of this service: objects of another service or another operator, those that somebody has made
//     by hand, claims that a StatefulSet has made, and objects that stay by their annotation.
//
// [carrier.Bystanders] says what counts. Where objects can't be listed, because a right for them lacks or their API is down, the namespace or
// the definition stays too. The plan says beforehand what stays, and why. What stays is not of the service any more: it is not deleted
// when the last other object is gone either.
//
// # Drift and health
//
// Drift is what differs, in the fields that were applied, from what was applied; whether it is one is decided by a dry run, so
// defaults and other notations are none. Health is told by kstatus. What is not ready in Config.HealthTimeout since it was
// applied has failed.
//
// A Job with ttlSecondsAfterFinished that is not there any more is done, once that time is over: it is neither missing nor drift, and
// is run again when its manifest changes.
//
// # Secrets
//
// Values of Secrets, objects that a secret value went into, and objects from files in a Secret are shown by the names of their
// fields only, and the words of an API server about them are left out of errors. An object that a secret value went into stays
// hidden until a version without it is on the cluster completely. The inventory is a Secret.
package manifest
