package compose

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/compose-spec/compose-go/v2/types"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// container converts what makes a container what it is.
func (c *converter) container() {
	in, out := &c.in, &c.svc.Spec.Container
	out.Image = in.Image
	out.Command, out.Entrypoint, in.Command, in.Entrypoint = in.Command, in.Entrypoint, nil, nil
	out.User, out.WorkingDir, in.User, in.WorkingDir = in.User, in.WorkingDir, "", ""
	out.Privileged, out.ReadOnly, in.Privileged, in.ReadOnly = in.Privileged, in.ReadOnly, false, false
	out.CapAdd, out.CapDrop, in.CapAdd, in.CapDrop = in.CapAdd, in.CapDrop, nil, nil
	out.Labels, out.Sysctls, in.Labels, in.Sysctls = emptyIsNil(in.Labels), emptyIsNil(in.Sysctls), nil, nil
	out.Init, in.Init = in.Init != nil && *in.Init, nil
	out.StopSignal, in.StopSignal = in.StopSignal, ""
	out.StopGracePeriod, in.StopGracePeriod = duration(in.StopGracePeriod), nil
	if in.Pid == string(api.PidModeHost) {
		out.PidMode, in.Pid = api.PidModeHost, ""
	}
	c.logging()
	c.pullPolicy()
	c.restart()
	c.healthCheck()
	if in.Platform != "" {
		parts := strings.SplitN(in.Platform, "/", 3)
		c.svc.Spec.Placement.Platform = strings.Join(parts[:min(2, len(parts))], "/")
		if len(parts) == 1 {
			c.svc.Spec.Placement.Platform = "linux/" + parts[0]
		}
		in.Platform = ""
	}
}

func emptyIsNil[M ~map[string]string](m M) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}

func duration(d *types.Duration) *metav1.Duration {
	if d == nil {
		return nil
	}
	return &metav1.Duration{Duration: time.Duration(*d)}
}

func durationOr0(d *types.Duration) metav1.Duration {
	if d == nil {
		return metav1.Duration{}
	}
	return *duration(d)
}

func (c *converter) logging() {
	in := &c.in
	if l := in.Logging; l != nil && l.Driver != "" {
		c.svc.Spec.Container.LogDriver = &api.LogDriver{Name: l.Driver, Options: emptyIsNil(l.Options)}
		in.Logging = nil
	}
	if in.LogDriver != "" {
		c.svc.Spec.Container.LogDriver = &api.LogDriver{Name: in.LogDriver, Options: emptyIsNil(in.LogOpt)}
		in.LogDriver, in.LogOpt = "", nil
	}
}

// pullPolicy leaves those that build images, and those that pull from time to time.
func (c *converter) pullPolicy() {
	for name, policy := range map[string]api.PullPolicy{
		"": "", types.PullPolicyAlways: api.PullAlways, types.PullPolicyNever: api.PullNever,
		types.PullPolicyMissing: api.PullMissing, types.PullPolicyIfNotPresent: api.PullMissing,
	} {
		if c.in.PullPolicy == name {
			c.svc.Spec.Container.PullPolicy, c.in.PullPolicy = policy, ""
			return
		}
	}
}

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

func (c *converter) healthCheck() {
	in := c.in.HealthCheck
	if in == nil {
		return
	}
	c.in.HealthCheck = nil
	if in.Disable || len(in.Test) > 0 && in.Test[0] == "NONE" {
		c.svc.Spec.Container.HealthCheck = &api.HealthCheck{Disable: true}
		return
	}
	check := &api.HealthCheck{
		Test: in.Test, Interval: durationOr0(in.Interval), Timeout: durationOr0(in.Timeout),
		StartPeriod: durationOr0(in.StartPeriod), StartInterval: durationOr0(in.StartInterval),
	}
	if in.Retries != nil {
		check.Retries = int(*in.Retries) //nolint:gosec // a number of tries
	}
	c.svc.Spec.Container.HealthCheck = check
}

// environment takes the variables with their values, which a reading of the files has brought together.
func (c *converter) environment() {
	in := c.in.Environment
	c.in.Environment, c.in.EnvFiles = nil, nil
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if in[name] == nil {
			c.remark("environment."+name, "it is not set here, and is left out")
			continue
		}
		if !utf8.ValidString(*in[name]) {
			c.fail("environment."+name, "its value is no text, and would not arrive as it is")
			continue
		}
		if c.svc.Spec.Container.Env == nil {
			c.svc.Spec.Container.Env = map[string]string{}
		}
		c.svc.Spec.Container.Env[name] = *in[name]
	}
}

