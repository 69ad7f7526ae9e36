package api

import (
	"context"
	"errors"
	"time"
)

// What clients answer with, to be found with errors.Is.
var (
	// ErrNotFound is something that is not there.
	ErrNotFound = errors.New("not found")
	// ErrExists is a container whose name is taken.
	ErrExists = errors.New("it exists already")
	// ErrOthers is something that is another's, or nobody's that is known. The error says whose.
	ErrOthers = errors.New("it is not ours")
	// ErrPortTaken is a container that can't start because somebody holds a port of the machine that it needs.
	ErrPortTaken = errors.New("a port of the machine is taken")
	// ErrUnprepared is a machine that has not what containers share there, such as their network, and could not get it. It says nothing
	// about the container that was to come.
	ErrUnprepared = errors.New("the machine has not what its containers share")
	// ErrUnhealthy is a container that does not work: its health check failed, or it has ended.
	ErrUnhealthy = errors.New("the container does not work")
)

// CreateContainerOptions says what container to create.
type CreateContainerOptions struct {
	// Name is unique on the machine.
	Name string
	// ServiceID is the service of the container.
	ServiceID string
	// Spec is recorded, and comes back in Container.Spec.
	Spec ServiceSpec
	// Hook tells that it is a pre-deploy hook, with a specification of HookSpec.
	Hook bool
	// Attempt is recorded for the container of a job, and comes back in Container.Attempt.
	Attempt string
}

// WaitOptions says how long is waited for a container.
type WaitOptions struct {
	// Monitor is how long a container without a health check must have been running.
	Monitor time.Duration
	// HealthTimeout is how long one with a health check may take to become healthy.
	HealthTimeout time.Duration
}

// ContainerClient changes containers. The container is an ID or a name; the implementation is safe for concurrent use. The context of
// a change says whose work it is (see OwnershipOf): what is created carries that, and what is another's is not changed, but ErrOthers.
// +kubebuilder:object:generate=false
type ContainerClient interface {
	// CreateContainer creates a container and does not start it. It does not pull. It returns the ID, or ErrExists if there is one
	// with the name, which can be seen. It does not leave what it has begun when ctx ends: no container comes after it has returned,
	// unless the machine does not answer any more. ErrPortTaken is that somebody holds a port which something needs that comes with it,
	// and ErrUnprepared that something of that kind could not be had at all.
	CreateContainer(ctx context.Context, machineID string, options CreateContainerOptions) (string, error)
	// StartContainer starts a container. One that runs is no error. A port that somebody holds is ErrPortTaken.
	StartContainer(ctx context.Context, machineID, container string) error
	// StopContainer stops a container, and kills it after the grace period. One that does not run is no error.
	StopContainer(ctx context.Context, machineID, container string, grace time.Duration) error
	// RemoveContainer removes a container and what it wrote, but no named volume. It kills one that runs.
	RemoveContainer(ctx context.Context, machineID, container string) error
	// SetAside gives a container that does not run, or is about to be stopped, another name, which tells that it did not work and is kept for
	// its log alone (see Container.Failed). One that has such a name is no error.
	SetAside(ctx context.Context, machineID, container string) error
	// UpdateContainer makes what changes in place as it is in the specification: CPU, memory and restart policy.
	UpdateContainer(ctx context.Context, machineID, container string, spec ServiceSpec) error
	// InspectContainer returns a container.
	InspectContainer(ctx context.Context, machineID, container string) (Container, error)
	// WaitContainerReady waits until a container works: it is healthy, or without a health check has been running for the time
	// given. ErrUnhealthy says that it does not, or not in time, and ErrUnprepared that what leads to it could not be told of it.
	WaitContainerReady(ctx context.Context, machineID, container string, options WaitOptions) error
	// WaitContainerExit waits until a container has ended, and returns its exit code.
	WaitContainerExit(ctx context.Context, machineID, container string) (int, error)
	// LastLines returns what a container has written last, without values that are known to be secret. It is empty for one that has
	// written nothing, or whose output can't be read.
	LastLines(ctx context.Context, machineID, container string) (string, error)
}

// DNSClient knows names.
// +kubebuilder:object:generate=false
type DNSClient interface {
	// GetDomain returns the domain of the cluster, or ErrNotFound if it has none.
	GetDomain(ctx context.Context) (string, error)
}

// PullProgress is how far an image is pulled, in bytes. Total is 0 as long as it is not known.
type PullProgress struct{ Current, Total int64 }

// ImageClient handles images.
// +kubebuilder:object:generate=false
type ImageClient interface {
	// InspectImage returns an image on a machine, or ErrNotFound.
	InspectImage(ctx context.Context, machineID, image string) (Image, error)
	// PullImage pulls an image onto a machine. The function is called from one goroutine until PullImage returns; it may be nil.
	PullImage(ctx context.Context, machineID, image string, progress func(PullProgress)) error
	// ResolveDigest asks the registry for the digest of an image, such as sha256:….
	ResolveDigest(ctx context.Context, image string) (string, error)
}

// MachineClient sees machines.
// +kubebuilder:object:generate=false
type MachineClient interface {
	// ListMachines returns all machines of the cluster, those that can't be seen and those that are gone included.
	ListMachines(ctx context.Context) ([]Machine, error)
	// InspectMachine returns what is on a machine. An error makes the machine unknown.
	InspectMachine(ctx context.Context, machineID string) (Inventory, error)
}

// ServiceClient sees services.
// +kubebuilder:object:generate=false
type ServiceClient interface {
	// InspectService returns a service by its name or ID, or ErrNotFound. One that is only on machines that can't be seen may be
	// ErrNotFound: planning does not take that for its absence.
	InspectService(ctx context.Context, nameOrID string) (Service, error)
}

// VolumeClient handles volumes.
// +kubebuilder:object:generate=false
type VolumeClient interface {
	// CreateVolume creates a volume. One that is there already, by the same driver, is no error unless it is another's; that is
	// ErrOthers.
	CreateVolume(ctx context.Context, machineID string, volume VolumeSpec) error
}
