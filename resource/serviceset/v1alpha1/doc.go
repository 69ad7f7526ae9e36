// Package v1alpha1 holds the API of service sets: which services run on which cluster, in which order and version.
//
// A person writes four kinds. A [ServiceTemplate] is one version of a service, and never changes. A
// [ServiceTemplateChain] says from which template a service may be upgraded to which. A [ClusterDeployment] is a cluster
// with the services that it should have; a [MultiClusterService] is services for all clusters with certain labels.
//
//	apiVersion: services.operatorkit.io/v1alpha1
//	kind: ClusterDeployment
//	metadata: {name: prod, namespace: platform}
//	spec:
//	  serviceSpec:
//	    services:
//	    - {name: cert-manager, template: cert-manager-1-17-1, templateChain: cert-manager}
//	    - {name: ingress, template: ingress-4-12-0, dependsOn: [{name: cert-manager}]}
//
// Beside its values, a service may say what they are made of, and how it stands to what is on the cluster:
//
//	services:
//	- name: shop
//	  template: shop-2-0-0
//	  values: "region: {{ .Cluster.metadata.labels.region }}"
//	  valuesTemplate: {}                                        # values are a template over the cluster's data
//	  valuesFrom:
//	  - {kind: Secret, name: shop-db, key: password, targetPath: db.password}
//	  - {kind: ConfigMap, name: shop-extra, optional: true}
//	  adopt: true                                               # there may be a release of Helm or Flux
//	  serviceAccountName: shop                                  # with these rights on the cluster
//	  patches:                                                  # what values can't say
//	  - {target: {kind: Deployment}, patch: "spec: {template: {spec: {priorityClassName: shop}}}"}
//	  healthCheckExprs:                                         # a kind of its own
//	  - {apiVersion: example.com/v1, kind: Shop, current: "status.phase == 'Open'"}
//	  ignoreDifferences:
//	  - {kind: Deployment, jsonPointers: [/spec/replicas]}      # an autoscaler sets them
//	  maxAttempts: 5
//
// The operator writes a [ServiceSet] for each cluster and owner: the services that the cluster gets now. A state manager,
// which a [StateManagementProvider] makes known, carries it out and reports the state of each service in its status.
//
// # What a state manager owes
//
//   - It reports the template and the version that a state is about, those of the entry that it works on, and in LastDeployed
//     what was Deployed last. A passing error need not change the state.
//   - It reports in ObservedGeneration which generation its states are about. A service whose entry has changed since is not
//     Deployed, whatever its state is.
//   - It says in the conditions Reachable and Suspended of a set when it can't, or must not, carry it out.
//   - It begins with a service only after those that it depends on, and takes it away before them. What is in spec.removing
//     keeps a state until it is gone.
//   - It does not take away what another ServiceSet of the same cluster lists: that is how a service goes from one owner to
//     another without a gap. The sets never ask for different versions of one service.
//
// # Validation
//
// The custom resource definitions (see [CRDs]) refuse what a single object shows to be wrong, with a sentence that says
// how to mend it. What only several objects show (a dependency that is absent, a cycle, a template that does not exist)
// is found by package serviceset and told in conditions. The definitions need Kubernetes 1.33 or newer, because of the rule for
// chains that contradict themselves.
//
// +kubebuilder:object:generate=true
// +groupName=services.operatorkit.io
package v1alpha1
