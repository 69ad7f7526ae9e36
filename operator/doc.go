// Package operator combines the parts of an operator: frameworks with their sources, custom
// resource definitions, leader election, events, health and metrics.
//
// Most operators use the command line of package command, which makes the [Dependencies] and calls
// [New] and [Operator.Run]. Without it the code is:
//
//	deps, err := operator.NewDependencies(operator.DependenciesConfig{
//		Name: "website-operator", RESTConfig: config, Logger: logger, Scheme: scheme,
//	})
//	defer deps.Close()
//	websites, err := deps.NewSource(&v1alpha1.Website{})
//	// Stores for the resources, watches for the framework.
//	owned, err := deps.Own(&v1alpha1.Website{}, &corev1.ConfigMap{})
//	f, err := deps.NewFramework(framework.Config{
//		Source: websites, Watches: owned.Watches, ResourceRouter: router,
//	})
//	o, err := operator.New(operator.Config{
//		Name: deps.Name, Logger: deps.Logger, RESTConfig: deps.RESTConfig, Registry: deps.Registry,
//		Frameworks: []*framework.Framework{f}, CRDs: []*apiextensionsv1.CustomResourceDefinition{crd},
//		LeaderElection: operator.LeaderElectionConfig{Enabled: true, Namespace: "default"},
//		ListenAddress:  ":8080",
//	})
//	ctx, stop := operator.Signals(context.Background())
//	defer stop()
//	err = o.Run(ctx)
//
// # Promises
//
//   - The listeners, including the inspector's (package inspector), are bound before anything else:
//     a port in use is an error at once.
//   - Then the definitions are ensured. Definitions that exist already need no permission to write,
//     and an older version of the operator never restores its own, see Config.CRDMode and package
//     crdclient. Then the sources run and sync, on every replica, so that the next leader is warm.
//     Only then does the replica request the lease. A source that does not sync within
//     Config.SyncTimeout is logged, and delays only the frameworks that need it. A replica does not
//     lead before one framework has all of its sources. Without Config.Sharding, the frameworks run
//     on the leader only.
//   - One writer: an operator with leader election has a [Fence], without any configuration. It
//     guards Client, Recorder and RESTConfig of Dependencies, and the clients that HTTPClient
//     returns: no request starts once the lease may have ended, even after a pause of the process.
//     Give other writers its Check or Transport; a writer with neither is not held back. A request
//     that has passed the fence may still arrive later: it should include the UID and the resource
//     version of its object.
//   - With Config.Sharding all replicas work, each on a part of the objects, see [ShardingConfig].
//     Each is fenced like a leader, by its own Lease. A replica does not start work on an object
//     until the previous one has ended its work on it, or can no longer write.
//   - A leader that finds its lease gone, or held by another replica, ends its work at once. If a
//     lease is deleted, a replica that knew its holder waits until the lease would have ended.
//   - Stopping is clean: reconciliations in progress end or are cancelled at their framework's
//     deadline, then the lease is released, then the sources stop, and the listener last. No
//     goroutine outlives Run. Connections that client-go keeps for later requests are closed if
//     they are idle then.
//   - Run always returns. A part that ignores the end of its context, for
//     framework.Config.CancelTimeout or Config.ShutdownTimeout, is named by an error that wraps
//     framework.ErrStillRunning: with object, resource and step. Then the fence stays closed, the
//     lease is not released but expires, /healthz fails, and the gauge operatorkit_operator_leading
//     is 0.
//   - A lost lease stops the frameworks, cancels their reconciliations at once, and ends Run with
//     [ErrLeaseLost]. It is not released then, because another replica may hold it.
//   - /healthz fails if a worker is in one step for longer than Config.StepTimeout, not counting
//     time that it waits on purpose (framework.BeginWait). /readyz fails until the sources are
//     synced, and if a source is without contact for longer than Config.ContactTimeout or degraded
//     (informer.Status); it reports the reason.
//   - A client can't keep the listeners busy: headers, bodies, and the times for sending, reading
//     and idling are limited. Plans, graphs and streams of the inspector have their own limits.
//     Beyond loopback the inspector must be served by TLS, or New of package inspector refuses it.
//     Health and metrics are plain; with Config.AuthorizeMetrics the API server authorizes access
//     to the metrics.
//   - If the API server puts off a request by RESTConfig of Dependencies (429, 503 with
//     Retry-After), it fails at once, after a second at most, and the object is retried after that
//     pause: no worker sleeps in it, see informer.RetryAfterTransport.
//   - If the API server refuses a request by RESTConfig of Dependencies for lack of rights, it is
//     logged with the rule that would allow it, once for each rule. Dependencies.Rights returns all
//     rules that are needed; "manifests" of package command prints them.
//   - The failure of one part stops the others cleanly. Run returns all errors, joined.
//   - Nothing here ends the process or changes global state of the process.
//
// # Metrics
//
// The metrics of the frameworks are listed by package framework. The operator adds, on its
// Registry:
//
//	operatorkit_operator_leading                          1 on the replica that works and may do so
//	operatorkit_operator_lease_renewals_total             tries to get or renew the lease, by result
//	operatorkit_operator_lease_renewed_timestamp_seconds  when it was renewed last, 0 without it
//	operatorkit_operator_shard_slots                      slots of this replica (Config.Sharding)
//	operatorkit_operator_shard_objects                    primary objects in these
//	operatorkit_operator_shard_moves_total                parts gained or lost, by direction
//	operatorkit_operator_shard_unowned_seconds_total      time with slots closed to all replicas
//	operatorkit_client_requests_total                     requests by RESTConfig: verb, host, code
//	operatorkit_client_request_duration_seconds           until an answer began, by verb and host
//	operatorkit_client_rate_limiter_duration_seconds      waiting for RESTConfig's QPS limit, by host
//	go_*, process_*, go_build_info                        unless DependenciesConfig.Registry is set
package operator
