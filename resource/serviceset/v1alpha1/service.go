package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ServiceSpec is the services that an owner wants on a cluster, and how they get there.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.provider) || !has(oldSelf.provider.name) || oldSelf.provider.name.size() == 0 || has(self.provider) && has(self.provider.name) && self.provider.name == oldSelf.provider.name",message="the provider's name can't change once it is set: delete this object and create another one"
type ServiceSpec struct {
	// Provider is the state manager that carries the services out.
	//
	// +optional
	Provider StateManagementProviderConfig `json:"provider,omitempty"`
	// Services is what should run, in any order. DependsOn says what comes before what.
	//
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1000
	Services []Service `json:"services,omitempty"`
	// Priority decides between owners that want the same service on the same cluster: the higher one gets it. Among equals
	// the older owner does, and among those of the same age the one whose name comes first.
	//
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483646
	Priority int32 `json:"priority,omitempty"`
	// SyncMode says when the state manager puts things right: Continuous (the default) after each change of the services,
	// ContinuousWithDriftDetection after changes on the cluster too, OneTime once, DryRun never: the plan is in the status.
	//
	// +optional
	// +kubebuilder:validation:Enum=OneTime;Continuous;ContinuousWithDriftDetection;DryRun
	SyncMode SyncMode `json:"syncMode,omitempty"`
	// StopOnConflict ends the work on a cluster at the first object that somebody else manages.
	//
	// +optional
	StopOnConflict bool `json:"stopOnConflict,omitempty"`
	// ContinueOnError goes on with the other services when one fails.
	//
	// +optional
	ContinueOnError bool `json:"continueOnError,omitempty"`
	// Reload restarts workloads whose mounted ConfigMaps or Secrets change.
	//
	// +optional
	Reload bool `json:"reload,omitempty"`
}

// SyncMode says when a state manager puts things right.
type SyncMode string

// The sync modes.
const (
	SyncModeOneTime                      SyncMode = "OneTime"
	SyncModeContinuous                   SyncMode = "Continuous"
	SyncModeContinuousWithDriftDetection SyncMode = "ContinuousWithDriftDetection"
	SyncModeDryRun                       SyncMode = "DryRun"
)

// DefaultPriority is the priority of an owner that sets none.
const DefaultPriority = 100

// StateManagementProviderConfig names a state manager and configures it.
type StateManagementProviderConfig struct {
	// Name is the name of a StateManagementProvider. The default is the provider "native".
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// Config is handed to the state manager as it is. Each one documents its own.
	//
	// +optional
	Config *apiextensionsv1.JSON `json:"config,omitempty"`
	// SelfManagement puts the services of a MultiClusterService on the management cluster too.
	//
	// +optional
	SelfManagement bool `json:"selfManagement,omitempty"`
}

// Service is one service that should run.
//
// +kubebuilder:validation:XValidation:rule="has(self.template) || has(self.templateChain) && has(self.version)",message="set template; or set templateChain and version, which name a template together"
// +kubebuilder:validation:XValidation:rule="!has(self.dependsOn) || self.dependsOn.all(d, d.name != self.name || d.__namespace__ != self.__namespace__)",message="a service can't depend on itself: remove it from its dependsOn",fieldPath=".dependsOn"
type Service struct {
	// Name is the name of the service, and of its Helm release. Namespace and name together are unique on a cluster.
	//
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a service's name is lower-case letters, digits and '-', and begins and ends with a letter or a digit"
	Name string `json:"name"`
	// Namespace is where the service goes on the target cluster.
	//
	// +optional
	// +kubebuilder:default=default
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a namespace is lower-case letters, digits and '-', and begins and ends with a letter or a digit"
	Namespace string `json:"namespace,omitempty"`
	// Template is the ServiceTemplate that should run, in the namespace of the ServiceSet. It may be left out where
	// templateChain and version are set: then it is the template with that version in the chain.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Template string `json:"template,omitempty"`
	// TemplateChain is the ServiceTemplateChain along which the service is upgraded, a template at a time. Without one, the
	// desired template is taken at once.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	TemplateChain string `json:"templateChain,omitempty"`
	// Version is the version that should run. The default is the template's.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Version string `json:"version,omitempty"`
	// Values are the values of the chart or the template, as YAML.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	Values string `json:"values,omitempty"`
	// ValuesFrom are ConfigMaps and Secrets with more values. Later ones win over earlier ones, Values wins over all.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	ValuesFrom []ValuesFrom `json:"valuesFrom,omitempty"`
	// DependsOn lists services of the same owner that have to be Deployed in the desired version before this one is touched.
	//
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	DependsOn []ServiceDependsOn `json:"dependsOn,omitempty"`
	// Disable leaves the service as it runs: it is not installed, changed or deleted.
	//
	// +optional
	Disable bool `json:"disable,omitempty"`
	// HelmOptions are options for a template that is a Helm chart.
	//
	// +optional
	HelmOptions *ServiceHelmOptions `json:"helmOptions,omitempty"`
	// HelmAction is what is done with a Helm chart: Install (the default) or Uninstall.
	//
	// +optional
	HelmAction HelmAction `json:"helmAction,omitempty"`
}

// ServiceDependsOn names a service that another one depends on.
type ServiceDependsOn struct {
	// Name is the name of the service.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	Name string `json:"name"`
	// Namespace is the namespace of the service.
	//
	// +optional
	// +kubebuilder:default=default
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// ValuesFrom names a ConfigMap or a Secret with values, in the namespace of the ServiceSet.
type ValuesFrom struct {
	// Kind is ConfigMap or Secret.
	//
	// +kubebuilder:validation:Enum=ConfigMap;Secret
	Kind string `json:"kind"`
	// Name is the name of the object.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key is the entry that holds the values. The default is "values.yaml".
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// HelmAction is what is done with a Helm chart.
//
// +kubebuilder:validation:Enum=Install;Uninstall
type HelmAction string

// The actions. No action means HelmActionInstall.
const (
	HelmActionInstall   HelmAction = "Install"
	HelmActionUninstall HelmAction = "Uninstall"
)

// ServiceHelmOptions are options of Helm. What is not set is left to the state manager.
type ServiceHelmOptions struct {
	// Wait waits until the objects of the release are ready.
	//
	// +optional
	Wait *bool `json:"wait,omitempty"`
	// WaitForJobs waits until the jobs of the release are complete.
	//
	// +optional
	WaitForJobs *bool `json:"waitForJobs,omitempty"`
	// Timeout limits each operation.
	//
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// Atomic takes back an operation that failed.
	//
	// +optional
	Atomic *bool `json:"atomic,omitempty"`
	// CreateNamespace creates the namespace of the release.
	//
	// +optional
	CreateNamespace *bool `json:"createNamespace,omitempty"`
	// SkipCRDs leaves out the custom resource definitions of the chart.
	//
	// +optional
	SkipCRDs *bool `json:"skipCRDs,omitempty"`
	// DisableHooks runs no hooks.
	//
	// +optional
	DisableHooks *bool `json:"disableHooks,omitempty"`
	// DisableOpenAPIValidation does not check the objects against the cluster's schemas.
	//
	// +optional
	DisableOpenAPIValidation *bool `json:"disableOpenAPIValidation,omitempty"`
	// SkipSchemaValidation does not check the values against the chart's schema.
	//
	// +optional
	SkipSchemaValidation *bool `json:"skipSchemaValidation,omitempty"`
	// DependencyUpdate fetches the charts that the chart depends on.
	//
	// +optional
	DependencyUpdate *bool `json:"dependencyUpdate,omitempty"`
	// Replace takes the name of a release that was deleted.
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
