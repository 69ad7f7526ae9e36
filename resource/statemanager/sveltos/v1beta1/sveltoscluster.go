package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SveltosCluster is a cluster that Sveltos reaches by a kubeconfig in a Secret of its namespace.
//
// +kubebuilder:object:root=true
type SveltosCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SveltosClusterSpec   `json:"spec,omitempty"`
	Status SveltosClusterStatus `json:"status,omitempty"`
}

// SveltosClusterList is a list of SveltosClusters.
//
// +kubebuilder:object:root=true
type SveltosClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SveltosCluster `json:"items"`
}

// SveltosClusterSpec names the kubeconfig.
type SveltosClusterSpec struct {
	KubeconfigName    string `json:"kubeconfigName,omitempty"`
	KubeconfigKeyName string `json:"kubeconfigKeyName,omitempty"`
}

// SveltosClusterStatus tells whether Sveltos reaches the cluster.
type SveltosClusterStatus struct {
	Ready            bool    `json:"ready,omitempty"`
	ConnectionStatus string  `json:"connectionStatus,omitempty"`
	FailureMessage   *string `json:"failureMessage,omitempty"`
}
