package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/operator/serviceprovider"
)

// Postgres is a database that somebody orders.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=postgreses,shortName=pg
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.status.host`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$')",message="the name becomes that of a Service: at most 40 letters, digits and '-', and a letter first"
type Postgres struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PostgresSpec `json:"spec"`
	// +optional
	PostgresStatus `json:"status,omitempty"`
}

// PostgresSpec is what is ordered.
type PostgresSpec struct {
	// Version is the major version: one of those that the provider offers.
	//
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]*$`
	Version string `json:"version"`
	// StorageGiB is how large the disk is. It does not change.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the disk of a database does not change: order another one, and move the data"
	StorageGiB int32 `json:"storageGiB,omitempty"`
}

// PostgresStatus is how the database is.
type PostgresStatus struct {
	serviceprovider.CommonStatus `json:",inline"`
	// Host is the name by which the database is reached in the workload cluster.
	//
	// +optional
	Host string `json:"host,omitempty"`
	// Image is what runs.
	//
	// +optional
	Image string `json:"image,omitempty"`
}

// GetStatus implements serviceprovider.Status.
func (s *PostgresStatus) GetStatus() any { return s }

// PostgresList is a list of Postgreses.
//
// +kubebuilder:object:root=true
type PostgresList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Postgres `json:"items"`
}
