// Package operator puts an operator together: frameworks with their sources, custom resource definitions, leader
// election, events, health and metrics.
//
// Most operators get this from the command line of package command, which makes the [Dependencies] and calls
// [New] and [Operator.Run]. By hand it reads:
//
//	deps, err := operator.NewDependencies(operator.DependenciesConfig{Name: "website-operator", RESTConfig: config, Logger: logger, Scheme: scheme})
//	defer deps.Close()
//	websites, err := deps.NewSource(&v1alpha1.Website{})
//	owned, err := deps.Own(&v1alpha1.Website{}, &corev1.ConfigMap{}) // stores for the resources, watches for the framework
//	f, err := deps.NewFramework(framework.Config{Source: websites, Watches: owned.Watches, ResourceRouter: router})
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
//   - The listeners, that of the inspector (package inspector) too, are bound before anything else: a port that is taken is
//     an error at once.
//   - Then the definitions are ensured: what is there already needs no right to write, and an older version of the operator never puts its
//     own back, see Config.CRDMode and package crdclient. Then the sources run and sync, on every replica, so that the next leader is warm. Only
//     then is the lease asked for. A source that does not sync within Config.SyncTimeout is told, and holds up only the frameworks
//     that need it; a replica none of whose frameworks has its sources does not lead. Without Config.Sharding, the
//     frameworks run on the leader only.
//   - One writer: whoever elects a leader has a [Fence], with nothing to configure. Client, Recorder and RESTConfig of
//     Dependencies are behind it, and what HTTPClient returns: no request begins once the lease may have ended, also after a
//     pause of the process. Give other writers its Check or Transport; what has neither is not held back. A request that had passed
//     the fence may still arrive later: let it name the UID and the resource version of what it changes.
//   - With Config.Sharding all replicas work, each on a part of the objects, see [ShardingConfig]. Each is fenced as a leader is, by the Lease
//     of its own that it renews; no object is begun by a replica before the one that had it has ended its work on it, or can't write any more.
//   - A leader that finds its lease gone, or held by somebody else, ends its work at once. A replica that knew the holder of a lease
//     which is deleted waits until that would have ended.
//   - Stopping is clean: reconciliations under way end or are cancelled at their framework's deadline, then the lease is
//     released, then the sources stop, and the listener last. No goroutine outlives Run; connections that client-go keeps
//     for later requests are closed when they are idle then.
//   - Run always returns. What ignores the end of its context, for framework.Config.CancelTimeout or Config.ShutdownTimeout,
//     is named by an error that wraps framework.ErrStillRunning: with object, resource and step. The fence stays closed then, the
//     lease is not released but runs out, /healthz fails, and the gauge operatorkit_operator_leading is 0.
//   - A lease that is lost stops the frameworks, cancels their reconciliations at once, and ends Run with [ErrLeaseLost].
//     It is not released then: it may be somebody else's.
//   - /healthz fails when a worker is in one step for longer than Config.StepTimeout, without what it waits for on purpose
//     (framework.BeginWait), /readyz until the sources are synced, and when one is out of contact for longer than
//     Config.ContactTimeout or degraded (informer.Status): it says why.
//   - The listeners let nobody keep them busy: headers, bodies, and the times for sending, reading and idling are limited; plans, graphs
//     and streams of the inspector have limits of their own. Beyond loopback the inspector is served by TLS, or New of package inspector
//     refuses it. Health and metrics are plain; Config.AuthorizeMetrics has the API server say who may read the metrics.
//   - A request by RESTConfig of Dependencies that the API server puts off (429, 503 with Retry-After) fails at once, after a second at most, and the
//     object is tried again after that pause: no worker sleeps in it, see informer.RetryAfterTransport.
//   - A request by RESTConfig of Dependencies that the API server refuses for lack of rights is logged with the rule that would allow it, once for
//     each rule. Dependencies.Rights tells which rules that takes altogether; "manifests" of package command prints them.
//   - The failure of one part stops the others cleanly. Run returns all errors, joined.
//   - Nothing here ends the process or sets anything that is global to it.
//
// # Metrics
//
// Those of the frameworks are listed by package framework. The operator adds, on its Registry:
//
//	operatorkit_operator_leading                          1 on the replica that works and may do so
//	operatorkit_operator_lease_renewals_total             tries to get or renew the lease, by result
//	operatorkit_operator_lease_renewed_timestamp_seconds  when it was renewed last, 0 without it
//	operatorkit_operator_shard_slots                      slots in which this replica works, with Config.Sharding
//	operatorkit_operator_shard_objects                    primary objects in these
//	operatorkit_operator_shard_moves_total                times that it got something, or gave something up, by direction
//	operatorkit_operator_shard_unowned_seconds_total      time in which there were slots that nobody was allowed to begin work in
//	operatorkit_client_requests_total                     requests by Dependencies.RESTConfig, by verb, host and code
//	operatorkit_client_request_duration_seconds           until an answer began, by verb and host
//	operatorkit_client_rate_limiter_duration_seconds      waiting for the limit of RESTConfig (QPS), if it has one, by host
//	go_*, process_*, go_build_info                        unless DependenciesConfig.Registry is set
package operator
