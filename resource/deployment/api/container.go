package api

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PullPolicy says when the image is pulled onto a machine.
type PullPolicy string

const (
	// PullAlways pulls before each container that is run.
	PullAlways PullPolicy = "always"
	// PullMissing pulls where the image is not there.
	PullMissing PullPolicy = "missing"
	// PullNever uses only the machines that have the image.
	PullNever PullPolicy = "never"
)

// RestartPolicyName says when an engine starts a container again that has ended.
type RestartPolicyName string

// There is no policy "always": engines start such containers again after a restart of their own although they were stopped on
// purpose, for example because another version has taken their place.
const (
	// RestartUnlessStopped is always, unless it was stopped on purpose.
	RestartUnlessStopped RestartPolicyName = "unless-stopped"
	// RestartOnFailure is after an exit code other than 0. A container that has ended with 0, or too often, stays so.
	RestartOnFailure RestartPolicyName = "on-failure"
	// RestartNo is never. A container that has ended stays so.
	RestartNo RestartPolicyName = "no"
)

// PidMode says which processes a container sees.
type PidMode string

// PidModeHost is all processes of the machine.
const PidModeHost PidMode = "host"

// DefaultStopGracePeriod is how long a container may take to stop before it is killed.
const DefaultStopGracePeriod = 10 * time.Second

// ContainerSpec says what a container of a service is.
type ContainerSpec struct {
	// Image is the reference of the image.
	Image string `json:"image"`
	// PullPolicy says when the image is pulled. Default: missing.
	// +kubebuilder:validation:Enum=always;missing;never
	// +optional
	PullPolicy PullPolicy `json:"pullPolicy,omitempty"`
	// Command are the arguments of the entrypoint; an empty list is none. Default: those of the image, unless there is an entrypoint.
	// +optional
	Command []string `json:"command,omitzero"`
	// Entrypoint is the program and its first arguments; an empty list is none, so that the command begins with the program. Default: that
	// of the image.
	// +optional
	Entrypoint []string `json:"entrypoint,omitzero"`
	// Env are environment variables. Their values are shown in plans.
	// +optional
	Env map[string]string `json:"env,omitempty"`
	// SecretEnv are environment variables whose values are never shown. A name must not be in Env too.
	// +optional
	SecretEnv map[string]Hidden `json:"secretEnv,omitempty"`
	// User is the user, and maybe the group, as "user:group". Default: that of the image.
	// +optional
	User string `json:"user,omitempty"`
	// WorkingDir is the directory in which the program starts. Default: that of the image.
	// +optional
	WorkingDir string `json:"workingDir,omitempty"`
	// Labels are labels of the container.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// HealthCheck says how the engine finds out whether the container works. Default: that of the image, and none for a job.
	// +optional
	HealthCheck *HealthCheck `json:"healthCheck,omitempty"`
	// VolumeMounts are volumes in the file system of the container.
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	VolumeMounts []VolumeMount `json:"volumeMounts,omitempty"`
	// ConfigMounts are configs in the file system of the container.
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	ConfigMounts []ConfigMount `json:"configMounts,omitempty"`
	// Resources limits what the container uses.
	// +optional
	Resources Resources `json:"resources,omitzero"`
	// Privileged gives the container all capabilities and devices.
	// +optional
	Privileged bool `json:"privileged,omitempty"`
	// PidMode is host for a container that sees, and can signal, all processes of the machine. Default: it sees its own alone.
	// +kubebuilder:validation:Enum=host
	// +optional
	PidMode PidMode `json:"pidMode,omitempty"`
	// Init runs a small init process that reaps zombies as the first process.
	// +optional
	Init bool `json:"init,omitempty"`
	// ReadOnly makes the root file system read-only.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`
	// CapAdd are capabilities of the kernel to add, such as NET_ADMIN.
	// +optional
	CapAdd []string `json:"capAdd,omitempty"`
	// CapDrop are capabilities of the kernel to take away.
	// +optional
	CapDrop []string `json:"capDrop,omitempty"`
	// Sysctls are parameters of the kernel for the container's namespaces.
	// +optional
	Sysctls map[string]string `json:"sysctls,omitempty"`
	// LogDriver says where the output goes. Default: that of the engine.
	// +optional
	LogDriver *LogDriver `json:"logDriver,omitempty"`
	// StopSignal is the signal that asks the container to stop. Default: that of the image, else SIGTERM.
	// +optional
	StopSignal string `json:"stopSignal,omitempty"`
	// StopGracePeriod is how long the container may take to stop before it is killed, 24h at most; 0s is no time. Default: 10s.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('24h')",message="write a time such as 30s or 1h30m, from 0s to 24h"
	// +optional
	StopGracePeriod *metav1.Duration `json:"stopGracePeriod,omitempty"`
	// RestartPolicy says when the engine starts the container again. Default: unless-stopped, and no for a job.
	// +optional
	RestartPolicy RestartPolicy `json:"restartPolicy,omitzero"`
}

