// Package v1alpha1 holds the API of access to clusters: which clusters there are, who wants one, and who may do what there.
// All its objects live on the platform cluster.
//
// A platform team lists its clusters. A [Cluster] says what it is for and holds the credentials by which the platform
// manages it:
//
//	apiVersion: clusters.operatorkit.io/v1alpha1
//	kind: Cluster
//	metadata: {name: workload-1, namespace: operatorkit-clusters, labels: {region: eu}}
//	spec:
//	  purposes: [workload]
//	  capacity: 20
//	  kubeconfig: {secretName: workload-1-admin}
//
// Who needs a cluster asks for one by a [ClusterRequest], which a scheduler binds to a Cluster with room, and for credentials
// by an [AccessRequest], which a granter answers with a kubeconfig in a Secret. Each service provider has a namespace for what it asks and
// gets, which says who asks; that of the Clusters is the platform's own (see package clusteraccess/namespaces):
//
//	apiVersion: clusters.operatorkit.io/v1alpha1
//	kind: AccessRequest
//	metadata: {name: database-a, namespace: provider-postgres}
//	spec:
//	  requestRef: {name: database-a}
//	  permissions:
//	  - namespace: databases
//	    rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list, create, patch, delete]}]
//	status:
//	  phase: Granted
//	  secretRef: {name: database-a-kubeconfig}
//	  expirationTime: "2030-01-01T13:00:00Z"
//
// Package clusteraccess has the scheduler, the granter, and what a service provider uses to ask.
//
// The custom resource definitions (see [CRDs]) refuse what a single object shows to be wrong, with a sentence that says how
// to mend it.
//
// +kubebuilder:object:generate=true
// +groupName=clusters.operatorkit.io
package v1alpha1
