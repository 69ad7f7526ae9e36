package api

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
)

// ServiceMode says how many containers a service has.
type ServiceMode string

const (
	// ServiceModeReplicated is a given number of containers, spread over the machines.
	ServiceModeReplicated ServiceMode = "replicated"
	// ServiceModeGlobal is one container on each machine that the placement allows.
	ServiceModeGlobal ServiceMode = "global"
	// ServiceModeJob is one container that runs to its end, once for each specification. It has completed when it ends with 0.
	ServiceModeJob ServiceMode = "job"
)

// The limits of a specification: what goes over all containers, or compares all things of a kind with each other, takes longer with each.
const (
	// MaxReplicas is how many containers a replicated service has at most.
	MaxReplicas = 10_000
	// MaxItems is how many ports, volumes, configs, mounts, and machines that it names a service has at most, of each.
	MaxItems = 1000
	// MaxWait is how long a container, a pause and a pre-deploy hook are waited for at most: plans wait meanwhile.
	MaxWait = 24 * time.Hour
)

// ServiceSpec says what a service should be: containers of one kind on some machines.
type ServiceSpec struct {
	// Name identifies the service in the cluster. It is a DNS label: up to 63 lower-case letters, digits and hyphens. Default: a
	// name made of the image's, which no service has yet.
	// +optional
	Name string `json:"name,omitempty"`
	// Mode is replicated, global or job. A job is run once: again only when its container would be another one, or a failure is to be
	// retried. It starts its container again after a failure as container.restartPolicy says. Default: replicated.
	// +kubebuilder:validation:Enum=replicated;global;job
	// +optional
	Mode ServiceMode `json:"mode,omitempty"`
	// Replicas is the number of containers of a replicated service, of MaxReplicas at most; 0 is none. Default: 1.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// Container says what each container is.
	Container ContainerSpec `json:"container"`
	// Ports are the ports at which the service is reached from outside.
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	Ports []PortSpec `json:"ports,omitempty"`
	// Volumes are what containers can mount.
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	Volumes []VolumeSpec `json:"volumes,omitempty"`
	// Configs are texts that containers can mount as files.
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	Configs []ConfigSpec `json:"configs,omitempty"`
	// Placement limits the machines.
	// +optional
	Placement Placement `json:"placement,omitzero"`
	// PreDeploy is run once before containers are run or replaced. Default: nothing is.
	// +optional
	PreDeploy *PreDeployHook `json:"preDeploy,omitempty"`
	// Update says how containers of an earlier specification are replaced.
	// +optional
	Update UpdateConfig `json:"update,omitzero"`
}

// Placement limits the machines on which containers of a service may be.
type Placement struct {
	// Machines are names or IDs of machines. One that is not in the cluster is an error. Default: all.
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	Machines []string `json:"machines,omitempty"`
	// Platform is the operating system and the architecture that a machine must have, such as linux/arm64: for images that there are for
	// no other one. Default: any.
	// +optional
	Platform string `json:"platform,omitempty"`
	// Labels are labels that a machine must have. Default: none.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
}

// ConfigSpec is a text that containers mount as a file.
type ConfigSpec struct {
	// Name identifies the config within the specification.
	Name string `json:"name"`
	// Content is the text. It is never shown.
	Content Hidden `json:"content"`
}

// Clone returns a copy that shares nothing.
func (s *ServiceSpec) Clone() ServiceSpec {
	return *s.DeepCopy()
}

// Equal tells whether two specifications mean the same: lists and maps that are empty and those that are not there are the same,
// but for commands and entrypoints, and so are quantities written in different ways.
func (s *ServiceSpec) Equal(other ServiceSpec) bool {
	return equality.Semantic.DeepEqual(*s, other) && slices.Equal(s.absent(), other.absent())
}

// absent reports which commands and entrypoints are those of the image. An empty one is none.
func (s *ServiceSpec) absent() []bool {
	out := []bool{s.Container.Command == nil, s.Container.Entrypoint == nil}
	if s.PreDeploy != nil {
		out = append(out, s.PreDeploy.Entrypoint == nil)
	}
	return out
}

// SetDefaults sets the defaults that don't depend on anything else. Doing it twice is doing it once.
func (s *ServiceSpec) SetDefaults() {
	if s.Mode == "" {
		s.Mode = ServiceModeReplicated
	}
	if s.Mode == ServiceModeReplicated && s.Replicas == nil {
		one := int32(1)
		s.Replicas = &one
	}
	if s.Mode == ServiceModeJob {
		s.Container.setJobDefaults()
	}
	s.Container.setDefaults()
	for i := range s.Ports {
		s.Ports[i].setDefaults()
	}
	for i := range s.Volumes {
		if s.Volumes[i].Type == "" {
			s.Volumes[i].Type = VolumeTypeVolume
		}
	}
}

// DesiredReplicas returns the number of containers of a replicated service, and 0 for a global one.
func (s *ServiceSpec) DesiredReplicas() int {
	if s.Mode == ServiceModeGlobal {
		return 0
	}
	if s.Replicas == nil {
		return 1
	}
	return int(*s.Replicas)
}

// HostPorts returns the fixed ports of a machine that each container of the service holds while it runs.
func (s *ServiceSpec) HostPorts() []PortSpec {
	var ports []PortSpec
	for _, p := range s.Ports {
		if p.HoldsHostPort() {
			ports = append(ports, p)
		}
	}
	return ports
}

// IngressPorts returns the ports that are reached through proxies.
func (s *ServiceSpec) IngressPorts() []PortSpec {
	var ports []PortSpec
	for _, p := range s.Ports {
		if p.Location() != "" {
			ports = append(ports, p)
		}
	}
	return ports
}

// MountedVolumes returns the volumes of a type that the container mounts, in the order of Volumes.
func (s *ServiceSpec) MountedVolumes(t VolumeType) []VolumeSpec {
	var volumes []VolumeSpec
	for _, v := range s.Volumes {
		mounted := slices.ContainsFunc(s.Container.VolumeMounts, func(m VolumeMount) bool { return m.Volume == v.Name })
		if mounted && (v.Type == t || v.Type == "" && t == VolumeTypeVolume) {
			volumes = append(volumes, v)
		}
	}
	return volumes
}

// HookSpec returns what the container of the pre-deploy hook is, or nil without one.
func (s *ServiceSpec) HookSpec() *ServiceSpec {
	if s.PreDeploy == nil {
		return nil
	}
	hook := s.DeepCopy()
	hook.PreDeploy, hook.Ports = nil, nil
	c := &hook.Container
	if !s.PreDeploy.Volumes {
		hook.Volumes, c.VolumeMounts = nil, nil
	}
	c.HealthCheck = &HealthCheck{Disable: true}
	c.RestartPolicy = RestartPolicy{Name: RestartNo}
	c.Command = slices.Clone(s.PreDeploy.Command)
	if s.PreDeploy.Entrypoint != nil {
		c.Entrypoint = slices.Clone(s.PreDeploy.Entrypoint)
	}
	if s.PreDeploy.User != "" {
		c.User = s.PreDeploy.User
	}
	if c.Env == nil {
		c.Env = map[string]string{}
	}
	maps.Copy(c.Env, s.PreDeploy.Env)
	return hook
}