// HealthCheck is a command that an engine runs in a container from time to time.
type HealthCheck struct {
	// Disable switches off the check of the image. The other fields must be empty then.
	// +optional
	Disable bool `json:"disable,omitempty"`
	// Test is CMD and a program with its arguments, or CMD-SHELL and a line for the shell. Default: that of the image.
	// +optional
	Test []string `json:"test,omitempty"`
	// Interval is the time between two checks. Default: 30s.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="write a time such as 30s or 1h30m, of 0s or more"
	// +optional
	Interval metav1.Duration `json:"interval,omitzero"`
	// Timeout is how long a check may take. Default: 30s.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="write a time such as 30s or 1h30m, of 0s or more"
	// +optional
	Timeout metav1.Duration `json:"timeout,omitzero"`
	// StartPeriod is how long failures don't count after the start. Default: 0s.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="write a time such as 30s or 1h30m, of 0s or more"
	// +optional
	StartPeriod metav1.Duration `json:"startPeriod,omitzero"`
	// StartInterval is the time between two checks in the start period. Default: 5s.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="write a time such as 30s or 1h30m, of 0s or more"
	// +optional
	StartInterval metav1.Duration `json:"startInterval,omitzero"`
	// Retries is how many failures in a row make the container unhealthy. Default: 3.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Retries int `json:"retries,omitempty"`
}

// VolumeMount is a volume in the file system of a container.
type VolumeMount struct {
	// Volume is the name of one of the specification's Volumes.
	Volume string `json:"volume"`
	// Path is where it is in the container, absolute.
	Path string `json:"path"`
	// ReadOnly keeps the container from writing to it.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`
	// NoCopy leaves a volume empty that is mounted for the first time, where engines would copy into it what the image has at Path. Only
	// with type volume.
	// +optional
	NoCopy bool `json:"noCopy,omitempty"`
	// SubPath is the folder of the volume that is mounted: relative, and without "..". Not with type tmpfs. Default: all of it.
	// +optional
	SubPath string `json:"subPath,omitempty"`
}

// ConfigMount is a config as a file of a container.
type ConfigMount struct {
	// Config is the name of one of the specification's Configs.
	Config string `json:"config"`
	// Path is the file in the container, absolute.
	Path string `json:"path"`
	// UID owns the file. Default: 0.
	// +optional
	UID int64 `json:"uid,omitempty"`
	// GID is the group of the file. Default: 0.
	// +optional
	GID int64 `json:"gid,omitempty"`
	// Mode are the permissions, such as 0440. Default: 0444.
	// +optional
	Mode int32 `json:"mode,omitempty"`
}

// Resources limits what a container uses. CPU, Memory and MemoryReservation change in place, without another container. Quantities have a
// bounded number of digits: 1e2000000000 would take gigabytes when it is compared or printed.
type Resources struct {
	// CPU is the number of CPUs, such as 500m. Default: no limit.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^\+?([0-9]{1,19}(\.[0-9]{0,9})?|\.[0-9]{1,9})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`
	// Memory is the most memory, such as 512Mi. Default: no limit.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^\+?([0-9]{1,19}(\.[0-9]{0,9})?|\.[0-9]{1,9})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
	// MemoryReservation is the memory to which the container shrinks when the machine is short of it. Default: none.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^\+?([0-9]{1,19}(\.[0-9]{0,9})?|\.[0-9]{1,9})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
	// +optional
	MemoryReservation *resource.Quantity `json:"memoryReservation,omitempty"`
	// Devices are devices of the machine.
	// +optional
	Devices []Device `json:"devices,omitempty"`
	// GPUs are devices that a driver of the engine gives. Default: none.
	// +optional
	GPUs *GPUs `json:"gpus,omitempty"`
	// Ulimits are limits of the processes, by name, such as nofile.
	// +optional
	Ulimits map[string]Ulimit `json:"ulimits,omitempty"`
	// ShmSize is the size of /dev/shm. Default: that of the engine.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^\+?([0-9]{1,19}(\.[0-9]{0,9})?|\.[0-9]{1,9})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
	// +optional
	ShmSize *resource.Quantity `json:"shmSize,omitempty"`
	// PidsLimit is the most processes and threads. Default: no limit.
	// +optional
	PidsLimit int64 `json:"pidsLimit,omitempty"`
}

