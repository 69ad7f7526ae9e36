package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Cluster is a cluster of the platform: what it is for, and how the platform manages it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=clusters
// +kubebuilder:printcolumn:name="Purposes",type=string,JSONPath=`.spec.purposes`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Requests",type=integer,JSONPath=`.status.requests`
// +kubebuilder:printcolumn:name="Capacity",type=integer,JSONPath=`.spec.capacity`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ClusterSpec `json:"spec"`
	// +optional
	Status ClusterStatus `json:"status,omitempty"`
}

// ClusterSpec is what a cluster is for, and how it is managed.
type ClusterSpec struct {
	// Purposes are what the cluster may be used for, such as "mcp" or "workload": a ClusterRequest names one of them.
	//
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Purposes []string `json:"purposes"`
	// Capacity is how many ClusterRequests may have the cluster at the same time. With 0 it takes no new ones; those that
	// have it keep it. Without a capacity there is no limit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Capacity *int32 `json:"capacity,omitempty"`
	// Kubeconfig is the entry of a Secret, in the namespace of the Cluster, with which the granter manages access. It has to
	// be allowed there what it grants, and to manage service accounts, their tokens, roles and their bindings.
	Kubeconfig KubeconfigReference `json:"kubeconfig"`
	// OIDCIssuers are those whose tokens the API server of the cluster accepts, and which AccessRequests may name.
	//
	// +optional
	// +listType=map
	// +listMapKey=url
	// +kubebuilder:validation:MaxItems=16
	OIDCIssuers []OIDCIssuer `json:"oidcIssuers,omitempty"`
}

// KubeconfigReference names an entry of a Secret that holds a kubeconfig.
type KubeconfigReference struct {
	// SecretName is the name of the Secret.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`
	// Key is the entry.
	//
	// +optional
	// +kubebuilder:default=kubeconfig
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// ClusterStatus is how a cluster is.
type ClusterStatus struct {
	// ObservedGeneration is the generation that the status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Ready: whether the cluster answers.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Requests is how many ClusterRequests have the cluster.
	//
	// +optional
	Requests int32 `json:"requests,omitempty"`
}

// ClusterList is a list of Clusters.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Cluster `json:"items"`
}
