// Package servicesets is the operator of service sets: it works out which services every cluster gets now (see package
// serviceset), writes the ServiceSets, and tells how far they are. It is three frameworks, for any operator to run:
//
//	os.Exit(command.Execute(context.Background(), command.Config{
//		Name:        "service-operator",
//		CRDFiles:    v1alpha1.CRDs,
//		AddToScheme: []func(*runtime.Scheme) error{v1alpha1.AddToScheme},
//		New: func(_ context.Context, d *operator.Dependencies) ([]*framework.Framework, error) {
//			return servicesets.New(d, servicesets.Config{SystemNamespace: "platform-system"})
//		},
//	}, os.Args[1:], os.Stdout, os.Stderr))
//
// A state manager carries ServiceSets out and reports states in their status; package v1alpha1 says what it owes.
//
// # Who writes what
//
// The framework for ClusterDeployments writes all ServiceSets of its cluster: those of the cluster itself and those of the
// MultiClusterServices that select it, because their services depend on each other. A change in one of them reconciles this
// cluster; clusters are reconciled in parallel and fail alone. The framework for MultiClusterServices writes the
// ServiceSet of its own on the management cluster, and the status, which sums up what the clusters say. That for
// ServiceTemplateChains writes in their status whether they can be used; it puts no finalizer on them.
//
// # Promises
//
//   - The status of a ClusterDeployment tells of every service its state and why it is not ready, and sums up the ServiceSets
//     of all owners. The conditions Ready, Progressing and Blocked name every service concerned, in 4 KiB at most. They are
//     about the services that the cluster lists itself; MultiClusterServices have conditions of their own.
//   - The status tells what is so when the reconciliation that writes it is done, and is written before ServiceSets are: what
//     keeps these from being written stands there too. A plan has exactly what is written.
//   - Ready is told when the state managers have rolled out what is desired, values included, and can tell: not while a ServiceSet has
//     entries that its status is not about yet, not while its cluster can't be reached or its provider is suspended, and never
//     together with Blocked. What another owner has on a cluster is overridden there, and no reason not to be Ready.
//   - What is not selected any more is withdrawn, whatever the selector was before.
//   - Nothing is written when nothing changes, whatever is reconciled how often. A condition keeps its lastTransitionTime as long
//     as its status is the same.
//   - Dependencies that are absent or go in circles, and a provider that does not exist, are found before anything is written.
//     They are a condition, an event and an error, which name all services concerned. What a MultiClusterService has
//     wrong is an error of its own, and none of the clusters that it selects.
//   - MultiClusterServices come up in the order of their dependsOn, cluster by cluster, and leave in the reverse one: one that is being
//     deleted waits on each cluster for those that depend on it and have services there, and says for whom. Those have to be deleted too,
//     or to give up depending on it: until then they are Blocked, as are those that depend on one which does not exist, and in a
//     circle. With Config.MultiClusterServices, the ones of other operators do not exist.
//   - A ClusterDeployment that is deleted is gone after its ServiceSets, a MultiClusterService after its ServiceSets on all
//     clusters. Meanwhile the condition Ready says which ones are left. What a MultiClusterService does not want on a cluster
//     any more, because it is deleted or does not select the cluster, goes in the order of dependencies. The API server is asked
//     before, so that nothing goes because a list lacked whose it is. ServiceSets of a MultiClusterService whose ClusterDeployment
//     was removed by force are deleted.
//   - Events tell once when something becomes blocked, when what blocks it changes, and when all is ready; a restart tells
//     nothing again.
//   - With Dependencies.PlanOnly, or the annotation framework.PlanAnnotation, the condition Planned says how much would be done.
//     Nothing else is written then.
//   - The frameworks draw what they know (inspector.Inspector.Draw): of a ClusterDeployment all its services, and those of each
//     ServiceSet; of a MultiClusterService its services with the number of clusters that have them, and which others come before and after
//     it.
//
// # Several operators
//
// With Dependencies.Namespaces, the operator knows the ClusterDeployments of these namespaces only, and the ServiceSets,
// templates and chains there and in the system namespace. A MultiClusterService then goes to those clusters, its status
// tells of no others, and its deletion waits for no others. So no two operators may have the same MultiClusterService:
// Config.MultiClusterServices keeps them apart by labels.
//
// A ClusterDeployment and a MultiClusterService are one operator's, which the annotation operatorkit.io/claimed-by names: the first one
// that found it. Another one does nothing for it, and says in an event whose it is; a former name is taken over. Who takes the
// annotation off, or deletes the object, gives it to another operator, provided that the first one does not run any more. The status of a
// ServiceTemplateChain is one operator's in the same way; others use the chain all the same.
//
// # Permissions
//
// The frameworks declare them, so that "manifests" prints them. All kinds of v1alpha1: get, list, watch. ClusterDeployments and MultiClusterServices: patch, and patch of their status.
// ServiceTemplateChains: patch, and patch of their status.
// ServiceSets: create, update, delete. Events: create, patch.
//
// # Metrics
//
// All names begin with operatorkit_servicesets_. They are read off the sources when they are asked for; nothing is left of
// what is gone.
//
//   - services: how many services a cluster has, by state, with the labels cluster_namespace, cluster (both empty for the
//     management cluster) and state;
//   - cluster_blocked_seconds: how long the condition Blocked of a ClusterDeployment has been True, 0 if it is not, with the
//     labels cluster_namespace and cluster;
//   - multiclusterservice_blocked_seconds: the same of a MultiClusterService, with the label multiclusterservice.
//
// These labels hold names of objects: there are seven series for a cluster at most, and one for a MultiClusterService.
package servicesets
