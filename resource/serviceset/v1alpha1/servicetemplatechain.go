package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ServiceTemplateChain says from which template a service may be upgraded to which. It is a graph: a template may have
// several upgrades, and may be reached from several others. Downgrades are upgrades to a lower version. A template stands for one version,
// which is written in the same way wherever it is listed.
//
// A chain may change at any time. A service goes on from where it is, along what the chain says then.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=stc
// +kubebuilder:printcolumn:name="Valid",type=string,JSONPath=`.status.conditions[?(@.type=="Valid")].status`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Valid")].message`
// +kubebuilder:printcolumn:name="Templates",type=string,priority=1,JSONPath=`.spec.supportedTemplates[*].name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ServiceTemplateChain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ServiceTemplateChainSpec `json:"spec"`
	// +optional
	Status ServiceTemplateChainStatus `json:"status,omitempty"`
}

// ServiceTemplateChainStatus is whether the chain can be used.
type ServiceTemplateChainStatus struct {
	// ObservedGeneration is the generation that the status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Valid: whether the chain can be used. One that contradicts itself can't.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ServiceTemplateChainSpec is the templates and the ways between them.
//
// +kubebuilder:validation:XValidation:rule="[self.supportedTemplates.map(t, t.name)].all(names, self.supportedTemplates.all(t, !has(t.availableUpgrades) || t.availableUpgrades.all(u, u.name in names)))",message="every template in availableUpgrades has to be listed in supportedTemplates too, if only by its name"
// +kubebuilder:validation:XValidation:rule="[self.supportedTemplates.map(t, has(t.availableUpgrades) ? t.availableUpgrades.transformMapEntry(i, u, has(u.version) && size(u.version) > 0, {u.name: u.version}) : {})].all(said, [self.supportedTemplates.transformMapEntry(i, t, {t.name: said.filter(m, t.name in m).map(m, m[t.name])})].all(versions, self.supportedTemplates.all(t, !has(t.availableUpgrades) || t.availableUpgrades.all(u, !has(u.version) || size(u.version) == 0 || !(u.name in versions) || versions[u.name][0] == u.version))))",message="the chain contradicts itself: a template in availableUpgrades has to have the same version wherever it is listed, written in the same way"
type ServiceTemplateChainSpec struct {
	// SupportedTemplates are the templates of the chain.
	//
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	SupportedTemplates []SupportedTemplate `json:"supportedTemplates"`
}

// SupportedTemplate is a template of a chain, and where it leads.
//
// +kubebuilder:validation:XValidation:rule="!has(self.availableUpgrades) || self.availableUpgrades.all(u, u.name != self.name)",message="a template can't be an upgrade of itself",fieldPath=".availableUpgrades"
type SupportedTemplate struct {
	// Name is the name of a ServiceTemplate in the namespace of the chain.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// AvailableUpgrades are the templates that can be taken next.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	AvailableUpgrades []AvailableUpgrade `json:"availableUpgrades,omitempty"`
}

// ServiceTemplateChainList is a list of ServiceTemplateChains.
//
// +kubebuilder:object:root=true
type ServiceTemplateChainList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ServiceTemplateChain `json:"items"`
}
