package compose

import (
	"cmp"
	"maps"
	"path"
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

// take returns what a field has, and takes it out: what is left in the end is named.
func take[T any](field *T) T {
	value := *field
	var none T
	*field = none
	return value
}

// container converts what makes a container what it is.
func (c *converter) container() {
	in, out := &c.in, &c.svc.Spec.Container
	out.Image = in.Image
	out.Command, out.Entrypoint = take(&in.Command), take(&in.Entrypoint)
	out.User, out.WorkingDir = take(&in.User), take(&in.WorkingDir)
	out.Privileged, out.ReadOnly = take(&in.Privileged), take(&in.ReadOnly)
	out.CapAdd, out.CapDrop = take(&in.CapAdd), take(&in.CapDrop)
	out.Labels, out.Sysctls = emptyIsNil(take(&in.Labels)), emptyIsNil(take(&in.Sysctls))
	if init := take(&in.Init); init != nil {
		out.Init = *init
	}
	out.StopSignal = take(&in.StopSignal)
	out.StopGracePeriod = duration(take(&in.StopGracePeriod))
	if in.Pid == string(api.PidModeHost) {
		out.PidMode, in.Pid = api.PidModeHost, ""
	}
	c.logging()
	c.pullPolicy()
	c.restart()
	c.healthCheck()
	c.platform()
}

// architectures are other words for those that images and machines have, and their variants.
var architectures = map[string]string{
	"aarch64": "arm64", "arm64/v8": "arm64", "arm64/8": "arm64", "x86_64": "amd64", "x86-64": "amd64", "amd64/v1": "amd64", "i386": "386",
	"armhf": "arm/v7", "armel": "arm/v6",
}

// platform converts an operating system, an architecture or both. Machines are Linux; a variant they don't say.
func (c *converter) platform() {
	const linux = "linux"
	platform := strings.ToLower(c.in.Platform)
	system, architecture, both := strings.Cut(platform, "/")
	if !both && system != linux {
		system, architecture = linux, platform
	}
	for range 2 {
		architecture = cmp.Or(architectures[architecture], architecture)
	}
	architecture, variant, _ := strings.Cut(architecture, "/")
	switch {
	case platform == "" || strings.Contains(variant, "/") || slices.Contains(otherSystems, architecture):
		return
	case variant != "":
		c.lacks("platform (" + variant + ")")
	}
	if c.in.Platform = ""; architecture != "" {
		c.svc.Spec.Placement.Platform = system + "/" + architecture
	}
}

// otherSystems are operating systems for which there are images, but no machines.
var otherSystems = []string{"windows", "darwin", "freebsd"}

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
		c.svc.Spec.Container.LogDriver = &api.LogDriver{Name: take(&l.Driver), Options: emptyIsNil(take(&l.Options))}
	}
	if in.LogDriver != "" {
		c.svc.Spec.Container.LogDriver = &api.LogDriver{Name: take(&in.LogDriver), Options: emptyIsNil(take(&in.LogOpt))}
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

func (c *converter) healthCheck() {
	if c.in.HealthCheck == nil {
		return
	}
	in := *c.in.HealthCheck
	*c.in.HealthCheck = types.HealthCheckConfig{Extensions: in.Extensions}
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
	in := take(&c.in.Environment)
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
	out.CPU = cpus(take(&in.CPUS))
	out.Memory = quantity(take(&in.MemLimit))
	out.MemoryReservation = quantity(take(&in.MemReservation))
	out.ShmSize = quantity(take(&in.ShmSize))
	out.PidsLimit = max(0, take(&in.PidsLimit))
	// Memory and swap together are never more than the memory.
	if in.MemSwapLimit == types.UnitBytes(value(out.Memory)) {
		in.MemSwapLimit = 0
	}
	for i := range in.Devices {
		d := &in.Devices[i]
		// Others are those of CDI, which drivers of the engine know by name.
		if path.IsAbs(d.Source) && (d.Target == "" || path.IsAbs(d.Target)) && strings.Trim(d.Permissions, "rwm") == "" {
			out.Devices = append(out.Devices, api.Device{Host: take(&d.Source), Container: take(&d.Target), Permissions: take(&d.Permissions)})
		}
	}
	const areGPUs = true
	c.gpus(in.Gpus, areGPUs)
	for name, limit := range in.Ulimits {
		if limit == nil {
			continue
		}
		if out.Ulimits == nil {
			out.Ulimits = map[string]api.Ulimit{}
		}
		soft, hard := take(&limit.Soft), take(&limit.Hard)
		if single := take(&limit.Single); single != 0 {
			soft, hard = single, single
		}
		out.Ulimits[name] = api.Ulimit{Soft: int64(soft), Hard: int64(hard)}
	}
}

// gpus converts the first request for GPUs: a container of ours has one. No devices at all can't be asked for.
func (c *converter) gpus(requests []types.DeviceRequest, areGPUs bool) {
	out := &c.svc.Spec.Container.Resources
	for i := range requests {
		r := &requests[i]
		if out.GPUs != nil || r.Count == 0 && len(r.IDs) == 0 || !areGPUs && !slices.Contains(r.Capabilities, gpu) {
			continue
		}
		out.GPUs = &api.GPUs{
			Count: int(r.Count), IDs: r.IDs, Driver: r.Driver, Options: emptyIsNil(r.Options),
			Capabilities: slices.DeleteFunc(r.Capabilities, func(c string) bool { return c == gpu }),
		}
		*r = types.DeviceRequest{}
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
