// Package informer says where the objects of an operator come from.
//
// A [Source] is a store that can be read and a stream of the keys that changed. The framework depends on nothing
// else: objects of a Kubernetes API ([NewKubernetes]), objects handed over by somebody else's informer ([NewPush]), and
// things that can only be listed on a timer (package pollinformer) are all sources. A new kind of source is a [Hub] that
// somebody feeds.
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
// Code that takes a client.Reader reads several such sources through a [Reader], without asking the API server.
//
// # Promises
//
//   - Every change of the world is followed by an event for its key, also when it happened while the watch was cut;
//     several changes of one key may be one event.
//   - An object that is gone gives exactly one event of type [Deleted], with the last known state.
//   - What is read is never older than what was shown: neither an event nor a listing takes an object back to an earlier state, or
//     brings back one that was seen to be gone.
//   - What was written through operator.Dependencies, [Writes], or Write and Delete of a polled source is read from then on, and its
//     event is no reason to reconcile the key again for which it was written.
//   - No list asks for any version, and one that is older than what the source was told before is an outage, and no state.
//   - A source of which one of several replicas holds a part (Kubernetes.Limit) forgets what leaves the part without an event, announces what
//     joins it as backlog, and loses and repeats nothing of what stays.
//   - What Get and List return belongs to the caller. What an Event carries is shared and must not be changed.
//   - Handlers of one source are called one event at a time, and they must not block.
//
// # Own writes
//
// The answer of the API server to a write goes into the store before whoever wrote gets it. The watch shows the same later, which is no
// news then:
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
// A change of somebody else always wakes K too. That is why the event of a write is K's own only if the write made its version,
// and on top of the version that the store had: otherwise a change that the watch has not shown yet is in between. So is, perhaps,
// one behind a write without a resource version, which is answered with the newest version of the object, whoever made that, and
// one behind a write without an answer. [Writes] says which these are. To avoid being woken, send the version that was read.
//
// A resource that must react to its own writes, or to those of a later resource of its set, sets framework.Watch.OwnWrites, uses
// the package ownwritescontext, or stands after the one it reads from. operatortest.Quiet finds such resources: it lets an
// operator that is done reconcile once more, and reports what that changed.
package informer
