package api

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/resource"
)

// VolumeType is a kind of volume.
type VolumeType string

const (
	// VolumeTypeVolume is a volume of the engine, by name. Its data stay when containers go.
	VolumeTypeVolume VolumeType = "volume"
	// VolumeTypeBind is a path of the machine.
	VolumeTypeBind VolumeType = "bind"
	// VolumeTypeTmpfs is memory, which ends with the container.
	VolumeTypeTmpfs VolumeType = "tmpfs"
)

// Propagation says which mounts below a path of the machine come and go on the other side too, in the words of the kernel
// (mount_namespaces(7)). Those that begin with r are about the mounts below as well.
type Propagation string

// The propagations: of none, of those of either side, and of those of the machine in the container.
const (
	PropagationPrivate  Propagation = "private"
	PropagationRPrivate Propagation = "rprivate"
	PropagationShared   Propagation = "shared"
	PropagationRShared  Propagation = "rshared"
	PropagationSlave    Propagation = "slave"
	PropagationRSlave   Propagation = "rslave"
)

// VolumeSpec is a volume that containers of a service can mount.
type VolumeSpec struct {
	// Name identifies the volume within the specification; for type volume it is the name on the machine too.
	Name string `json:"name"`
	// Type is volume, bind or tmpfs. Default: volume.
	// +kubebuilder:validation:Enum=volume;bind;tmpfs
	// +optional
	Type VolumeType `json:"type,omitempty"`
	// External is for volumes that others make, other operators too: one that is not there is not created. Only with type volume.
	// +optional
	External bool `json:"external,omitempty"`
	// Driver makes the volume. Default: that of the engine. Only with type volume.
	// +optional
	Driver *VolumeDriver `json:"driver,omitempty"`
	// Labels are labels of the volume. Only with type volume.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// HostPath is the path on the machine, absolute. Only with type bind.
	// +optional
	HostPath string `json:"hostPath,omitempty"`
	// CreateHostPath makes the engine create a folder at HostPath when nothing is there. Only with type bind.
	// +optional
	CreateHostPath bool `json:"createHostPath,omitempty"`
	// Propagation says which mounts below the path come and go on the other side too. Default: rprivate, none do. Only with type bind.
	// +kubebuilder:validation:Enum=private;rprivate;shared;rshared;slave;rslave
	// +optional
	Propagation Propagation `json:"propagation,omitempty"`
	// Size is the most that it can hold. Default: no limit. Only with type tmpfs.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^\+?([0-9]{1,19}(\.[0-9]{0,9})?|\.[0-9]{1,9})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
}

// VolumeDriver makes volumes.
type VolumeDriver struct {
	// Name is the name of the driver. Default: local, that of engines.
	// +optional
	Name string `json:"name,omitempty"`
	// Options are options of the driver.
	// +optional
	Options map[string]string `json:"options,omitempty"`
}

// VolumeOf returns the volume that is made by a specification.
func VolumeOf(v VolumeSpec, owner Owner) Volume {
	out := Volume{Name: v.Name, Driver: v.DriverName(), Owner: owner}
	if v.Driver != nil {
		out.Options = Fingerprints(v.Driver.Options)
	}
	return out
}

// Differs says why a volume that is there is not the one of a specification which names a driver, or nothing.
func (v *VolumeSpec) Differs(have *Volume) string {
	switch {
	case v.Driver == nil:
		return ""
	case have.Driver != v.DriverName():
		return "is of driver " + have.Driver + ", not " + v.DriverName()
	case !maps.EqualFunc(have.Options, v.Driver.Options, SameText):
		return "was made with other options of driver " + have.Driver + "; call it otherwise, or move its data to one that you make anew"
	}
	return ""
}

// DefaultVolumeDriver is the driver of engines when none is asked for.
const DefaultVolumeDriver = "local"

// DriverName returns the name of the driver.
func (v *VolumeSpec) DriverName() string {
	if v.Driver == nil || v.Driver.Name == "" {
		return DefaultVolumeDriver
	}
	return v.Driver.Name
}
