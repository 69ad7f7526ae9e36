// Package informer provides the objects of an operator to its frameworks.
//
// A [Source] is a store that can be read and a stream of the keys that changed. The framework
// depends on nothing else. Sources are the objects of a Kubernetes API ([NewKubernetes]), objects
// from an existing informer ([NewPush]), and things that can only be listed on a timer (package
// pollinformer). A new kind of source is a [Hub] and code that feeds it.
//
//	websites, err := informer.NewKubernetes(informer.KubernetesConfig{
//		Client: c,                      // a controller-runtime client.WithWatch
//		Object: &v1alpha1.Website{},
//		Logger: logger,
//	})
//	unsubscribe := websites.Subscribe(func(e informer.Event) { queue.Add(e.Key) })
//	defer unsubscribe()
//	go websites.Run(ctx)
//	err = websites.WaitForSync(ctx)
//	obj, exists, err := websites.Get(informer.Key{Namespace: "default", Name: "home"})
//
// A [Reader] lets code that takes a client.Reader read several such sources without requests to the
// API server.
//
// # Promises
//
//   - Every change is followed by an event for its key, even if it happened while the watch was
//     interrupted. Several changes of one key may be one event.
//   - An object that is gone causes exactly one event of type [Deleted], with the last known state.
//   - Reads never go back in time: no event or list restores an earlier state of an object, or an
//     object that was seen to be gone.
//   - A write through operator.Dependencies, [Writes], or Write and Delete of a polled source is
//     visible to reads from then on. Its event does not reconcile again the key that it was written
//     for.
//   - No list asks for "any version". A list older than the state that the source has seen is an
//     outage, and is not stored.
//   - A source that is limited to one replica's part (Kubernetes.Limit) drops objects that leave
//     the part without an event, and announces objects that join it as backlog. Of the objects that
//     stay it loses and repeats nothing.
//   - Objects returned by Get and List belong to the caller. Objects in an Event are shared and
//     must not be changed.
//   - Handlers of one source are called one event at a time, and they must not block.
//
// # Own writes
//
// The API server's answer to a write goes into the store before the caller gets it. The watch shows
// the same version later, when it is already known:
//
//	reconciliation of K          API server              store            watch
//	    | -- patch child ------------> |                   |                |
//	    |                              | -- version 7 -------------------> (on its way)
//	    | <-- answer: version 7 ------ |                   |                |
//	    |      stored before it returns ----------------> [7]               |
//	    |                              |    event, by K ---+--> wakes all but K
//	    | reads the child: 7 <---------------------------- [7]              |
//	    |                              |                   | <-- 7: known --|
//
// A change by another client always wakes K too. So an event is K's own only if K's write made its
// version directly on top of the version that the store had. Otherwise there is a change in between
// that the watch has not shown yet. There may also be one behind a write without a resource
// version, which is answered with the newest version of the object, even if another client made it,
// and behind a write without an answer. [Writes] lists these cases. To avoid being woken, send the
// version that was read.
//
// A resource that must react to its own writes, or to those of a later resource of its set, sets
// framework.Watch.OwnWrites, uses the package ownwritescontext, or is placed after the resource it
// reads from. operatortest.Quiet finds such resources: it lets an idle operator reconcile once
// more, and reports what that changed.
package informer
