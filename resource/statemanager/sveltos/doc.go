// Package sveltos is a state manager that leaves the work to Sveltos (https://projectsveltos.github.io): every ServiceSet becomes
// a Profile, or a ClusterProfile for the management cluster, and the states of its services come from the ClusterSummary that
// Sveltos makes of it.
//
//	manager, err := sveltos.New(sveltos.Config{Client: d.Client, Namespaces: d.Namespaces, Logger: d.Logger})
//	frameworks, err := statemanagers.New(d, statemanagers.Config{Managers: []statemanagers.Manager{
//		{Provider: "sveltos", StateManager: manager, Watches: manager.Watches()},
//	}})
//
// The scheme of the client has to know v1beta1.AddToScheme, and Sveltos has to be installed: at least its custom resource
// definitions have to be there before the operator starts.
//
// # What a set becomes
//
//	ServiceSet                       Profile or ClusterProfile
//	template with helm               helmCharts, one for each service; its release has the service's name and namespace
//	template with kustomize          kustomizationRefs
//	template with resources          policyRefs
//	values, valuesFrom               the same of the chart; of a kustomization, values are its substitutions
//	priority                         tier = 2147483647 − priority: whoever has the higher priority wins
//	syncMode, continueOnError,       the same
//	reload
//	stopOnConflict                   the opposite of continueOnConflict
//	suspend of the provider          the annotation profile.projectsveltos.io/paused
//
// A set with a cluster becomes a Profile in its own namespace, with the cluster as its clusterRef: the SveltosCluster with the
// name of the ClusterDeployment, which is made from the kubeconfig of the ClusterDeployment when there is none, and follows that. A set
// without one becomes a ClusterProfile for the SveltosCluster mgmt in the namespace mgmt, which is what Sveltos calls the
// management cluster. spec.provider.config may name another cluster, such as one of Cluster API:
//
//	config: {clusterRef: {apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, name: prod}}
//
// # What is different with Sveltos
//
//   - Values of a service with a valuesTemplate are rendered before Sveltos gets them, in the same language as elsewhere (package
//     templating), and Sveltos takes what they come to as it is. Without a valuesTemplate it takes them for templates of its own.
//   - All entries of a ConfigMap or Secret in valuesFrom are values, so a service that picks one by its key is refused, and so is
//     a targetPath. What is optional is so for Sveltos too.
//   - Digests are not verified, so templates that pin one are refused. So are services with ignoreDifferences: Sveltos' driftExclusions are
//     those of a whole profile, and take fields out of what is created too. So are those with adopt, maxAttempts,
//     serviceAccountName, patches or healthCheckExprs, those that are no chart with helmAction Uninstall, and all services of a set with
//     changeWindows.
//   - Kustomizations and manifests are not told apart by Sveltos: if one fails, all of them that are not known to be Deployed
//     count as failed. Charts are told apart.
//   - What a person changes on the cluster is Sveltos' to see and to put right.
//
// # Promises
//
//   - A service is Deployed only when Sveltos has taken note of what the profile says now: the ClusterSummary has it, and the
//     hash of the feature is another one than before the change, unless the change leads back to what Sveltos has worked on before.
//   - Services that were Deployed stay so while Sveltos works on others, or fails with others.
//   - One service that can't be expressed keeps its entry in the profile as it is; the others go on.
//   - Services go in the reverse order of their dependencies, also when the whole set goes: the profile shrinks service by
//     service. What another set of the cluster lists stays in the profile until that set's profile has it too.
//   - A profile of that name which somebody else has made, such as another operator or framework, is not touched: the error says whose
//     it is. One of a former name is taken over as it is.
//
// # Permissions
//
// profiles, clusterprofiles: get, list, watch, create, patch, delete. clustersummaries: get, list, watch. sveltosclusters:
// get, create, patch. configmaps, and what else values templates are filled with: get.
package sveltos
