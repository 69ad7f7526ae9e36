package api

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UpdateOrder says what comes first when a container takes the place of another one.
type UpdateOrder string

const (
	// OrderStartFirst runs the new container, and stops the old one when it works.
	OrderStartFirst UpdateOrder = "start-first"
	// OrderStopFirst stops the old container and then starts the new one, for what two can't have at once.
	OrderStopFirst UpdateOrder = "stop-first"
)

// FailureAction says what happens when more containers failed than are allowed to.
type FailureAction string

const (
	// FailurePause leaves everything as it is.
	FailurePause FailureAction = "pause"
	// FailureContinue goes on with the others.
	FailureContinue FailureAction = "continue"
	// FailureRollback undoes the whole plan.
	FailureRollback FailureAction = "rollback"
)

// The defaults of updates.
const (
	DefaultParallelism   = 1
	DefaultMonitor       = 5 * time.Second
	DefaultHealthTimeout = 5 * time.Minute
	DefaultHookTimeout   = 5 * time.Minute
)

// UpdateConfig says how containers of an earlier specification are replaced.
//
// While containers are replaced start-first none of the service is missing. Stop-first, up to Parallelism are.
type UpdateConfig struct {
	// Parallelism is how many containers are replaced at once. Default: 1.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Parallelism int `json:"parallelism,omitempty"`
	// Order is start-first or stop-first. Default: stop-first where the old and the new container would share a fixed port of the
	// machine, a volume, or a path of the machine that one of them writes to; else start-first. With a fixed port, and with a
	// volume when there is one container (on the machine), start-first is not possible.
	// +kubebuilder:validation:Enum=start-first;stop-first
	// +optional
	Order UpdateOrder `json:"order,omitempty"`
	// Delay is the pause between containers, or groups of Parallelism, 24h at most. Default: 0s.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('24h')",message="write a time such as 30s or 1h30m, from 0s to 24h"
	// +optional
	Delay metav1.Duration `json:"delay,omitzero"`
	// Monitor is how long a container without a health check must have been running to count as working, 24h at most. Default:
	// 5s.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('24h')",message="write a time such as 30s or 1h30m, from 0s to 24h"
	// +optional
	Monitor *metav1.Duration `json:"monitor,omitempty"`
	// HealthTimeout is how long a container with a health check may take to become healthy, 24h at most. Default: 5m.
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s') && duration(self) <= duration('24h')",message="write a time such as 30s or 1h30m, of more than 0s, and of 24h at most"
	// +optional
	HealthTimeout *metav1.Duration `json:"healthTimeout,omitempty"`
	// MaxFailurePercent is how many containers of a plan may fail before FailureAction is taken, in percent. Default: 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	MaxFailurePercent int `json:"maxFailurePercent,omitempty"`
	// FailureAction is pause, continue or rollback. Default: pause for rolling updates, rollback for others.
	// +kubebuilder:validation:Enum=pause;continue;rollback
	// +optional
	FailureAction FailureAction `json:"failureAction,omitempty"`
}

// ParallelismOrDefault returns how many containers are replaced at once.
func (u *UpdateConfig) ParallelismOrDefault() int {
	if u.Parallelism == 0 {
		return DefaultParallelism
	}
	return u.Parallelism
}

// Wait returns how long is waited for a container to work.
func (u *UpdateConfig) Wait() WaitOptions {
	w := WaitOptions{Monitor: DefaultMonitor, HealthTimeout: DefaultHealthTimeout}
	if u.Monitor != nil {
		w.Monitor = u.Monitor.Duration
	}
	if u.HealthTimeout != nil {
		w.HealthTimeout = u.HealthTimeout.Duration
	}
	return w
}

// PreDeployHook is a command that is run to its end in a container of its own, before containers are run or replaced: with the image,
// the environment, the user and the configs of the service, and without its ports, which the version that runs is using. When it fails,
// no container is changed.
type PreDeployHook struct {
	// Command are the arguments of the entrypoint.
	Command []string `json:"command"`
	// Entrypoint is the program; an empty list is none. Default: that of the container.
	// +optional
	Entrypoint []string `json:"entrypoint,omitzero"`
	// Env are further environment variables.
	// +optional
	Env map[string]string `json:"env,omitempty"`
	// User is the user. Default: that of the container.
	// +optional
	User string `json:"user,omitempty"`
	// Volumes mounts the volumes of the service, for example to migrate a database in one. The version that runs goes on using them
	// meanwhile, and what the hook has written stays when it fails. Not with mode global. Default: none is mounted.
	// +optional
	Volumes bool `json:"volumes,omitempty"`
	// Timeout is how long it may take, 24h at most. Default: 5m.
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s') && duration(self) <= duration('24h')",message="write a time such as 30s or 1h30m, of more than 0s, and of 24h at most"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// TimeoutOrDefault returns how long the hook may take.
func (h *PreDeployHook) TimeoutOrDefault() time.Duration {
	if h.Timeout == nil {
		return DefaultHookTimeout
	}
	return h.Timeout.Duration
}
