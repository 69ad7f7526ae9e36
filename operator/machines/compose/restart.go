package compose

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// restart knows that an engine would start again what was stopped on purpose with the policy always.
func (c *converter) restart() {
	name, retries, limited := strings.Cut(c.in.Restart, ":")
	policy := api.RestartPolicy{Name: api.RestartPolicyName(name)}
	switch name {
	case types.RestartPolicyAlways:
		policy.Name = api.RestartUnlessStopped
	case "", types.RestartPolicyNo, types.RestartPolicyOnFailure, types.RestartPolicyUnlessStopped:
	default:
		return
	}
	if limited {
		n, err := strconv.Atoi(retries)
		if err != nil {
			return
		}
		policy.MaxRetries = n
	}
	c.svc.Spec.Container.RestartPolicy, c.in.Restart = policy, ""
}

// restartPolicy converts a policy, and returns what is left of it.
func (c *converter) restartPolicy(in types.RestartPolicy) *types.RestartPolicy {
	out := &c.svc.Spec.Container.RestartPolicy
	switch in.Condition {
	case "none":
		*out = api.RestartPolicy{Name: api.RestartNo}
	case "on-failure":
		*out = api.RestartPolicy{Name: api.RestartOnFailure}
		if in.MaxAttempts != nil {
			n, err := strconv.Atoi(strconv.FormatUint(*in.MaxAttempts, 10))
			if err == nil {
				out.MaxRetries, in.MaxAttempts = n, nil
			}
		}
	case "any", "":
		*out = api.RestartPolicy{Name: api.RestartUnlessStopped}
	default:
		return &in
	}
	in.Condition = ""
	return &in
}

// job makes a job of a service that others wait for until it has completed, or that is one in the words of Swarm.
func (c *converter) job(name string) {
	spec := &c.svc.Spec.ServiceSpec
	job := c.completes(name)
	if d := c.in.Deploy; d != nil && (d.Mode == "replicated-job" || d.Mode == "global-job") {
		job = true
		if d.Mode == "global-job" {
			c.lackingJob("deploy.mode", "a job runs on one machine, and not on each")
		}
		d.Mode = ""
	}
	if !job {
		return
	}
	if spec.Mode == api.ServiceModeGlobal {
		c.lackingJob("deploy.mode", "a job runs on one machine, and not on each")
	}
	if n := spec.Replicas; n != nil && *n == 0 {
		c.fail("scale", "a job can't have 0 containers: leave the service out")
	} else if n != nil && *n != 1 {
		c.lackingJob("deploy.replicas", "a job has one container")
	}
	if spec.Update != (api.UpdateConfig{}) {
		c.lacks("deploy.update_config")
	}
	if spec.Container.RestartPolicy.Name == api.RestartUnlessStopped {
		c.lackingJob("restart", "a job is not started again after it has ended with 0")
		spec.Container.RestartPolicy.Name = api.RestartOnFailure
	}
	spec.Mode, spec.Replicas, spec.Update = api.ServiceModeJob, nil, api.UpdateConfig{}
}

// lackingJob names what a job can't have.
func (c *converter) lackingJob(part, text string) {
	c.out.Remarks = append(c.out.Remarks, Remark{Path: c.at(part), Text: text, Lacking: true})
}

// completes reports whether a service of the project, also of a profile that is not chosen, waits until another one has completed.
func (c *converter) completes(name string) bool {
	for _, services := range []types.Services{c.project.Services, c.project.DisabledServices} {
		for _, other := range services {
			if other.DependsOn[name].Condition == types.ServiceConditionCompletedSuccessfully {
				return true
			}
		}
	}
	return false
}

// dependsOn converts what the service waits for.
func (c *converter) dependsOn(name string) {
	implied := impliedBy(c.project.Services[name])
	for _, on := range slices.Sorted(maps.Keys(c.in.DependsOn)) {
		d, part := c.in.DependsOn[on], "depends_on."+on
		if other, there := c.project.Services[on]; !there || other.Provider != nil {
			c.lacks(part)
			delete(c.in.DependsOn, on)
			continue
		}
		if implied[on] {
			d.Restart = false
		}
		if !d.Required {
			c.lacks(part + ".required")
		}
		if d.Condition != types.ServiceConditionCompletedSuccessfully && c.completes(on) {
			c.remark(part, on+" is a job, and is waited for until it has completed")
		}
		d.Condition, d.Required = "", false
		c.in.DependsOn[on] = d
		c.svc.Spec.DependsOn = append(c.svc.Spec.DependsOn, objectName(on))
	}
}

// impliedBy returns the services that a service depends on because it uses something of them, and which are restarted with them.
func impliedBy(in types.ServiceConfig) map[string]bool {
	implied := map[string]bool{}
	for _, link := range in.Links {
		on, _, _ := strings.Cut(link, ":")
		implied[on] = true
	}
	for _, of := range []string{in.NetworkMode, in.Ipc, in.Pid, in.Uts, in.Cgroup} {
		if on, is := strings.CutPrefix(of, types.ServicePrefix); is {
			implied[on] = true
		}
	}
	return implied
}
