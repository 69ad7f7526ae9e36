package api

import (
	"slices"
	"strings"

	"github.com/distribution/reference"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MachineState says what is known of a machine.
type MachineState string

const (
	// MachineAvailable is a machine that answers.
	MachineAvailable MachineState = "available"
	// MachineUnknown is a machine that can't be seen. What was on it may still be there, and run.
	MachineUnknown MachineState = "unknown"
	// MachineGone is a machine of which the operator of the cluster says that it won't come back. What was on it is not there any
	// more.
	MachineGone MachineState = "gone"
)

// Machine is a machine with an engine.
type Machine struct {
	// ID identifies the machine for good.
	ID string `json:"id"`
	// Name is what people call it, unique in the cluster.
	Name string `json:"name"`
	// Labels are labels for placement.
	Labels map[string]string `json:"labels,omitempty"`
	// Addresses are IP addresses of the machine, of which ranges of ports choose (PortSpec.HostIP).
	Addresses []string `json:"addresses,omitempty"`
	// Ingress tells that it is for ports in mode ingress: a proxy runs on it, or comes with the first container that needs one, for the
	// containers on it and those on machines with a MeshAddress.
	Ingress bool `json:"ingress,omitempty"`
	// MeshAddress is the IP address at which proxies of other machines reach containers on it. Default: they don't.
	MeshAddress string `json:"meshAddress,omitempty"`
	// State says what is known of it. Default: available.
	State MachineState `json:"state,omitempty"`
	// Platform is the operating system and the architecture, such as linux/arm64. It is empty as long as it is not known.
	Platform string `json:"platform,omitempty"`
	// Ignored are fields of specifications that its engine passes over, by their paths, with the reasons. Plans that make containers there
	// note them.
	Ignored map[string]string `json:"ignored,omitempty"`
	// Reason says why it is not available.
	Reason string `json:"reason,omitempty"`
	// Unschedulable says why no new containers are put onto it, such as "it is being deleted". Those that are there stay, and are
	// started again. Default: empty, and they may be put onto it.
	Unschedulable string `json:"unschedulable,omitempty"`
	// Drain asks for the containers of services on it to be replaced by others elsewhere. No new ones are put onto it, whether or not
	// Unschedulable says why.
	Drain bool `json:"drain,omitempty"`
	// LastSeen is what was on it when it was seen last, for machines that are unknown. It must be complete: nothing was put onto the
	// machine since. Nil is not known.
	LastSeen *Inventory `json:"lastSeen,omitempty"`
	// Untouched tells of a machine of which nothing else is known that nothing was ever put onto it: it has no containers of services.
	// Volumes may be on it, from another time.
	Untouched bool `json:"untouched,omitempty"`
}

// Inventory is what is on a machine.
type Inventory struct {
	// Containers are all containers, those of others and those that don't run included.
	Containers []Container `json:"containers,omitempty"`
	// Volumes are all volumes.
	Volumes []Volume `json:"volumes,omitempty"`
	// Images are all images.
	Images []Image `json:"images,omitempty"`
	// AsOf says for the client that looked when that was (scheduler.Follower). Default: empty, and it does not know.
	AsOf string `json:"-"`
}

// ContainerState is what a container does, in the words of engines.
type ContainerState string

// The states of containers.
const (
	ContainerCreated    ContainerState = "created"
	ContainerRunning    ContainerState = "running"
	ContainerPaused     ContainerState = "paused"
	ContainerRestarting ContainerState = "restarting"
	ContainerRemoving   ContainerState = "removing"
	ContainerExited     ContainerState = "exited"
	ContainerDead       ContainerState = "dead"
)

// Health is what the health check of a container says.
type Health string

// The values of Health. HealthNone is a container without a health check.
const (
	HealthNone      Health = ""
	HealthStarting  Health = "starting"
	HealthHealthy   Health = "healthy"
	HealthUnhealthy Health = "unhealthy"
)

// Container is a container on a machine.
type Container struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Owner says whose it is. It is a container of the service only for whoever has that Ownership.
	Owner Owner `json:"owner,omitzero"`
	// ServiceID and ServiceName are empty for containers that were not made for services of this cluster.
	ServiceID   string `json:"serviceID,omitempty"`
	ServiceName string `json:"serviceName,omitempty"`
	// Spec is what the container was created with, but for what changes in place (CPU, memory, restart policy): that is as it
	// is now.
	Spec ServiceSpec `json:"spec,omitzero"`
	// Hook tells that it is a pre-deploy hook.
	Hook bool `json:"hook,omitempty"`
	// Attempt is that of CreateContainerOptions.
	Attempt string         `json:"attempt,omitempty"`
	State   ContainerState `json:"state"`
	// ExitCode is that of a container that has ended.
	ExitCode int    `json:"exitCode,omitempty"`
	Health   Health `json:"health,omitempty"`
	// Ports are the ports of the machine that it holds. Of one that is about to be there they are all of its specification.
	Ports []PortSpec `json:"ports,omitempty"`
	// Created is when it was created.
	Created metav1.Time `json:"created,omitzero"`
}

