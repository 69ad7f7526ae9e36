package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MultiClusterService is services for all clusters with certain labels.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=mcs
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Clusters",type=string,JSONPath=`.status.clustersDeployed`
// +kubebuilder:printcolumn:name="Blocked",type=string,JSONPath=`.status.conditions[?(@.type=="Blocked")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Priority",type=integer,priority=1,JSONPath=`.spec.serviceSpec.priority`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="has(self.spec.clusterSelector) || has(self.spec.serviceSpec) && has(self.spec.serviceSpec.provider) && has(self.spec.serviceSpec.provider.selfManagement) && self.spec.serviceSpec.provider.selfManagement",message="no cluster would get these services: set clusterSelector ({} selects every cluster), or serviceSpec.provider.selfManagement",fieldPath=".spec"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.dependsOn) || !(self.metadata.name in self.spec.dependsOn)",message="a MultiClusterService can't depend on itself: remove it from its dependsOn",fieldPath=".spec.dependsOn"
// +kubebuilder:validation:XValidation:rule="(has(self.spec) && has(self.spec.serviceSpec) && has(self.spec.serviceSpec.provider) && has(self.spec.serviceSpec.provider.name) && self.spec.serviceSpec.provider.name.size() > 0 ? self.spec.serviceSpec.provider.name : 'native') == (has(oldSelf.spec) && has(oldSelf.spec.serviceSpec) && has(oldSelf.spec.serviceSpec.provider) && has(oldSelf.spec.serviceSpec.provider.name) && oldSelf.spec.serviceSpec.provider.name.size() > 0 ? oldSelf.spec.serviceSpec.provider.name : 'native') || has(self.status) && has(self.status.conditions) && self.status.conditions.exists(c, c.type == 'Blocked' && c.status == 'True' && c.reason in ['Invalid', 'ProviderMissing'])",message="the provider's name can't change once it is set: delete this object and create another one (without a name, it is native)",fieldPath=".spec.serviceSpec.provider.name"
type MultiClusterService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec MultiClusterServiceSpec `json:"spec"`
	// +optional
	Status MultiClusterServiceStatus `json:"status,omitempty"`
}

// MultiClusterServiceSpec is the services and the clusters that should have them.
type MultiClusterServiceSpec struct {
	// ClusterSelector selects ClusterDeployments of all namespaces by their labels. None selects no cluster, an empty one
	// selects every cluster.
	//
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// DependsOn are the names of the MultiClusterServices that come before this one. On a cluster, its services wait until all
	// that those list there run, and are taken away before theirs. One that has nothing on a cluster holds nothing up there.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	DependsOn []string `json:"dependsOn,omitempty"`
	// ServiceSpec is the services.
	//
	// +optional
	ServiceSpec ServiceSpec `json:"serviceSpec,omitempty"`
}

// MultiClusterServiceStatus is how far the services are on all clusters.
type MultiClusterServiceStatus struct {
	// ObservedGeneration is the generation that the status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Ready, Progressing and Blocked, of the services on all clusters; and Planned while the operator only
	// plans for the MultiClusterService.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ClustersDeployed is on how many clusters all services run in the desired version, and how many should have them, for
	// people: "2/3".
	//
	// +optional
	ClustersDeployed string `json:"clustersDeployed,omitempty"`
	// Clusters are the clusters that should have the services, and those that still have some of them though they should
	// not, by namespace and name. The management cluster comes first.
	//
	// +optional
	// +listType=atomic
	Clusters []ClusterServicesStatus `json:"clusters,omitempty"`
	// ServicesUpgradePaths are the versions that every one of the clusters can be upgraded to. Where the clusters have
	// different templates of a service, or different ways, its Template is empty, or its paths say only where they lead.
	// Services with nowhere to go are left out.
	//
	// +optional
	// +listType=atomic
	ServicesUpgradePaths []ServiceUpgradePaths `json:"servicesUpgradePaths,omitempty"`
}

// ClusterServicesStatus is how far the services of a MultiClusterService are on one cluster.
type ClusterServicesStatus struct {
	// Namespace is the namespace of the ClusterDeployment. It is empty for the management cluster.
	//
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Name is the name of the ClusterDeployment. It is empty for the management cluster.
	//
	// +optional
	Name string `json:"name,omitempty"`
	// ServiceSet is the name of the ServiceSet.
	ServiceSet string `json:"serviceSet"`
	// Desired is how many services the cluster should have, disabled ones not counted.
	Desired int32 `json:"desired"`
	// Deployed is how many of them run in the desired version.
	Deployed int32 `json:"deployed"`
	// Message says what holds services up. It is empty when nothing does.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// MultiClusterServiceList is a list of MultiClusterServices.
//
// +kubebuilder:object:root=true
type MultiClusterServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []MultiClusterService `json:"items"`
}
