package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterDeployment is a cluster, and the services that it should have.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName={cd,clusterd}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Services",type=string,JSONPath=`.status.servicesDeployed`
// +kubebuilder:printcolumn:name="Blocked",type=string,JSONPath=`.status.conditions[?(@.type=="Blocked")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Priority",type=integer,priority=1,JSONPath=`.spec.serviceSpec.priority`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a cluster's name is at most 63 lower-case letters, digits and '-'"
// +kubebuilder:validation:XValidation:rule="!self.metadata.name.matches('^management-[0-9a-f]{16}$')",message="names like this one belong to the service sets of the management cluster: choose another name"
// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.serviceSpec) || !has(self.spec.serviceSpec.provider) || !has(self.spec.serviceSpec.provider.selfManagement) || !self.spec.serviceSpec.provider.selfManagement",message="selfManagement is for services of the management cluster, which a MultiClusterService lists: leave it out here",fieldPath=".spec.serviceSpec.provider.selfManagement"
// +kubebuilder:validation:XValidation:rule="(has(self.spec) && has(self.spec.serviceSpec) && has(self.spec.serviceSpec.provider) && has(self.spec.serviceSpec.provider.name) && self.spec.serviceSpec.provider.name.size() > 0 ? self.spec.serviceSpec.provider.name : 'native') == (has(oldSelf.spec) && has(oldSelf.spec.serviceSpec) && has(oldSelf.spec.serviceSpec.provider) && has(oldSelf.spec.serviceSpec.provider.name) && oldSelf.spec.serviceSpec.provider.name.size() > 0 ? oldSelf.spec.serviceSpec.provider.name : 'native') || has(self.status) && has(self.status.conditions) && self.status.conditions.exists(c, c.type == 'Blocked' && c.status == 'True' && c.reason in ['Invalid', 'ProviderMissing'])",message="the provider's name can't change once it is set: delete this object and create another one (without a name, it is native)",fieldPath=".spec.serviceSpec.provider.name"
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
	// Conditions are Ready, Progressing and Blocked, of the services that the cluster lists itself; and Planned while the
	// operator only plans for it.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ServicesDeployed is how many of the services that the cluster lists itself run in the desired version, and how many
	// there are, for people: "5/6". Disabled services do not count.
	//
	// +optional
	ServicesDeployed string `json:"servicesDeployed,omitempty"`
	// Services are the services that the cluster lists itself, and those that are being removed, by namespace and name.
	// Their conditions are those of the state manager, and Ready, Progressing and Blocked, the latter two while they are
	// True.
	//
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=2000
	Services []ServiceState `json:"services,omitempty"`
	// ServiceSets are the ServiceSets of the cluster, whoever owns them, by name.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	ServiceSets []ServiceSetSummary `json:"serviceSets,omitempty"`
	// ServicesUpgradePaths are the versions that services which the cluster lists itself can be upgraded to, from the
	// templates in the ServiceSet. Services with nowhere to go are left out.
	//
	// +optional
	// +listType=atomic
	ServicesUpgradePaths []ServiceUpgradePaths `json:"servicesUpgradePaths,omitempty"`
}

// ServiceSetSummary is how far the services of one owner are on a cluster.
type ServiceSetSummary struct {
	// Name is the name of the ServiceSet. It may not exist, if nothing can be resolved.
	Name string `json:"name"`
	// MultiClusterService is the name of the owner. It is empty for the cluster's own.
	//
	// +optional
	MultiClusterService string `json:"multiClusterService,omitempty"`
	// ObservedGeneration is the generation of the owner that this is about. It is not set for an owner that is gone.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Desired is how many services the cluster should have, disabled ones not counted.
	Desired int32 `json:"desired"`
	// Deployed is how many of them run in the desired version.
	Deployed int32 `json:"deployed"`
	// Progressing tells that something changes by itself.
	//
	// +optional
	Progressing bool `json:"progressing,omitempty"`
	// Blocked tells that something will not change before a person acts.
	//
	// +optional
	Blocked bool `json:"blocked,omitempty"`
	// Reason is a reason of the condition Blocked if that is so, else of Progressing, else of Ready.
	//
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message says what holds services up. It is empty when nothing does.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// ClusterDeploymentList is a list of ClusterDeployments.
//
// +kubebuilder:object:root=true
type ClusterDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterDeployment `json:"items"`
}
