package v1alpha1

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// RetryAnnotation makes a version be tried again that was given up, whenever its value becomes another one.
const RetryAnnotation = "deployment.operatorkit.io/retry"

// RecreateAnnotation makes all containers of a service be made anew, by its strategy, whenever its value becomes another one.
const RecreateAnnotation = "deployment.operatorkit.io/recreate"

// MachineService is a service that runs on machines of its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=msvc
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Containers",type=integer,JSONPath=`.status.containers`
// +kubebuilder:printcolumn:name="Working",type=integer,JSONPath=`.status.working`
// +kubebuilder:printcolumn:name="Up-to-date",type=integer,JSONPath=`.status.upToDate`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.container.image`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')",message="the name of a MachineService is the first part of its containers' names: at most 63 lower-case letters, digits and '-'"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.name) || self.spec.name == self.metadata.name",message="leave spec.name out: the name of the service is that of the object"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.dependsOn) || !(self.metadata.name in self.spec.dependsOn)",message="spec.dependsOn names the service itself, which would wait for ever"
type MachineService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec MachineServiceSpec `json:"spec"`
	// +optional
	Status MachineServiceStatus `json:"status,omitzero"`
}

// MachineServiceSpec says what a service should be, and how it comes to be so.
type MachineServiceSpec struct {
	api.ServiceSpec `json:",inline"`
	// EnvFrom are environment variables of the container whose values are in Secrets and ConfigMaps. Of two of a name the later one
	// counts; what container.env and container.secretEnv say counts before all of them. The values are never shown, and another value
	// makes other containers. Default: none.
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	EnvFrom []EnvFrom `json:"envFrom,omitempty"`
	// ConfigsFrom are configs, beside Configs, whose contents are in Secrets and ConfigMaps. The contents are never shown, and another
	// content makes other containers. Default: none.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	// +optional
	ConfigsFrom []ConfigFrom `json:"configsFrom,omitempty"`
	// DependsOn are names of MachineServices of the namespace that a version of this one waits for: until they are Ready for the spec that
	// they have, which a job is when it has completed. A version that was deployed once is kept up without them. Default: none.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	DependsOn []string `json:"dependsOn,omitempty"`
	// Strategy makes the plans; it says nothing to a job. Default: rolling.
	// +optional
	Strategy Strategy `json:"strategy,omitzero"`
}

// Validate is that of the service itself, for which what is in Secrets and ConfigMaps is a config as well: container.configMounts may name
// it. What these objects have is not looked at.
func (s *MachineServiceSpec) Validate() error {
	service := s.ServiceSpec
	service.Configs = slices.Clone(service.Configs)
	for _, from := range s.ConfigsFrom {
		service.Configs = append(service.Configs, api.ConfigSpec{Name: from.Name})
	}
	if s.Name != "" && slices.Contains(s.DependsOn, s.Name) {
		return errors.Join(fmt.Errorf("dependsOn: it names the service %s itself, which would wait for ever", s.Name), service.Validate())
	}
	return service.Validate()
}

// StrategyType names a strategy.
type StrategyType string

// The strategies: see package deployment.
const (
	StrategyRolling   StrategyType = "rolling"
	StrategyBlueGreen StrategyType = "blue-green"
	StrategyCanary    StrategyType = "canary"
)

// Strategy says how plans are made.
//
// +kubebuilder:validation:XValidation:rule="!has(self.hold) || has(self.type) && self.type == 'blue-green'",message="hold is for blue-green only",fieldPath=".hold"
// +kubebuilder:validation:XValidation:rule="!has(self.steps) || has(self.type) && self.type == 'canary'",message="steps are for canary only",fieldPath=".steps"
type Strategy struct {
	// Type is rolling, blue-green or canary. Default: rolling.
	// +kubebuilder:validation:Enum=rolling;blue-green;canary
	// +optional
	Type StrategyType `json:"type,omitempty"`
	// Hold is, for blue-green, how long both versions run before the old one is removed, 24h at most. Default: not at all.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('24h')",message="write a time such as 30s or 1h30m, from 0s to 24h"
	// +optional
	Hold *metav1.Duration `json:"hold,omitempty"`
	// Steps are, for canary, how many containers get the new version at a time. Default: 10 % and 50 %, each with a pause of a
	// minute.
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Steps []CanaryStep `json:"steps,omitempty"`
}

