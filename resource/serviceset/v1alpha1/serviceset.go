package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Labels and annotations of ServiceSets.
const (
	// ClusterLabel is the label of a ServiceSet with the name of its ClusterDeployment.
	ClusterLabel = "services.operatorkit.io/cluster"
	// ManagementLabel is the label, with the value "true", of a ServiceSet of the management cluster.
	ManagementLabel = "services.operatorkit.io/management-cluster"
	// SelectorLabelsAnnotation is the annotation that lists, with commas between, the labels that a ServiceSet has because
	// its provider selects by them.
	SelectorLabelsAnnotation = "services.operatorkit.io/selector-labels"
)

// ServiceSetOperation is what has to be done with a ServiceSet.
type ServiceSetOperation string

// The operations.
const (
	// ServiceSetOperationCreate says that the ServiceSet does not exist.
	ServiceSetOperationCreate ServiceSetOperation = "create"
	// ServiceSetOperationUpdate says that the ServiceSet differs from what it should be.
	ServiceSetOperationUpdate ServiceSetOperation = "update"
	// ServiceSetOperationDelete says that nobody needs the ServiceSet any more, and that it is empty.
	ServiceSetOperationDelete ServiceSetOperation = "delete"
	// ServiceSetOperationNone says that there is nothing to do.
	ServiceSetOperationNone ServiceSetOperation = "none"
)

// ServiceSet is the services that one owner has on one cluster now. The operator writes it, a state manager carries it out.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=sset
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster`
// +kubebuilder:printcolumn:name="MultiClusterService",type=string,JSONPath=`.spec.multiClusterService`
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.provider.name`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ServiceSet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ServiceSetSpec `json:"spec"`
	// +optional
	Status ServiceSetStatus `json:"status,omitempty"`
}

// ServiceSetSpec is the services, and where they go.
//
// +kubebuilder:validation:XValidation:rule="has(self.cluster) || has(self.multiClusterService)",message="a service set belongs to a cluster, to a multiClusterService, or to both: set one"
// +kubebuilder:validation:XValidation:rule="has(self.cluster) == has(oldSelf.cluster) && (!has(self.cluster) || self.cluster == oldSelf.cluster)",message="the cluster can't change: its services would be left behind there",fieldPath=".cluster"
// +kubebuilder:validation:XValidation:rule="has(self.multiClusterService) == has(oldSelf.multiClusterService) && (!has(self.multiClusterService) || self.multiClusterService == oldSelf.multiClusterService)",message="the owner can't change: delete the service set instead",fieldPath=".multiClusterService"
// +kubebuilder:validation:XValidation:rule="(has(self.provider.name) && self.provider.name.size() > 0 ? self.provider.name : 'native') == (has(oldSelf.provider.name) && oldSelf.provider.name.size() > 0 ? oldSelf.provider.name : 'native')",message="the provider's name can't change once it is set: another provider does not know what this one has put on the cluster",fieldPath=".provider.name"
type ServiceSetSpec struct {
	// Cluster is the name of the ClusterDeployment, in the namespace of the ServiceSet. Without one, the services go to the
	// management cluster.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster,omitempty"`
	// MultiClusterService is the name of the MultiClusterService that the services come from. Without one, they come from
	// the ClusterDeployment.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	MultiClusterService string `json:"multiClusterService,omitempty"`
	// Provider is the state manager that carries the services out.
	Provider StateManagementProviderConfig `json:"provider"`
	// ChangeWindows are the times at which services may be changed.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	ChangeWindows []ChangeWindow `json:"changeWindows,omitempty"`
	// Services are the services that the cluster gets now, by namespace and name.
	//
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=2000
	Services []ServiceWithValues `json:"services,omitempty"`
	// Removing are the services that are being taken away, until the status says that they are gone. What they depend on
	// is taken away after them.
	//
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=2000
	Removing []ServiceRemoval `json:"removing,omitempty"`
}

