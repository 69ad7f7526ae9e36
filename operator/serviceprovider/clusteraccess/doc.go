// Package clusteraccess gets service providers access to clusters. It asks, by the objects of package v1alpha1 on the platform
// cluster; packages scheduler and granter answer.
//
// A service provider with a managed control plane (MCP) for each object, and a workload cluster beside it, has a [Provider],
// which is a serviceprovider.ClusterAccessProvider:
//
//	access, err := clusteraccess.NewProvider(clusteraccess.ProviderConfig{
//		Config: clusteraccess.Config{Provider: "postgres", Platform: platform, Scheme: scheme, Logger: logger},
//		MCP:      clusteraccess.Permissions(mcpPermissions...),
//		Workload: clusteraccess.Permissions(workloadPermissions...),
//	})
//	err = mgr.Add(access)                               // it runs with the manager
//	err = c.Watch(access.Changes())                     // what changes reconciles the objects that it concerns
//
// The general form is [Clusters]: any number of clusters for an object, each under an id, with additional data that is passed
// through to the functions that say what is asked for.
//
//	access, err := clusteraccess.New(config, []clusteraccess.Access[*v1alpha1.Database]{
//		{ID: "mcp", Ask: …}, {ID: "backup", Ask: func(request reconcile.Request, db *v1alpha1.Database) (*clusteraccess.Ask, error) { … }},
//	})
//	result, err := access.Reconcile(ctx, request, db)   // waits as long as result says so
//	backup, err := access.Cluster(ctx, request, "backup")
//	…
//	result, err = access.ReconcileDelete(ctx, request)  // gone when result is zero
//
// A cluster that the provider has rights in anyway is [Fixed]: it is not asked for, and is otherwise one as the others are.
//
//	Fixed: map[string]clusteraccess.Fixed{
//		"onboarding": {Secret: client.ObjectKey{Namespace: "postgres", Name: "onboarding"}},  // by a kubeconfig, which may change
//		"home":       {Cluster: home},                                                        // home, err := clusters.InCluster("home", scheme)
//	},
//
// A provider that an OIDC issuer knows, for example by the service account token of its own Pod, can use that token in place of issued ones,
// in clusters that trust each other: it is sent to all of them alike (Config.OIDCToken).
//
//	Config: clusteraccess.Config{OIDCToken: clusteraccess.TokenFile("/var/run/secrets/tokens/clusters"), …},
//	Workload: func(request reconcile.Request) (*clusteraccess.Ask, error) {
//		return &clusteraccess.Ask{OIDC: &v1alpha1.OIDCIdentity{Issuer: issuer, Username: "postgres-provider"}, …}, nil
//	},
//
// # Promises
//
//   - All clusters of an object are asked for at once, in the order in which they were configured; one that waits, is denied
//     or can't be asked for keeps none of the others.
//   - What a request waits for, or why it is denied, stands in its condition Granted (AccessRequest). A denied one is
//     looked at again from time to time, and at once when it changes.
//   - Everything asked for is found again by its labels, and taken away by ReconcileDelete: the access first, then the
//     ClusterRequests. Nothing is kept in memory only.
//   - Its labels say which operator and provider it is of: those of others are left alone, and one in the way is an error that names
//     whose it is. What has a former name is taken over as it is, with its name and its credentials. An annotation says for which kind of
//     objects it is, if that is known (Clusters.ServeKind), so that several APIs of one provider leave each other's access alone. Another
//     one names the onboarding cluster (Clusters.ServeOnboarding), so that two installations of one name do so, too. A request with one of
//     their names and no such mark is somebody else's: it is refused when access is asked for, and does not hold up a deletion.
//   - A grant counts for what was asked for when it was given: after a change of the request the cluster is not handed out before the new
//     grant.
//   - Changes and deletions name the version that they are for. A manager of controller-runtime has no fence: its process ends with its
//     lease. An operator.Operator lends its own: the manager is one of its Runnables and elects no leader itself, Config.Platform is
//     made of the RESTConfig of the Dependencies, and Config.WrapTransport is their Fence.TransportTo(nil).
//   - All clients of an access share one connection pool, and stay the same when the credentials are renewed: the next request
//     uses the new ones. It is closed some minutes after the last object has let it go. A cluster that does not answer fails
//     requests at once, without delaying others: see package target. The same holds for what others make of Cluster.RESTConfig, which
//     has the address of the cluster: exec, port-forward, Helm.
//   - In the local form (Config.LocalServers), for development, the address in v1alpha1.LocalServerAnnotation on the Secret of a
//     kubeconfig takes the place of the one in it. An annotation that makes no sense is an error of this cluster.
//
// # Namespaces
//
// A service provider asks in a namespace of its own, which the platform team has made, and finds there what is issued to it. That says who
// asks (see package namespaces): a request in any other namespace is denied. Two providers never share one, replicas and operators of one
// provider do. The Clusters, and the Secrets with which the platform manages them, are in another namespace, of which a provider sees
// nothing: it knows Clusters by their names.
//
// # Permissions
//
// In its namespace: AccessRequests and ClusterRequests (get, list, watch, create, patch, delete), Secrets (get, list, watch). And the Secret
// of a Fixed cluster, where that is (get, list, watch). In the onboarding cluster, if that is told: the namespace kube-system (get). It needs no others on the platform, and is given none: the status of a request is
// the platform's, and so is everything beside it.
package clusteraccess
