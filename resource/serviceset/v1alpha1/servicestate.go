package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ServicePhase is where a service is between not being there and being gone.
//
// +kubebuilder:validation:Enum=Pending;Provisioning;Deployed;Failed;Deleting;Deleted
type ServicePhase string

// The states of a service.
const (
	// ServiceStatePending is a service that the state manager has not begun with.
	ServiceStatePending ServicePhase = "Pending"
	// ServiceStateProvisioning is a service that is being installed or changed.
	ServiceStateProvisioning ServicePhase = "Provisioning"
	// ServiceStateDeployed is a service that runs.
	ServiceStateDeployed ServicePhase = "Deployed"
	// ServiceStateFailed is a service that could not be installed or changed, or that stopped to run.
	ServiceStateFailed ServicePhase = "Failed"
	// ServiceStateDeleting is a service that is being taken away.
	ServiceStateDeleting ServicePhase = "Deleting"
	// ServiceStateDeleted is a service that is gone. No state at all means the same.
	ServiceStateDeleted ServicePhase = "Deleted"
)

// Done returns the state of a service that is as the entry asks for: Deployed, or Deleted where it is to be uninstalled. That of no entry is
// Deployed.
func (s *ServiceWithValues) Done() ServicePhase {
	if s != nil && s.HelmAction == HelmActionUninstall {
		return ServiceStateDeleted
	}
	return ServiceStateDeployed
}

// ServiceType is what a service is made of.
//
// +kubebuilder:validation:Enum=Helm;Kustomize;Resource
type ServiceType string

// The types of services.
const (
	ServiceTypeHelm      ServiceType = "Helm"
	ServiceTypeKustomize ServiceType = "Kustomize"
	ServiceTypeResource  ServiceType = "Resource"
)

// ServiceState is the state of one service on one cluster, as a state manager reports it.
type ServiceState struct {
	// Name is the name of the service.
	//
	// +kubebuilder:validation:MaxLength=53
	Name string `json:"name"`
	// Namespace is the namespace of the service.
	//
	// +optional
	// +kubebuilder:default=default
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// Type is what the service is made of.
	//
	// +optional
	Type ServiceType `json:"type,omitempty"`
	// Template is the ServiceTemplate that State is about. A template that is not reported counts as the one in the
	// ServiceSet.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Template string `json:"template,omitempty"`
	// Version is the version that State is about. A version that is not reported counts as the one in the ServiceSet if
	// the template is the same.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Version string `json:"version,omitempty"`
	// State is the state of the service.
	State ServicePhase `json:"state"`
	// FailureMessage says why the service failed, in the first line a person needs.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	FailureMessage string `json:"failureMessage,omitempty"`
	// LastStateTransitionTime is when State changed last.
	//
	// +optional
	LastStateTransitionTime *metav1.Time `json:"lastStateTransitionTime,omitempty"`
	// LastDeployed is what was seen Deployed last. A service that failed may go back to it.
	//
	// +optional
	LastDeployed *LastDeployed `json:"lastDeployed,omitempty"`
	// FailedAttempts is how often it was tried in vain to put the service there as it should be, where maxAttempts limits that.
	//
	// +optional
	FailedAttempts *FailedAttempts `json:"failedAttempts,omitempty"`
	// Conditions tell more about the service.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ServiceVersion is a template and the version that it stands for.
type ServiceVersion struct {
	// Template is the name of a ServiceTemplate.
	//
	// +kubebuilder:validation:MaxLength=253
	Template string `json:"template"`
	// Version is the version.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Version string `json:"version,omitempty"`
}

// FailedAttempts is how often something was tried in vain.
type FailedAttempts struct {
	// Count is how often.
	Count int32 `json:"count"`
	// Of stands for what was tried: attempts for something else are counted anew.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Of string `json:"of,omitempty"`
}

// LastDeployed is what was Deployed last.
type LastDeployed struct {
	ServiceVersion `json:",inline"`
	// Fingerprint identifies the configuration that was Deployed, values included, without telling them. It is the state
	// manager's own: with it, a passing error is told from something that has to be deployed again.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Fingerprint string `json:"fingerprint,omitempty"`
}
