package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ServiceSpec is the services that an owner wants on a cluster, and how they get there.
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
	// ContinueOnError goes on with the other services when one fails, with the state manager sveltos. The others always do.
	//
	// +optional
	ContinueOnError bool `json:"continueOnError,omitempty"`
	// ChangeWindows are the times at which services may be changed. What changes outside of them waits, and says until when; an operation whose
	// hook has begun goes on. Without any, services are changed at any time.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	ChangeWindows []ChangeWindow `json:"changeWindows,omitempty"`
	// Reload restarts workloads whose mounted ConfigMaps or Secrets change. Only the state manager sveltos does that; the others leave
	// workloads as they are.
	//
	// +optional
	Reload bool `json:"reload,omitempty"`
}

// ChangeWindowKind is what a window is for.
//
// +kubebuilder:validation:Enum=Allow;Deny
type ChangeWindowKind string

// The kinds of windows. No kind means ChangeWindowAllow.
const (
	// ChangeWindowAllow is a window in which services are changed, and outside of which they are not.
	ChangeWindowAllow ChangeWindowKind = "Allow"
	// ChangeWindowDeny is a window in which services are not changed.
	ChangeWindowDeny ChangeWindowKind = "Deny"
)

// ChangeWindow is a time at which services may be changed, or may not. What one denies, none allows.
type ChangeWindow struct {
	// Kind is Allow (the default) or Deny.
	//
	// +optional
	Kind ChangeWindowKind `json:"kind,omitempty"`
	// Schedule is when it begins, as in crontab: minute, hour, day of the month, month and day of the week, such as "0 22 * * MON-FRI".
	//
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^ *[0-9*/,-]+ +[0-9*/,-]+ +[0-9*/,-]+ +[0-9A-Za-z*/,-]+ +[0-9A-Za-z*/,-]+ *$')",message="a schedule is a minute, an hour, a day of the month, a month and a day of the week, such as '0 22 * * MON-FRI'"
	Schedule string `json:"schedule"`
	// Duration is how long it lasts: a minute at least, 744h at most.
	//
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('744h')",message="a window lasts for a minute at least, and for 744h at most"
	Duration metav1.Duration `json:"duration"`
	// TimeZone is the place whose clocks count, such as "Europe/Berlin". The default is UTC.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TimeZone string `json:"timeZone,omitempty"`
	// Removals has the window count for what is taken away, too. By default that is taken away at any time.
	//
	// +optional
	Removals bool `json:"removals,omitempty"`
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
	// Name is the name of a StateManagementProvider. The default is the provider "native". It can't change, because
	// another one does not know what this one has put on the cluster. While the condition Blocked says that it does not exist, or that the
	// ServiceSet can't be made, it may.
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
	// HelmOptions are options for a template that is a Helm chart. The defaults that they name are those of the state manager native.
	//
	// +optional
	HelmOptions *ServiceHelmOptions `json:"helmOptions,omitempty"`
	// HelmAction is what is done with a Helm chart: Install (the default) or Uninstall. A service that is uninstalled as it should be counts as
	// Deployed, also for those that depend on it.
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

// ValuesTemplate says what Values are filled with that are a Go template: beside .Cluster, which has the metadata (name, namespace,
// labels, annotations) and the spec of the ClusterDeployment, objects of the management cluster as .Objects. A key that is missing is
// an error of the service.
type ValuesTemplate struct {
	// Objects are what the template sees as .Objects, by the names that it knows them by. They are in the namespace of the ServiceSet.
	//
	// +optional
	// +listType=map
	// +listMapKey=as
	// +kubebuilder:validation:MaxItems=16
	Objects []ValuesObject `json:"objects,omitempty"`
}

// ValuesObject names an object of the management cluster, in the namespace of the ServiceSet.
type ValuesObject struct {
	// As is the name by which the template knows the object: .Objects.NAME.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_]*$`
	As string `json:"as"`
	// APIVersion is the version of the object's kind. The default is "v1".
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	APIVersion string `json:"apiVersion,omitempty"`
	// Kind is the kind of the object: ConfigMap, or one that the operator is configured for. Secrets can't be: their values come by
	// valuesFrom.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Name is the name of the object. The default is the name of the cluster.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
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
	// TargetPath is where the entry goes, such as "auth.users[0].password" or "ingress.annotations.example\.com/team": the entry is a
	// single value then, and no YAML. It is a number, true, false or null where it reads so, unless it is in quotes, else a text as it
	// is. By default the entry has YAML, which is merged as a whole.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=250
	// +kubebuilder:validation:Pattern=`^([a-zA-Z0-9_\-.\\/]|\[[0-9]{1,5}\])+$`
	TargetPath string `json:"targetPath,omitempty"`
	// Optional leaves the values out while the object does not exist. An object without the entry stays an error.
	//
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// IgnoredDifference says which fields of which objects may differ from what the template says.
//
// +kubebuilder:validation:XValidation:rule="has(self.jsonPointers) || has(self.managers)",message="nothing would be ignored: set jsonPointers or managers"
type IgnoredDifference struct {
	// Kind is the kind of the objects, such as Deployment or Deployment.apps.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Kind string `json:"kind"`
	// Name is the name of the object. The default is all objects of the kind.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// JSONPointers are fields, such as "/spec/replicas" (RFC 6901). An element of a list whose elements have names is the one
	// with the same name, wherever it is.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:items:Pattern=`^(/([^/~]|~[01])*)+$`
	JSONPointers []string `json:"jsonPointers,omitempty"`
	// Managers are the names of other field managers: the fields that they have, as metadata.managedFields tells, are left to them.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=128
	Managers []string `json:"managers,omitempty"`
}

// Patch changes objects that come of a template, as kustomize does it.
//
// +kubebuilder:validation:XValidation:rule="has(self.target) || !self.patch.startsWith('[') && !self.patch.startsWith('-')",message="a list of operations (RFC 6902) does not say what it changes: set target"
type Patch struct {
	// Patch is a strategic merge patch, which names its object by apiVersion, kind and name unless there is a target, or a list of
	// operations (RFC 6902), without copy. It is YAML or JSON. A patch that finds no object is an error of the service.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	Patch string `json:"patch"`
	// Target selects the objects that are changed.
	//
	// +optional
	Target *PatchTarget `json:"target,omitempty"`
}

// PatchTarget selects objects as the template has them. All that is set has to fit. Group, version, kind, name and namespace are regular
// expressions for the whole of the text.
//
// +kubebuilder:validation:MinProperties=1
type PatchTarget struct {
	// Group is the API group of the kind.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`
	// Version is the version of the kind.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Version string `json:"version,omitempty"`
	// Kind is the kind.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Kind string `json:"kind,omitempty"`
	// Name is the name of the object.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// Namespace is the namespace that the object has in the template. One without any has that of the service if its kind has
	// namespaces, and is not selected by it here.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Namespace string `json:"namespace,omitempty"`
	// LabelSelector selects by the labels of the object, such as "app=web,tier!=db".
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	LabelSelector string `json:"labelSelector,omitempty"`
	// AnnotationSelector selects by the annotations of the object, in the same notation.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	AnnotationSelector string `json:"annotationSelector,omitempty"`
}

// HealthCheckExpr tells how objects of a kind are. Its expressions see the fields at the top of the object: metadata, spec, status, data,
// apiVersion and kind. InProgress is asked first, then failed, then current. What none is true for is in progress.
type HealthCheckExpr struct {
	// APIVersion is the version of the kind, such as "example.com/v1".
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	APIVersion string `json:"apiVersion"`
	// Kind is the kind.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Current is true for an object that is as it should be, such as "has(status.phase) && status.phase == 'Running'".
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Current string `json:"current"`
	// Failed is true for an object that has failed.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Failed string `json:"failed,omitempty"`
	// InProgress is true for an object that is getting there.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	InProgress string `json:"inProgress,omitempty"`
}
