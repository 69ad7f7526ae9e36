// Package natscontroller runs controllers whose primaries are entries in a bucket of NATS. What a primary asks for, its
// secondaries, may be entries of other buckets and objects of Kubernetes; tertiaries are only read; external systems are
// polled.
//
//	source, err := natsinformer.NewSource(natsinformer.SourceConfig[*Gateway]{Bucket: gateways, Logger: logger})
//	controller, err := natscontroller.NewControllerRuntime(natscontroller.Config[*Gateway]{
//		Name: "gateway-controller", Kind: "Gateway", Logger: logger, Primary: source,
//		Secondaries: []natscontroller.Secondary{natscontroller.Entities(routes), natscontroller.Kube(configMaps, client)},
//		Tertiaries:  []framework.Watch{{Source: certificates, Map: gatewaysOfCertificate}},
//		Resources:   []framework.Resource{routeResource, configMapResource},
//		Events:      events,
//	})
//	err = controller.Start(ctx)
//
// What is to be done for a primary is in its resources, which give plans, retries of single steps and metrics. Controllers
// written for the original have a SyncHandler instead; both run side by side:
//
//	type Controller struct {
//		*natscontroller.ControllerRuntime[*Gateway]
//	}
//
//	func (c *Controller) SyncHandler(key string) error { ... }
//
// or, in its place, the form with the context of the reconciliation (see [ContextSyncer]), by which own writes are told from those of others:
//
//	func (c *Controller) SyncHandlerContext(ctx context.Context, key string) error { ... }
//
//	controller := &Controller{ControllerRuntime: runtime}
//	controller.SetCustomController(controller)
//	controller.Run(4, stopCh, errCh)
//
// # The flow
//
//	primary ─────────────────────────────key──▶ queue ──key──▶ worker ──▶ resources, in order ──▶ SyncHandler(key)
//	secondaries ──▶ HandleSecondary ──owner's key──▲                                               │
//	tertiaries, externals ──▶ map ─────────key─────┤                                               │ error
//	EnqueueKey, EnqueueKeyAfter ───────────key─────┴───────────────────────backoff─────────────────┘
//
// The queue and everything behind it is package framework, and its promises hold: one key is worked on once at a time,
// whatever fails is tried again for as long as the primary exists, a panic is an error.
//
// What a reconciliation writes through its context to the entries of the primaries and secondaries, and to Kubernetes through
// operator.Dependencies, is no reason for another one of the same key: that of a resource, and of a SyncHandlerContext. A SyncHandler has no
// context, so that all it writes counts as somebody else's. The same goes for a HandleSecondary that calls EnqueueKey by itself, for each
// state that it is given.
//
// # Owners
//
// A secondary names its primary: an entity by its OwnerKind and OwnerKey, a Kubernetes object by the annotations or labels
// that [SetOwner] sets. The names are those of the original. An annotation says, besides, which controller of which operator made
// it, so that controllers with the same Kind, or Name, in different operators leave one another's secondaries alone. Package
// natsresource writes all that with the same Kind; what package objectresource makes has it when its Desired calls SetOwner, and
// what a SyncHandler makes when it calls SetOwner or [SetEntityOwner] with [ControllerRuntime.Identity].
//
// HandleSecondary is not concerned by secondaries of which another controller says that it made them. Events of another controller
// are other entries, whatever they say.
//
// # Deletion
//
// What happens when the entry of a primary is deleted, or its deletion is asked for, is up to package natsinformer: the
// resources' EnsureDeleted and then SyncHandler are called, or with DeleteBackwards SyncHandler and then they, and the entry or
// what is left of it is removed when they have succeeded. Deletions that nobody was there to see and of which the bucket keeps no
// trace leave secondaries behind. These are what GarbageSecondaries is for: it removes secondaries that this controller made and whose primary is not there.
//
//   - Both are asked for where they are kept, not in a store that may be late. As long as a source is not in contact, or a
//     bucket is not there, nothing is removed.
//   - Each object is removed in the version that was looked at, or not at all.
//   - An object that names no owner, another kind, or a primary that exists or is being deleted, is never touched. Nor is one
//     that does not say that this controller made it, under the names that it and its operator have or had.
//   - [ControllerRuntime.PlanGarbage] tells beforehand what would go.
//
// # Several replicas
//
// With LeaderElection one replica works. Its lease is kept in Kubernetes or, with package natslease, in a bucket. A replica
// that is stopped and wakes up after another one has taken over can't write: the buckets, and clients of Kubernetes, refuse
// it by their operator.Fence, and NATS by the revision that every change of an entry names. The buckets of primaries, secondaries
// and events must have the fence. What else a controller writes to is up to its author: buckets that only its resources know,
// which are opened with Fence too, clients of other systems, for which there is Fence.Transport, and connections of its own to NATS.
// The lease alone is written without a fence, by its revision.
//
//	fence := operator.NewFence()
//	gateways, err := natsinformer.NewBucket(natsinformer.BucketConfig[*Gateway]{JetStream: js, Name: "gateways", Fence: fence.Check})
//	lock, err := natslease.New(natslease.Config{JetStream: js, Bucket: "leases", Key: "gateway-controller", Operator: "gateways"})
//	config.LeaderElection = operator.LeaderElectionConfig{Enabled: true, Lock: lock, Fence: fence}
//
// Connect with nats.ReconnectBufSize(-1): by default the client keeps what it could not send and sends it when it is
// connected again, which may be after another replica has taken over.
//
// # Metrics
//
// Those of package framework and operator, and operatorkit_natscontroller_garbage_collected_total,
// operatorkit_natscontroller_events_written_total and operatorkit_natscontroller_events_dropped_total, with the label
// controller.
package natscontroller
