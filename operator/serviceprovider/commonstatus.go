package serviceprovider

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// CommonStatus is the part of the status that all API types have. Embedded into the status of an API type, and that one into
// the type, it makes the type implement Status:
//
//	type Postgres struct {
//		metav1.TypeMeta   `json:",inline"`
//		metav1.ObjectMeta `json:"metadata,omitempty"`
//		Spec              PostgresSpec `json:"spec"`
//		PostgresStatus    `json:"status,omitempty"`
//	}
//
//	type PostgresStatus struct {
//		serviceprovider.CommonStatus `json:",inline"`
//		Endpoint                     string `json:"endpoint,omitempty"`
//	}
//
// The name in the tag makes it the field status in JSON and in the custom resource definition, as it should be.
//
// +kubebuilder:object:generate=true
type CommonStatus struct {
	// ObservedGeneration is the generation that the status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Phase is Ready, Progressing or Terminating.
	//
	// +optional
	Phase string `json:"phase,omitempty"`
	// Conditions are Ready, which says what is missing when it is not True, and others.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// GetStatus implements Status. A status that has more fields replaces it by a method that returns itself.
func (s *CommonStatus) GetStatus() any { return s }

// GetConditions implements Status.
func (s *CommonStatus) GetConditions() *[]metav1.Condition { return &s.Conditions }

// SetPhase implements Status.
func (s *CommonStatus) SetPhase(phase string) { s.Phase = phase }

// SetObservedGeneration implements Status.
func (s *CommonStatus) SetObservedGeneration(generation int64) { s.ObservedGeneration = generation }
