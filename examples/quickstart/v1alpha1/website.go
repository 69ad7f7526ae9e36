package v1alpha1

import (
	"embed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the API.
var GroupVersion = schema.GroupVersion{Group: "examples.operatorkit.io", Version: "v1alpha1"}

// VersionLabel is the label that says which version of the operator's logic renders a Website: "v1" or "v2".
const VersionLabel = "examples.operatorkit.io/version"

// Website is a page that wants to be served.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=site
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Title",type=string,JSONPath=`.spec.title`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.metadata.labels.examples\.operatorkit\.io/version`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec WebsiteSpec `json:"spec"`
	// +optional
	Status WebsiteStatus `json:"status,omitempty"`
}

// WebsiteSpec is what the owner of a Website wants.
type WebsiteSpec struct {
	// Title is the heading of the page.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	Title string `json:"title"`
	// Text is what the page says below the heading.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=10000
	Text string `json:"text,omitempty"`
}

// WebsiteStatus is what the operator says of a Website.
type WebsiteStatus struct {
	// ObservedGeneration is the generation of the spec that the status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Ready, and Reconciling or Stalled while the Website is not.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Page is the name of the ConfigMap with the page.
	//
	// +optional
	Page string `json:"page,omitempty"`
}

// WebsiteList is a list of Websites.
//
// +kubebuilder:object:root=true
type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Website `json:"items"`
}

// AddToScheme registers the types of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Website{}, &WebsiteList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// CRDs holds the custom resource definition that is generated from the types of this package.
//
//go:embed crd/*.yaml
var CRDs embed.FS
