package v1alpha1

// ServiceUpgradePaths is where a service can go from the template that it has.
type ServiceUpgradePaths struct {
	// Name is the name of the service.
	Name string `json:"name"`
	// Namespace is the namespace of the service.
	Namespace string `json:"namespace"`
	// Template is the template that the paths begin at. It is not part of them.
	Template string `json:"template"`
	// AvailableUpgrades are the paths, one to each template that can be reached, shorter ones first: the one that is taken
	// when that template is desired. A status has only the shortest ones of very long chains.
	//
	// +optional
	// +listType=atomic
	AvailableUpgrades []UpgradePath `json:"availableUpgrades,omitempty"`
}

// UpgradePath is a way through a ServiceTemplateChain, a step at a time.
type UpgradePath struct {
	// Versions are the steps, in the order in which they are taken. The last one is where the path leads.
	//
	// +listType=atomic
	Versions []AvailableUpgrade `json:"versions"`
}

// AvailableUpgrade is a template that can be taken next.
type AvailableUpgrade struct {
	// Name is the name of a ServiceTemplate.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Version is the version that the template stands for. In a chain, the default is the template's own.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Version string `json:"version,omitempty"`
}
