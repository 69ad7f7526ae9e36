package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterRequest asks for a cluster. The scheduler binds it to one of the platform's Clusters.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=clr,categories=clusters
// +kubebuilder:printcolumn:name="Purpose",type=string,JSONPath=`.spec.purpose`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.status.clusterRef.name`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Granted")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Granted")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.clusterRef) || has(self.status) && has(self.status.clusterRef) && self.status.clusterRef == oldSelf.status.clusterRef",message="the cluster of a ClusterRequest does not change",fieldPath=".status.clusterRef"
type ClusterRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterRequestSpec `json:"spec"`
	// +optional
	Status ClusterRequestStatus `json:"status,omitempty"`
}

// ClusterRequestSpec is what kind of cluster is asked for. It does not change: to get another cluster, make another request.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a ClusterRequest does not change: delete it and make another one"
type ClusterRequestSpec struct {
	// Purpose is what the cluster has to be for.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Purpose string `json:"purpose"`
	// Selector chooses clusters by their labels. Without one, all of the purpose will do.
	//
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// ClusterRequestStatus is which cluster the request has.
type ClusterRequestStatus struct {
	// ObservedGeneration is the generation that the status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Phase is Pending, Granted or Denied.
	//
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// ClusterRef is the Cluster of the platform, once the request is granted. It does not change after that.
	//
	// +optional
	ClusterRef *LocalObjectReference `json:"clusterRef,omitempty"`
	// Conditions are Granted, which says why when it is not so.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClusterRequestList is a list of ClusterRequests.
//
// +kubebuilder:object:root=true
type ClusterRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterRequest `json:"items"`
}
