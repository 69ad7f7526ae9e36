package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterDeployment is a cluster, and the services that it should have.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={cd,clusterd}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Blocked",type=string,JSONPath=`.status.conditions[?(@.type=="Blocked")].reason`
// +kubebuilder:printcolumn:name="Priority",type=integer,priority=1,JSONPath=`.spec.serviceSpec.priority`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a cluster's name is at most 63 lower-case letters, digits and '-'"
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.matches('^management-[0-9a-f]{16}$')",message="names like this one belong to the service sets of the management cluster: choose another name"
// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.serviceSpec) || !has(self.spec.serviceSpec.provider) || !has(self.spec.serviceSpec.provider.selfManagement) || !self.spec.serviceSpec.provider.selfManagement",message="selfManagement is for services of the management cluster, which a MultiClusterService lists: leave it out here",fieldPath=".spec.serviceSpec.provider.selfManagement"
type ClusterDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec ClusterDeploymentSpec `json:"spec,omitempty"`
	// +optional
	Status ClusterDeploymentStatus `json:"status,omitempty"`
}

// ClusterDeploymentSpec is the cluster and what should run on it.
type ClusterDeploymentSpec struct {
	// Kubeconfig is the entry of a Secret, in the namespace of the ClusterDeployment, with which the cluster is reached.
	//
	// +optional
	Kubeconfig KubeconfigReference `json:"kubeconfig,omitempty"`
	// ServiceSpec is the services of the cluster.
	//
	// +optional
	ServiceSpec ServiceSpec `json:"serviceSpec,omitempty"`
}

// KubeconfigReference names an entry of a Secret that holds a kubeconfig. The defaults are those of Cluster API.
type KubeconfigReference struct {
	// SecretName is the name of the Secret. The default is the name of the cluster with "-kubeconfig" after it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`
	// Key is the entry. The default is "value".
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// ClusterDeploymentStatus is how far the services of a cluster are.
type ClusterDeploymentStatus struct {
	// ObservedGeneration is the generation that the status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Ready, Progressing and Blocked.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Services are the services with their states.
	//
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=2000
	Services []ServiceState `json:"services,omitempty"`
	// ServicesUpgradePaths are the versions that the services can be upgraded to.
	//
	// +optional
	// +listType=atomic
	ServicesUpgradePaths []ServiceUpgradePaths `json:"servicesUpgradePaths,omitempty"`
}

// ClusterDeploymentList is a list of ClusterDeployments.
//
// +kubebuilder:object:root=true
type ClusterDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterDeployment `json:"items"`
}
