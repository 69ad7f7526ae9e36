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
//   - What Get and List return belongs to the caller. What an Event carries is shared and must not be changed.
//   - Handlers of one source are called one event at a time, and they must not block.
package informer
