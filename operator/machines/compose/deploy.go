package compose

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// deploy converts how many containers there are, where, and how they are updated.
func (c *converter) deploy() {
	spec := &c.svc.Spec.ServiceSpec
	if n := c.in.Scale; n != nil {
		spec.Replicas = count(*n)
		c.in.Scale = nil
	}
	if c.in.Deploy == nil {
		return
	}
	in := *c.in.Deploy
	c.in.Deploy = &in
	in.Extensions = nil
	switch in.Mode {
	case "global":
		spec.Mode, spec.Replicas, in.Mode = api.ServiceModeGlobal, nil, ""
	case "replicated":
		in.Mode = ""
	}
	if in.Replicas != nil && spec.Mode != api.ServiceModeGlobal {
		spec.Replicas = count(*in.Replicas)
	}
	in.Replicas = nil
	c.update(&in)
	c.limits(&in)
	c.placement(&in)
	if p := in.RestartPolicy; p != nil {
		in.RestartPolicy = c.restartPolicy(*p)
	}
}

func count(n int) *int32 {
	replicas := int32(n) //nolint:gosec // a number of containers
	return &replicas
}

func (c *converter) update(in *types.DeployConfig) {
	if in.UpdateConfig == nil {
		return
	}
	from, to := *in.UpdateConfig, &c.svc.Spec.Update
	in.UpdateConfig = nil
	if from.Parallelism != nil {
		// 0 is all at once.
		to.Parallelism = int(*from.Parallelism) //nolint:gosec // a number of containers
		if to.Parallelism == 0 {
			to.Parallelism = max(1, c.svc.Spec.DesiredReplicas())
		}
	}
	to.Delay = metav1.Duration{Duration: time.Duration(from.Delay)}
	if from.Monitor != 0 {
		to.Monitor = duration(&from.Monitor)
	}
	c.order(from.Order)
	to.FailureAction = api.FailureAction(from.FailureAction)
	to.MaxFailurePercent = int(from.MaxFailureRatio*100 + 0.5)
}

// order leaves out an order that two containers can't keep to, because they would have one port or one volume at once.
func (c *converter) order(order string) {
	spec := c.svc.Spec.DeepCopy().ServiceSpec
	single := spec.Mode == api.ServiceModeGlobal || spec.DesiredReplicas() == 1
	if api.UpdateOrder(order) == api.OrderStartFirst && (len(spec.HostPorts()) > 0 || single && len(spec.MountedVolumes(api.VolumeTypeVolume)) > 0) {
		c.lacks("deploy.update_config.order")
		return
	}
	c.svc.Spec.Update.Order = api.UpdateOrder(order)
}

// limits converts those of deploy, which count before those of the service itself.
func (c *converter) limits(in *types.DeployConfig) {
	out := &c.svc.Spec.Container.Resources
	if l := in.Resources.Limits; l != nil {
		left := *l
		if q := cpus(float32(left.NanoCPUs)); q != nil {
			out.CPU = q
		}
		if q := quantity(left.MemoryBytes); q != nil {
			out.Memory = q
		}
		if left.Pids > 0 {
			out.PidsLimit = left.Pids
		}
		left.NanoCPUs, left.MemoryBytes, left.Pids, left.Extensions = 0, 0, 0, nil
		in.Resources.Limits = &left
	}
	if r := in.Resources.Reservations; r != nil {
		left := *r
		if q := quantity(left.MemoryBytes); q != nil {
			out.MemoryReservation = q
		}
		if d := left.Devices; len(d) == 1 && slices.Contains(d[0].Capabilities, gpu) {
			out.GPUs, left.Devices = gpus(d[0]), nil
		}
		left.MemoryBytes, left.Extensions = 0, nil
		in.Resources.Reservations = &left
	}
}

// constraint is one of those that have a counterpart.
var constraint = regexp.MustCompile(`^node\.(hostname|labels\.[^\s=!]+)\s*==\s*(\S+)$`)

func (c *converter) placement(in *types.DeployConfig) {
	constraints := in.Placement.Constraints
	in.Placement.Constraints = nil
	for i, text := range constraints {
		found := constraint.FindStringSubmatch(text)
		switch {
		case found == nil:
			c.lacks(fmt.Sprintf("deploy.placement.constraints[%d] (%s)", i, text))
		case found[1] == "hostname":
			c.svc.Spec.Placement.Machines = append(c.svc.Spec.Placement.Machines, found[2])
		default:
			if c.svc.Spec.Placement.Labels == nil {
				c.svc.Spec.Placement.Labels = map[string]string{}
			}
			c.svc.Spec.Placement.Labels[found[1][len("labels."):]] = found[2]
		}
	}
}

// restartPolicy converts a policy, and returns what is left of it.
func (c *converter) restartPolicy(in types.RestartPolicy) *types.RestartPolicy {
	out := &c.svc.Spec.Container.RestartPolicy
	switch in.Condition {
	case "none":
		out.Name = api.RestartNo
	case "on-failure":
		out.Name = api.RestartOnFailure
		if in.MaxAttempts != nil {
			n, err := strconv.Atoi(strconv.FormatUint(*in.MaxAttempts, 10))
			if err == nil {
				out.MaxRetries, in.MaxAttempts = n, nil
			}
		}
	case "any", "":
		out.Name = api.RestartUnlessStopped
	default:
		return &in
	}
	in.Condition = ""
	return &in
}
