// Package operator puts an operator together: frameworks with their sources, custom resource definitions, leader
// election, events, health and metrics.
//
// Most operators get this from the command line of package command, which makes the [Dependencies] and calls
// [New] and [Operator.Run]. By hand it reads:
//
//	deps, err := operator.NewDependencies(operator.DependenciesConfig{Name: "website-operator", RESTConfig: config, Logger: logger, Scheme: scheme})
//	defer deps.Close()
//	websites, err := deps.NewSource(&v1alpha1.Website{})
//	f, err := deps.NewFramework(framework.Config{Source: websites, ResourceRouter: router})
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
//   - Then the definitions are ensured, then the sources run, on every replica, so that the next leader is warm. The
//     frameworks run on the leader only.
//   - Stopping is clean: reconciliations under way end or are cancelled at their framework's deadline, then the lease is
//     released, then the sources stop, and the listener last. No goroutine outlives Run; connections that client-go keeps
//     for later requests are closed when they are idle then.
//   - A lease that is lost stops the frameworks, cancels their reconciliations at once, and ends Run with [ErrLeaseLost].
//     It is not released then: it may be somebody else's.
//   - A replica that has lost its lease without knowing it can't write, if what it writes with has a [Fence].
//   - The failure of one part stops the others cleanly. Run returns all errors, joined.
//   - Nothing here ends the process or sets anything that is global to it.
package operator
