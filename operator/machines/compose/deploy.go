package compose

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// deploy converts how many containers there are, where, and how they are updated.
func (c *converter) deploy() {
	spec := &c.svc.Spec.ServiceSpec
	in := c.in.Deploy
	if in == nil {
		spec.Replicas = count(take(&c.in.Scale))
		return
	}
	if c.in.Scale != nil {
		// The library gives deploy what scale says.
		in.Replicas = nil
	}
	switch in.Mode {
	case "global":
		spec.Mode, in.Mode = api.ServiceModeGlobal, ""
	case "replicated":
		in.Mode = ""
	}
	if spec.Mode != api.ServiceModeGlobal {
		spec.Replicas = count(cmp.Or(take(&c.in.Scale), take(&in.Replicas)))
	}
	c.update(in)
	c.limits(in)
	c.placement(in)
	if p := in.RestartPolicy; p != nil {
		in.RestartPolicy = c.restartPolicy(*p)
	}
}

func count(n *int) *int32 {
	if n == nil {
		return nil
	}
	replicas := int32(min(*n, math.MaxInt32)) //nolint:gosec // a number of containers
	return &replicas
}

func (c *converter) update(in *types.DeployConfig) {
	if in.UpdateConfig == nil {
		return
	}
	from, to := *in.UpdateConfig, &c.svc.Spec.Update
	*in.UpdateConfig = types.UpdateConfig{Extensions: from.Extensions}
	if from.Parallelism != nil {
		// 0 is all at once.
		to.Parallelism = int(*from.Parallelism) //nolint:gosec // a number of containers
		switch {
		case to.Parallelism == 0 && c.svc.Spec.Mode == api.ServiceModeGlobal:
			to.Parallelism = api.MaxReplicas
		case to.Parallelism == 0:
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
		out.CPU = cmp.Or(cpus(float32(take(&l.NanoCPUs))), out.CPU)
		out.Memory = cmp.Or(quantity(take(&l.MemoryBytes)), out.Memory)
		out.PidsLimit = cmp.Or(max(0, take(&l.Pids)), out.PidsLimit)
	}
	if r := in.Resources.Reservations; r != nil {
		out.MemoryReservation = cmp.Or(quantity(take(&r.MemoryBytes)), out.MemoryReservation)
		const areGPUs = false
		c.gpus(r.Devices, areGPUs)
	}
}

// constraint is one of those that have a counterpart.
var constraint = regexp.MustCompile(`^node\.(hostname|labels\.[^\s=!]+)\s*==\s*(\S+)$`)

// placement narrows what was said before: all constraints hold at once.
func (c *converter) placement(in *types.DeployConfig) {
	for i, text := range take(&in.Placement.Constraints) {
		part := fmt.Sprintf("deploy.placement.constraints[%d] (%s)", i, text)
		found := constraint.FindStringSubmatch(strings.TrimSpace(text))
		if found == nil {
			c.lacks(part)
			continue
		}
		label, labelled := strings.CutPrefix(found[1], "labels.")
		if !labelled {
			c.allow(part, []string{found[2]})
			continue
		}
		if c.svc.Spec.Placement.Labels == nil {
			c.svc.Spec.Placement.Labels = map[string]string{}
		}
		if other, set := c.svc.Spec.Placement.Labels[label]; set && other != found[2] {
			c.fail(part, "no machine is left: another constraint says that the label is %s", other)
		}
		c.svc.Spec.Placement.Labels[label] = found[2]
	}
}