// CanaryStep is a part of an update by the strategy canary.
type CanaryStep struct {
	// Percent is how many of the containers are of the new version after the step.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percent int `json:"percent"`
	// Pause is how long they are watched before the next step, 24h at most. Default: 0s.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('24h')",message="write a time such as 30s or 1h30m, from 0s to 24h"
	// +optional
	Pause metav1.Duration `json:"pause,omitzero"`
}

// MachineServiceStatus is how a service is.
type MachineServiceStatus struct {
	// ObservedGeneration is the generation that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions has Ready, Progressing and Blocked and, while the service is only planned for, Planned.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Containers is how many containers are seen, Working how many of them work, and UpToDate how many of these are as the spec
	// says.
	// +optional
	Containers int32 `json:"containers,omitempty"`
	// +optional
	Working int32 `json:"working,omitempty"`
	// +optional
	UpToDate int32 `json:"upToDate,omitempty"`
	// Machines are the machines that have containers of the service, or may have, by name.
	// +optional
	// +listType=map
	// +listMapKey=name
	Machines []MachineContainers `json:"machines,omitempty"`
	// Deployed is the version of which all containers worked last, or which has completed as a job. It is never given up: what fails with it
	// later is tried again. A job that has completed is not run again, also if its container is gone.
	// +optional
	Deployed *Version `json:"deployed,omitempty"`
	// GivenUp is the version that failed, and is not tried again.
	// +optional
	GivenUp *GivenUp `json:"givenUp,omitempty"`
	// Plan is what would be done, line by line, while the service is only planned for.
	// +optional
	Plan []string `json:"plan,omitempty"`
}

// MachineContainers is what a machine has of a service.
type MachineContainers struct {
	// Name is the name of the Machine.
	Name string `json:"name"`
	// State is available or unknown. What is said of a machine that is unknown is what was seen last.
	State api.MachineState `json:"state"`
	// Planned tells that a plan was begun that does something there. It is written before the plan is carried out.
	// +optional
	Planned bool `json:"planned,omitempty"`
	// Containers are the containers, by name.
	// +optional
	// +listType=map
	// +listMapKey=name
	Containers []ContainerStatus `json:"containers,omitempty"`
}

// ContainerStatus is how a container is.
type ContainerStatus struct {
	// Name is the name of the container.
	Name string `json:"name"`
	// State is what it does, such as running, and Health what its health check says.
	State api.ContainerState `json:"state"`
	// +optional
	Health api.Health `json:"health,omitempty"`
	// Image is its image.
	Image string `json:"image"`
	// UpToDate tells whether it is as the spec says.
	// +optional
	UpToDate bool `json:"upToDate,omitempty"`
	// ExitCode is with what it has ended, if that is not 0.
	// +optional
	ExitCode int32 `json:"exitCode,omitempty"`
	// Failed tells that it did not work, and is kept, stopped, for its log until the next attempt. It is not counted.
	// +optional
	Failed bool `json:"failed,omitempty"`
	// Ports are the ports of the machine that it holds.
	// +optional
	// +listType=atomic
	Ports []api.PortSpec `json:"ports,omitempty"`
}

// Version is what containers are made by.
type Version struct {
	// Generation is the generation of the spec.
	Generation int64 `json:"generation"`
	// References stands for the Secrets and ConfigMaps that the spec names, as they were then. It is empty without any.
	// +optional
	References string `json:"references,omitempty"`
	// Image is, with the pull policy always, the image with the digest that its tag stood for.
	// +optional
	Image string `json:"image,omitempty"`
	// Recreate is the value of RecreateAnnotation.
	// +optional
	Recreate string `json:"recreate,omitempty"`
}

// GivenUp is a version that failed.
type GivenUp struct {
	Version `json:",inline"`
	// Retry is the value of RetryAnnotation at that time.
	// +optional
	Retry string `json:"retry,omitempty"`
	// Reason is a word for what happened: Paused, RolledBack, HookFailed or, for a job, Failed.
	Reason string `json:"reason"`
	// Message says what happened.
	Message string `json:"message"`
}

// MachineServiceList is a list of MachineServices.
//
// +kubebuilder:object:root=true
type MachineServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []MachineService `json:"items"`
}