// ServiceWithValues is a service as the cluster gets it now.
type ServiceWithValues struct {
	// Name is the name of the service.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=53
	Name string `json:"name"`
	// Namespace is where the service goes on the target cluster.
	//
	// +optional
	// +kubebuilder:default=default
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// Template is the name of the ServiceTemplate.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Template string `json:"template"`
	// Version is the version that the template stands for.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Version string `json:"version,omitempty"`
	// UpgradingTo is set while the template is a step on a longer way: it is what was desired when the step was taken.
	//
	// +optional
	UpgradingTo *ServiceVersion `json:"upgradingTo,omitempty"`
	// Values are the values of the chart or the template, as YAML.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	Values string `json:"values,omitempty"`
	// ValuesTemplate has Values taken for a Go template that is filled with the data of the cluster. Without one, they are taken
	// as they are.
	//
	// +optional
	ValuesTemplate *ValuesTemplate `json:"valuesTemplate,omitempty"`
	// ValuesFrom are ConfigMaps and Secrets with more values. Later ones win over earlier ones, Values wins over all.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	ValuesFrom []ValuesFrom `json:"valuesFrom,omitempty"`
	// DependsOn are the services that have to be there before this one, and go after it.
	//
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	DependsOn []ServiceDependsOn `json:"dependsOn,omitempty"`
	// HelmOptions are options for a template that is a Helm chart.
	//
	// +optional
	HelmOptions *ServiceHelmOptions `json:"helmOptions,omitempty"`
	// HelmAction is what is done with a Helm chart: Install (the default) or Uninstall.
	//
	// +optional
	HelmAction HelmAction `json:"helmAction,omitempty"`
	// Adopt takes over, as it is, what is there already and not from a service set: a Helm release, or objects that others manage.
	// By default that is an error.
	//
	// +optional
	Adopt bool `json:"adopt,omitempty"`
	// MaxAttempts is how often it is tried to put the service onto the cluster before it is given up: it is Failed then until what it is
	// made of changes, or the annotation services.operatorkit.io/retry of its ServiceSet or its ClusterDeployment. The default
	// is no limit.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxAttempts int32 `json:"maxAttempts,omitempty"`
	// ServiceAccountName is a service account of the target cluster, in the namespace there that is called like that of the ServiceSet. The
	// service is put there, looked at and taken away with its rights. The default is that of the provider's config, then that of the state
	// manager, and without any the user of the kubeconfig.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// Patches change the objects that come of the template, in their order, after the values are in: those of a chart with its hooks, but
	// not the definitions in its folder crds.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Patches []Patch `json:"patches,omitempty"`
	// HealthCheckExprs tell by expressions in CEL how objects of kinds are that say it in a way of their own. All others are told by what
	// Kubernetes and kstatus know of them. The operator has to have expressions wired in.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	HealthCheckExprs []HealthCheckExpr `json:"healthCheckExprs,omitempty"`
	// IgnoreDifferences are differences of objects that are left as they are: they are no drift, and an upgrade does not take them back.
	// An object that is created has what the template says.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	IgnoreDifferences []IgnoredDifference `json:"ignoreDifferences,omitempty"`
	// Generation is the generation of the ServiceSet with which the entry changed last. What a status of an earlier
	// generation says of the service is not about this entry.
	//
	// +optional
	Generation int64 `json:"generation,omitempty"`
}

// ServiceRemoval is a service that is being taken away.
type ServiceRemoval struct {
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
	// DependsOn are the services that the service depended on.
	//
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=100
	DependsOn []ServiceDependsOn `json:"dependsOn,omitempty"`
	// ServiceAccountName is the service account with whose rights the service is taken away, as its entry had it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// ServiceSetStatus is what the state manager has done. The state manager writes it.
type ServiceSetStatus struct {
	// ObservedGeneration is the generation that the status is about. A state manager that sets none is taken at its word: its
	// states count for the entries as they are.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions tell about the set as a whole: Ready, Reachable and Suspended keep its owner from being Ready.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Services are the states of the services, also of those that are being taken away.
	//
	// +optional
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=4000
	Services []ServiceState `json:"services,omitempty"`
}

// ServiceSetList is a list of ServiceSets.
//
// +kubebuilder:object:root=true
type ServiceSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ServiceSet `json:"items"`
}
