package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DefaultStateManagementProvider is the name of the provider of services that name none.
const DefaultStateManagementProvider = "native"

// StateManagementProvider makes a state manager known: something that carries ServiceSets out.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=smp
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Suspended",type=boolean,JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type StateManagementProvider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec StateManagementProviderSpec `json:"spec"`
	// +optional
	Status StateManagementProviderStatus `json:"status,omitempty"`
}

// StateManagementProviderSpec says which ServiceSets are the provider's.
type StateManagementProviderSpec struct {
	// Selector is the labels by which the state manager selects its ServiceSets. Every ServiceSet of the provider gets labels
	// that fit: all of matchLabels, and of matchExpressions the smallest value of each In, and "true" for each Exists.
	//
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && self.matchLabels.size() > 0 || has(self.matchExpressions) && self.matchExpressions.exists(e, e.operator == 'In' || e.operator == 'Exists')",message="the selector has to ask for a label, else the state manager would take the service sets of all providers: set matchLabels"
	Selector metav1.LabelSelector `json:"selector"`
	// Suspend lets everything stand as it is: the state manager does nothing.
	//
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// StateManagementProviderStatus is whether the state manager works. The state manager writes it.
type StateManagementProviderStatus struct {
	// ObservedGeneration is the generation that the status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Ready: whether the state manager can work.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// StateManagementProviderList is a list of StateManagementProviders.
//
// +kubebuilder:object:root=true
type StateManagementProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []StateManagementProvider `json:"items"`
}