// Active tells whether processes of the container run, or are about to again: it holds its ports and uses its volumes.
func (c *Container) Active() bool {
	return c.State == ContainerRunning || c.State == ContainerPaused || c.State == ContainerRestarting
}

// FailedSuffix ends the names of containers that are Failed. No other container of a service has such a name.
const FailedSuffix = "-failed"

// Failed tells whether the container is of a service, did not work, and is kept, stopped, for its log until the next attempt.
func (c *Container) Failed() bool {
	return c.ServiceName != "" && strings.HasSuffix(c.Name, FailedSuffix)
}

// Ready tells whether the container works, as far as is known, or has ended as it should.
func (c *Container) Ready() bool {
	return c.State == ContainerRunning && (c.Health == HealthNone || c.Health == HealthHealthy) || c.Over() && c.ExitCode == 0
}

// Over reports whether the container has ended, and stays so by its restart policy. With on-failure and no MaxRetries, an engine starts one
// that has failed again, unless it was stopped.
func (c *Container) Over() bool {
	policy := c.Spec.Container.RestartPolicy
	return c.State == ContainerExited &&
		(policy.Name == RestartNo || policy.Name == RestartOnFailure && (c.ExitCode == 0 || policy.MaxRetries > 0))
}

// HostPorts returns the fixed ports of the machine that the container holds while it is active.
func (c *Container) HostPorts() []PortSpec {
	if len(c.Ports) > 0 {
		return c.Ports
	}
	return c.Spec.HostPorts()
}

// Serves tells whether the container is of a service, and a proxy serves it in one of some locations (PortSpec.Location).
func (c *Container) Serves(locations []string) (location string, serves bool) {
	if c.ServiceName == "" || c.Hook || c.Failed() {
		return "", false
	}
	for _, ports := range [][]PortSpec{c.Spec.Ports, c.Ports} {
		for _, p := range ports {
			if at := p.Location(); at != "" && slices.Contains(locations, at) {
				return at, true
			}
		}
	}
	return "", false
}

// Volume is a volume on a machine.
type Volume struct {
	Name string `json:"name"`
	// Driver made it.
	Driver string `json:"driver"`
	// Owner says whose it is. What is nobody's may be used by everybody.
	Owner Owner `json:"owner,omitzero"`
	// Options are those that the driver was given, as fingerprints: there may be passwords among them.
	Options map[string]string `json:"options,omitempty"`
}

// Image is an image on a machine.
type Image struct {
	// ID is the digest of its configuration.
	ID string `json:"id"`
	// Tags are its names with tags, such as nginx:1.27.
	Tags []string `json:"tags,omitempty"`
	// Digests are its names with digests, such as nginx@sha256:….
	Digests []string `json:"digests,omitempty"`
	// Created is when it was made.
	Created metav1.Time `json:"created,omitzero"`
}

// Service is a service as it is in the cluster.
type Service struct {
	ID   string      `json:"id"`
	Name string      `json:"name"`
	Mode ServiceMode `json:"mode,omitempty"`
	// Completed says of a job that it has completed, whatever containers are seen: for those who remember it elsewhere.
	Completed bool `json:"completed,omitempty"`
	// Attempt is the attempt to be made of a job: one that failed is run again in another attempt.
	Attempt string `json:"attempt,omitempty"`
	// Containers are those that are seen.
	Containers []Container `json:"containers,omitempty"`
}

// ImageName is a reference of an image in its full form, docker.io/library/nginx:1.27, so that what is written in different ways is
// found. It is comparable.
type ImageName struct{ name, tag, digest string }

// ParseImageName reads the reference of an image.
func ParseImageName(image string) (ImageName, error) {
	ref, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return ImageName{}, err
	}
	ref = reference.TagNameOnly(ref)
	n := ImageName{name: ref.Name()}
	if t, ok := ref.(reference.Tagged); ok {
		n.tag = t.Tag()
	}
	if d, ok := ref.(reference.Digested); ok {
		n.digest = d.Digest().String()
	}
	return n, nil
}

// Is tells whether a name is the name of an image: the digest decides where there is one, else the tag.
func (i *Image) Is(name ImageName) bool {
	names := i.Tags
	if name.digest != "" {
		names = i.Digests
	}
	for _, n := range names {
		have, err := ParseImageName(n)
		if err == nil && have.name == name.name && (name.digest != "" && have.digest == name.digest || name.digest == "" && have.tag == name.tag) {
			return true
		}
	}
	return false
}
