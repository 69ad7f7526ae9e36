package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HelmAction is what is done with a Helm chart.
//
// +kubebuilder:validation:Enum=Install;Uninstall
type HelmAction string

// The actions. No action means HelmActionInstall.
const (
	HelmActionInstall   HelmAction = "Install"
	HelmActionUninstall HelmAction = "Uninstall"
)

// ServiceHelmOptions are options of Helm. What is not set is left to the state manager: the defaults here are those of native.
type ServiceHelmOptions struct {
	// Wait waits until the objects of the release are ready. Default: true.
	//
	// +optional
	Wait *bool `json:"wait,omitempty"`
	// WaitForJobs waits until the jobs of the release are complete. Default: false.
	//
	// +optional
	WaitForJobs *bool `json:"waitForJobs,omitempty"`
	// Timeout limits each hook, and the time until the objects have to be healthy. Default: that of the state manager (native: 5m).
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="write a time such as 30s or 1h30m, of 0s or more"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// Atomic takes back an operation that failed. Default: false.
	//
	// +optional
	Atomic *bool `json:"atomic,omitempty"`
	// CreateNamespace creates the namespace of the release. Default: true. The namespace stays when the service goes.
	//
	// +optional
	CreateNamespace *bool `json:"createNamespace,omitempty"`
	// SkipCRDs leaves out the custom resource definitions of the chart. Default: false.
	//
	// +optional
	SkipCRDs *bool `json:"skipCRDs,omitempty"`
	// DisableHooks runs no hooks. Default: false.
	//
	// +optional
	DisableHooks *bool `json:"disableHooks,omitempty"`
	// DisableOpenAPIValidation does not check the objects against the cluster's schemas. With native it asks API servers not to be strict
	// about fields, and a field that a kind does not have stays an error. Default: false.
	//
	// +optional
	DisableOpenAPIValidation *bool `json:"disableOpenAPIValidation,omitempty"`
	// SkipSchemaValidation does not check the values against the chart's schema. Default: false.
	//
	// +optional
	SkipSchemaValidation *bool `json:"skipSchemaValidation,omitempty"`
	// DependencyUpdate fetches the charts that the chart depends on, with sveltos. With native it has no effect: a chart contains what it
	// depends on.
	//
	// +optional
	DependencyUpdate *bool `json:"dependencyUpdate,omitempty"`
	// Replace takes the name of somebody else's release that is uninstalled. Default: false.
	//
	// +optional
	Replace *bool `json:"replace,omitempty"`
	// Labels are put on the release.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`
	// Description is put on the release.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Description string `json:"description,omitempty"`
}
