package v1alpha1

import (
	"embed"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the API.
var GroupVersion = schema.GroupVersion{Group: "databases.operatorkit.io", Version: "v1alpha1"}

// VersionLabel is the label that says which version of the operator's logic looks after a Database. "v2" adds a service of the replicas that
// are read only; everything else is "v1".
const VersionLabel = "databases.operatorkit.io/version"

// Database is a PostgreSQL with replicas, backups and names of its own.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=db
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DatabaseSpec `json:"spec"`
	// +optional
	Status DatabaseStatus `json:"status,omitempty"`
}

// DatabaseSpec is what the owner of a Database wants.
type DatabaseSpec struct {
	// Version is that of PostgreSQL.
	//
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?$`
	Version string `json:"version"`
	// Replicas is how many there are of it.
	//
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// Storage is how much each replica may keep. That of replicas which are there already stays as it is.
	//
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^\+?([0-9]{1,19}(\.[0-9]{0,9})?|\.[0-9]{1,9})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
	Storage resource.Quantity `json:"storage"`
	// Password is the name of a Secret, of which the key "password" is that of the administrator.
	//
	// +kubebuilder:validation:MinLength=1
	Password string `json:"password"`
	// Backup is when backups are made, as cron(8) has it. Without one there are none.
	//
	// +optional
	Backup string `json:"backup,omitempty"`
}

// DatabaseStatus is what the operator says of a Database.
type DatabaseStatus struct {
	// ObservedGeneration is the generation of the spec that the status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Ready, and Reconciling or Stalled while the Database is not.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ReadyReplicas is how many replicas answer.
	//
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
	// Hosts are the names that lead to the Database, in the zone of the operator. A controller that keeps no journal elsewhere has to write
	// a name here before it makes the record.
	//
	// +optional
	// +listType=atomic
	Hosts []string `json:"hosts,omitempty"`
}

// DatabaseList is a list of Databases.
//
// +kubebuilder:object:root=true
type DatabaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Database `json:"items"`
}

// AddToScheme registers the types of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Database{}, &DatabaseList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// CRDs holds the custom resource definition that is generated from the types of this package.
//
//go:embed crd/*.yaml
var CRDs embed.FS