// Device is a device of the machine that a container may use.
type Device struct {
	// Host is the path on the machine.
	Host string `json:"host"`
	// Container is the path in the container. Default: Host.
	// +optional
	Container string `json:"container,omitempty"`
	// Permissions are some of r, w and m (mknod). Default: rwm.
	// +optional
	Permissions string `json:"permissions,omitempty"`
}

// GPUs are devices that a driver of the engine gives, such as GPUs of NVIDIA by its container toolkit.
type GPUs struct {
	// Count is how many, and -1 is all. Default: all, unless there are IDs.
	// +kubebuilder:validation:Minimum=-1
	// +optional
	Count int `json:"count,omitempty"`
	// IDs are those that the driver knows by these names, such as 0 or GPU-3a23c669. Not together with Count.
	// +optional
	IDs []string `json:"ids,omitempty"`
	// Driver is the name of the driver, such as nvidia. Default: the first one that has what is asked for.
	// +optional
	Driver string `json:"driver,omitempty"`
	// Capabilities are what they must be able to do, such as compute and utility, beside gpu.
	// +optional
	Capabilities []string `json:"capabilities,omitempty"`
	// Options are options of the driver.
	// +optional
	Options map[string]string `json:"options,omitempty"`
}

// Ulimit is a limit of a process.
type Ulimit struct {
	// Soft is the limit that holds, which the process may raise up to Hard.
	Soft int64 `json:"soft"`
	// Hard is the most that Soft can be.
	Hard int64 `json:"hard"`
}

// LogDriver says where the output of a container goes.
type LogDriver struct {
	// Name is the name of the driver, such as json-file.
	Name string `json:"name"`
	// Options are options of the driver.
	// +optional
	Options map[string]string `json:"options,omitempty"`
}

// RestartPolicy says when an engine starts a container again. It changes in place, without another container. What the policy leaves ended
// is not started by plans either: a container that has ended with 0 counts as working.
type RestartPolicy struct {
	// Name is unless-stopped, on-failure or no. Default: unless-stopped, and no for a job, which can't have unless-stopped.
	// +kubebuilder:validation:Enum=unless-stopped;on-failure;no
	// +optional
	Name RestartPolicyName `json:"name,omitempty"`
	// MaxRetries is how often it is started again with on-failure. Default: without an end.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxRetries int `json:"maxRetries,omitempty"`
}

func (c *ContainerSpec) setDefaults() {
	if c.PullPolicy == "" {
		c.PullPolicy = PullMissing
	}
	if c.RestartPolicy.Name == "" {
		c.RestartPolicy.Name = RestartUnlessStopped
	}
	if c.StopGracePeriod == nil {
		c.StopGracePeriod = &metav1.Duration{Duration: DefaultStopGracePeriod}
	}
	for i := range c.ConfigMounts {
		if c.ConfigMounts[i].Mode == 0 {
			c.ConfigMounts[i].Mode = 0o444
		}
	}
	if g := c.Resources.GPUs; g != nil && g.Count == 0 && len(g.IDs) == 0 {
		g.Count = -1
	}
	for i := range c.Resources.Devices {
		d := &c.Resources.Devices[i]
		if d.Container == "" {
			d.Container = d.Host
		}
		if d.Permissions == "" {
			d.Permissions = "rwm"
		}
	}
}

// setJobDefaults sets the defaults of a container that runs to its end: the check of its image is for what goes on.
func (c *ContainerSpec) setJobDefaults() {
	if c.RestartPolicy.Name == "" {
		c.RestartPolicy.Name = RestartNo
	}
	if c.HealthCheck == nil {
		c.HealthCheck = &HealthCheck{Disable: true}
	}
}

// GracePeriod returns how long the container may take to stop.
func (c *ContainerSpec) GracePeriod() time.Duration {
	if c.StopGracePeriod == nil {
		return DefaultStopGracePeriod
	}
	return c.StopGracePeriod.Duration
}