// quantity returns a size, or nil for none.
func quantity(bytes types.UnitBytes) *resource.Quantity {
	if bytes <= 0 {
		return nil
	}
	return resource.NewQuantity(int64(bytes), resource.BinarySI)
}

func cpus(n float32) *resource.Quantity {
	if n <= 0 {
		return nil
	}
	q, err := resource.ParseQuantity(strconv.FormatFloat(float64(n), 'f', -1, 32))
	if err != nil {
		return nil
	}
	return &q
}

// resources converts the limits that stand at the service itself.
func (c *converter) resources() {
	in, out := &c.in, &c.svc.Spec.Container.Resources
	out.CPU, in.CPUS = cpus(in.CPUS), 0
	out.Memory, in.MemLimit = quantity(in.MemLimit), 0
	out.MemoryReservation, in.MemReservation = quantity(in.MemReservation), 0
	out.ShmSize, in.ShmSize = quantity(in.ShmSize), 0
	if in.PidsLimit > 0 {
		out.PidsLimit = in.PidsLimit
	}
	in.PidsLimit = 0
	// Memory and swap together are never more than the memory.
	if in.MemSwapLimit == types.UnitBytes(value(out.Memory)) {
		in.MemSwapLimit = 0
	}
	for _, d := range in.Devices {
		out.Devices = append(out.Devices, api.Device{Host: d.Source, Container: d.Target, Permissions: d.Permissions})
	}
	in.Devices = nil
	if len(in.Gpus) == 1 {
		out.GPUs, in.Gpus = gpus(in.Gpus[0]), nil
	}
	for name, limit := range in.Ulimits {
		if out.Ulimits == nil {
			out.Ulimits = map[string]api.Ulimit{}
		}
		out.Ulimits[name] = api.Ulimit{Soft: int64(limit.Soft), Hard: int64(limit.Hard)}
		if limit.Single != 0 {
			out.Ulimits[name] = api.Ulimit{Soft: int64(limit.Single), Hard: int64(limit.Single)}
		}
	}
	in.Ulimits = nil
}

// gpus converts a request for devices that are GPUs.
func gpus(in types.DeviceRequest) *api.GPUs {
	return &api.GPUs{
		Count: int(in.Count), IDs: in.IDs, Driver: in.Driver, Options: emptyIsNil(in.Options),
		Capabilities: slices.DeleteFunc(slices.Clone(in.Capabilities), func(c string) bool { return c == gpu }),
	}
}

// gpu is the capability of all GPUs.
const gpu = "gpu"

func value(q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	return q.Value()
}

// ports converts what is published to ports of machines, and takes those of the extension as they are.
func (c *converter) ports() {
	for i, p := range c.in.Ports {
		port := api.PortSpec{Mode: api.PortModeHost, HostIP: p.HostIP, Protocol: api.Protocol(p.Protocol)}
		target, published := uint64(p.Target), uint64(0)
		var err error
		if p.Published != "" {
			published, err = strconv.ParseUint(p.Published, 10, 16)
		}
		if err != nil || target > math.MaxUint16 {
			// It is a range: engines pick from those, and nobody else could tell which port is taken.
			c.lacks(fmt.Sprintf("ports[%d]", i))
			continue
		}
		if p.AppProtocol != "" {
			c.lacks(fmt.Sprintf("ports[%d].app_protocol", i))
		}
		port.ContainerPort, port.PublishedPort = uint16(target), uint16(published) //nolint:gosec // they were looked at
		c.svc.Spec.Ports = append(c.svc.Spec.Ports, port)
	}
	c.in.Ports = nil
	for i, text := range c.texts("x-ports") {
		port, err := api.ParsePort(text)
		if err != nil {
			c.fail(fmt.Sprintf("x-ports[%d]", i), "%w", err)
			continue
		}
		c.svc.Spec.Ports = append(c.svc.Spec.Ports, port)
	}
	c.svc.Spec.Placement.Machines = c.texts("x-machines")
}

// texts returns those of an extension: one, or a list.
func (c *converter) texts(extension string) []string {
	var texts []string
	switch value := c.in.Extensions[extension].(type) {
	case nil:
	case string:
		texts = append(texts, value)
	case []any:
		for _, v := range value {
			texts = append(texts, fmt.Sprint(v))
		}
	default:
		c.fail(extension, "it is no list of texts")
	}
	return texts
}
