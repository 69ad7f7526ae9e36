package api

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate returns every fault of a specification at once, each with the path of its field. What is not set is no fault where there
// is a default, the name included. While there is too much of something, only that is told.
func (s *ServiceSpec) Validate() error {
	if errs := s.validateCounts(); len(errs) > 0 {
		// The rest compares all of a kind with each other.
		return errs.ToAggregate()
	}
	var errs field.ErrorList
	if s.Name != "" {
		errs = append(errs, dnsLabel(field.NewPath("name"), s.Name)...)
	}
	errs = append(errs, oneOf(field.NewPath("mode"), s.Mode, ServiceModeReplicated, ServiceModeGlobal, ServiceModeJob)...)
	if s.Replicas != nil {
		switch s.Mode {
		case ServiceModeGlobal:
			errs = append(errs, field.Forbidden(field.NewPath("replicas"), "a global service has one container on each machine"))
		case ServiceModeJob:
			errs = append(errs, field.Forbidden(field.NewPath("replicas"), "a job has one container"))
		}
		errs = append(errs, notNegative(field.NewPath("replicas"), int64(*s.Replicas))...)
		if *s.Replicas > MaxReplicas {
			errs = append(errs, field.Invalid(field.NewPath("replicas"), *s.Replicas, fmt.Sprintf("must be %d at most", MaxReplicas)))
		}
	}
	errs = append(errs, s.Container.validate(field.NewPath("container"))...)
	errs = append(errs, s.validatePorts(field.NewPath("ports"))...)
	errs = append(errs, s.validateVolumes()...)
	errs = append(errs, s.validateConfigs()...)
	for i, m := range s.Placement.Machines {
		if m == "" || slices.Contains(s.Placement.Machines[:i], m) {
			errs = append(errs, field.Invalid(field.NewPath("placement", "machines").Index(i), m, "is empty or listed twice"))
		}
	}
	if p := s.Placement.Platform; p != "" && !platform.MatchString(p) {
		errs = append(errs, field.Invalid(field.NewPath("placement", "platform"), p, "must be an operating system and an architecture, such as linux/arm64"))
	}
	if s.Mode == ServiceModeJob {
		errs = append(errs, s.validateJob()...)
	}
	if s.PreDeploy != nil {
		errs = append(errs, s.PreDeploy.validate(field.NewPath("preDeploy"), s)...)
	}
	errs = append(errs, s.validateUpdate(field.NewPath("update"))...)
	return errs.ToAggregate()
}

// validateJob finds what a container that runs to its end can't have.
func (s *ServiceSpec) validateJob() field.ErrorList {
	var errs field.ErrorList
	if s.Container.RestartPolicy.Name == RestartUnlessStopped {
		errs = append(errs, field.Invalid(field.NewPath("container", "restartPolicy", "name"), RestartUnlessStopped,
			"a job with it would never end: write no or on-failure"))
	}
	if s.PreDeploy != nil {
		errs = append(errs, field.Forbidden(field.NewPath("preDeploy"), "a job is no deployment: write another job"))
	}
	for i, p := range s.Ports {
		if p.Mode != PortModeHost {
			errs = append(errs, field.Forbidden(field.NewPath("ports").Index(i), "a job has no ports in mode ingress: set mode to host"))
		}
	}
	return errs
}

// validateCounts finds lists that are too long.
func (s *ServiceSpec) validateCounts() field.ErrorList {
	var errs field.ErrorList
	container := field.NewPath("container")
	for _, list := range []struct {
		p      *field.Path
		length int
	}{
		{field.NewPath("ports"), len(s.Ports)}, {field.NewPath("volumes"), len(s.Volumes)}, {field.NewPath("configs"), len(s.Configs)},
		{container.Child("volumeMounts"), len(s.Container.VolumeMounts)}, {container.Child("configMounts"), len(s.Container.ConfigMounts)},
		{field.NewPath("placement", "machines"), len(s.Placement.Machines)},
	} {
		if list.length > MaxItems {
			errs = append(errs, field.TooMany(list.p, list.length, MaxItems))
		}
	}
	return errs
}

// ipv4Like is what clients take for an IPv4 address instead of a host name (URL Standard, host parsing).
var ipv4Like = regexp.MustCompile(`(^|\.)[0-9]+$`)

// urlPath is a path that is written in URLs as it is.
var urlPath = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)+$`)

// platform is an operating system and an architecture, in the words of Go.
var platform = regexp.MustCompile(`^[a-z0-9]+/[a-z0-9]+$`)

func dnsLabel(p *field.Path, name string) field.ErrorList {
	var errs field.ErrorList
	for _, fault := range validation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(p, name, fault))
	}
	return errs
}

func oneOf[T ~string](p *field.Path, value T, allowed ...T) field.ErrorList {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(p, value, allowed)}
}

func notNegative(p *field.Path, value int64) field.ErrorList {
	if value < 0 {
		return field.ErrorList{field.Invalid(p, value, "must not be negative")}
	}
	return nil
}

// wait is for times for which a plan waits.
func wait(p *field.Path, value *metav1.Duration) field.ErrorList {
	switch {
	case value == nil:
		return nil
	case value.Duration < 0:
		return field.ErrorList{field.Invalid(p, value.Duration.String(), "must not be negative")}
	case value.Duration > MaxWait:
		return field.ErrorList{field.Invalid(p, value.Duration.String(), "must be "+MaxWait.String()+" at most")}
	}
	return nil
}

// positiveWait is for times of which none is too little.
func positiveWait(p *field.Path, value *metav1.Duration) field.ErrorList {
	if value != nil && value.Duration <= 0 {
		return field.ErrorList{field.Invalid(p, value.Duration.String(), "must be more than 0")}
	}
	return wait(p, value)
}

// quantity is what the definitions take, too.
var quantity = regexp.MustCompile(`^\+?([0-9]{1,19}(\.[0-9]{0,9})?|\.[0-9]{1,9})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`)

// IsQuantity tells whether a text is a quantity with a bounded number of digits. A text that is none may take hours to be read as one, such
// as 1e-2000000000: look at it before it is decoded, unless a server has done so.
func IsQuantity(text string) bool { return quantity.MatchString(text) }

// maxExponent is far beyond what there is of anything.
const maxExponent = 99

// positiveQuantity is for what engines count in a unit, in 64 bits.
func positiveQuantity(p *field.Path, value *resource.Quantity, unit resource.Scale) field.ErrorList {
	if value == nil {
		return nil
	}
	q := value.DeepCopy()
	// A number that is compared, rounded or printed is written out: 1e2000000000 takes gigabytes. Its exponent is known without that.
	if exponent := -int64(q.AsDec().Scale()); exponent < -maxExponent || exponent > maxExponent {
		return field.ErrorList{field.Invalid(p, fmt.Sprintf("%de%d", q.AsDec().UnscaledBig(), exponent), "its exponent must be from -99 to 99")}
	}
	if q.Sign() <= 0 {
		return field.ErrorList{field.Invalid(p, q.String(), "must be more than 0; leave it out for no limit")}
	}
	if q.Cmp(*resource.NewScaledQuantity(math.MaxInt64, unit)) > 0 {
		return field.ErrorList{field.Invalid(p, q.String(), "is more than engines can count; leave it out for no limit")}
	}
	return nil
}

func absolute(p *field.Path, value string) field.ErrorList {
	if !path.IsAbs(value) {
		return field.ErrorList{field.Invalid(p, value, "must be an absolute path")}
	}
	return nil
}

// IsEnvName reports whether a text is a name that environment variables can have. Engines take more
// than shells do, such as 2FA and Logging:LogLevel:Default.
func IsEnvName(name string) bool {
	return name != "" && utf8.ValidString(name) && !strings.ContainsAny(name, "=\x00")
}

func envNames[V any](p *field.Path, env map[string]V) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !IsEnvName(name) {
			errs = append(errs, field.Invalid(p, name, "is not a name of an environment variable"))
		}
	}
	return errs
}

func (c *ContainerSpec) validate(p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.Image == "" {
		errs = append(errs, field.Required(p.Child("image"), ""))
	} else if _, err := ParseImageName(c.Image); err != nil {
		errs = append(errs, field.Invalid(p.Child("image"), c.Image, err.Error()))
	}
	errs = append(errs, oneOf(p.Child("pullPolicy"), c.PullPolicy, PullAlways, PullMissing, PullNever)...)
	errs = append(errs, oneOf(p.Child("pidMode"), c.PidMode, PidModeHost)...)
	errs = append(errs, envNames(p.Child("env"), c.Env)...)
	errs = append(errs, envNames(p.Child("secretEnv"), c.SecretEnv)...)
	for _, name := range slices.Sorted(maps.Keys(c.SecretEnv)) {
		if _, both := c.Env[name]; both {
			errs = append(errs, field.Duplicate(p.Child("secretEnv"), name))
		}
	}
	if c.Command != nil && c.Entrypoint != nil && len(c.Command)+len(c.Entrypoint) == 0 {
		errs = append(errs, field.Invalid(p.Child("command"), "[]", "there is nothing to run, because entrypoint is empty too"))
	}
	if c.HealthCheck != nil {
		errs = append(errs, c.HealthCheck.validate(p.Child("healthCheck"))...)
	}
	errs = append(errs, c.Resources.validate(p.Child("resources"))...)
	if c.LogDriver != nil && c.LogDriver.Name == "" {
		errs = append(errs, field.Required(p.Child("logDriver", "name"), ""))
	}
	errs = append(errs, wait(p.Child("stopGracePeriod"), c.StopGracePeriod)...)
	r := p.Child("restartPolicy")
	errs = append(errs, oneOf(r.Child("name"), c.RestartPolicy.Name, RestartUnlessStopped, RestartOnFailure, RestartNo)...)
	errs = append(errs, notNegative(r.Child("maxRetries"), int64(c.RestartPolicy.MaxRetries))...)
	if c.RestartPolicy.MaxRetries > 0 && c.RestartPolicy.Name != RestartOnFailure {
		errs = append(errs, field.Forbidden(r.Child("maxRetries"), "only with on-failure"))
	}
	return errs
}

func (h *HealthCheck) validate(p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if h.Disable && (len(h.Test) > 0 || h.Interval.Duration != 0 || h.Timeout.Duration != 0 || h.StartPeriod.Duration != 0 || h.Retries != 0) {
		errs = append(errs, field.Forbidden(p.Child("disable"), "together with other fields of the health check"))
	}
	if len(h.Test) > 0 && (len(h.Test) == 1 || h.Test[0] != "CMD" && h.Test[0] != "CMD-SHELL") {
		errs = append(errs, field.Invalid(p.Child("test"), strings.Join(h.Test, " "), "must be CMD or CMD-SHELL and a command"))
	}
	for _, d := range []struct {
		name  string
		value metav1.Duration
	}{{"interval", h.Interval}, {"timeout", h.Timeout}, {"startPeriod", h.StartPeriod}, {"startInterval", h.StartInterval}} {
		// Engines refuse less than a millisecond.
		if d.value.Duration != 0 && d.value.Duration < time.Millisecond {
			errs = append(errs, field.Invalid(p.Child(d.name), d.value.Duration.String(), "must be at least 1ms"))
		}
	}
	return append(errs, notNegative(p.Child("retries"), int64(h.Retries))...)
}

func (r *Resources) validate(p *field.Path) field.ErrorList {
	errs := positiveQuantity(p.Child("cpu"), r.CPU, resource.Nano)
	errs = append(errs, positiveQuantity(p.Child("memory"), r.Memory, 0)...)
	errs = append(errs, positiveQuantity(p.Child("memoryReservation"), r.MemoryReservation, 0)...)
	errs = append(errs, positiveQuantity(p.Child("shmSize"), r.ShmSize, 0)...)
	if len(errs) == 0 && r.Memory != nil && r.MemoryReservation != nil && r.MemoryReservation.Cmp(*r.Memory) > 0 {
		errs = append(errs, field.Invalid(p.Child("memoryReservation"), r.MemoryReservation.String(), "is more than memory"))
	}
	errs = append(errs, notNegative(p.Child("pidsLimit"), r.PidsLimit)...)
	for i, d := range r.Devices {
		at := p.Child("devices").Index(i)
		errs = append(errs, absolute(at.Child("host"), d.Host)...)
		if d.Container != "" {
			errs = append(errs, absolute(at.Child("container"), d.Container)...)
		}
		if strings.Trim(d.Permissions, "rwm") != "" {
			errs = append(errs, field.Invalid(at.Child("permissions"), d.Permissions, "may hold r, w and m"))
		}
	}
	if g := r.GPUs; g != nil {
		at := p.Child("gpus")
		if g.Count < -1 {
			errs = append(errs, field.Invalid(at.Child("count"), g.Count, "must be a number, or -1 for all"))
		}
		if g.Count != 0 && len(g.IDs) > 0 {
			errs = append(errs, field.Forbidden(at.Child("count"), "together with ids"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Ulimits)) {
		if u := r.Ulimits[name]; u.Hard != -1 && (u.Soft > u.Hard || u.Soft == -1) {
			errs = append(errs, field.Invalid(p.Child("ulimits").Key(name), u.Soft, "soft is more than hard"))
		}
	}
	return errs
}

func (s *ServiceSpec) validatePorts(p *field.Path) field.ErrorList {
	var errs field.ErrorList
	texts := make([]string, len(s.Ports))
	for i, port := range s.Ports {
		at := p.Index(i)
		port.setDefaults()
		texts[i] = port.String()
		errs = append(errs, oneOf(at.Child("mode"), port.Mode, PortModeIngress, PortModeHost)...)
		if port.ContainerPort == 0 {
			errs = append(errs, field.Required(at.Child("containerPort"), ""))
		}
		switch port.Mode {
		case PortModeIngress:
			errs = append(errs, oneOf(at.Child("protocol"), port.Protocol, ProtocolHTTP, ProtocolHTTPS)...)
			if port.HostIP != "" {
				errs = append(errs, field.Forbidden(at.Child("hostIP"), "only in mode host"))
			}
			if port.Hostname != "" {
				for _, fault := range validation.IsDNS1123Subdomain(port.Hostname) {
					errs = append(errs, field.Invalid(at.Child("hostname"), port.Hostname, fault))
				}
				if ipv4Like.MatchString(port.Hostname) {
					errs = append(errs, field.Invalid(at.Child("hostname"), port.Hostname, "clients read it as an IP address: its last part must not be a number"))
				}
			}
			if port.Path != "" && !urlPath.MatchString(port.Path) {
				errs = append(errs, field.Invalid(at.Child("path"), port.Path, "must be a path such as /api, of letters, digits and the signs -._~, without / at its end"))
			}
			if want := port.ingressPort(); port.PublishedPort != 0 && port.PublishedPort != want {
				errs = append(errs, field.Invalid(at.Child("publishedPort"), port.PublishedPort, fmt.Sprintf("must be %d with protocol %s; leave it out", want, port.Protocol)))
			}
		case PortModeHost:
			errs = append(errs, oneOf(at.Child("protocol"), port.Protocol, ProtocolTCP, ProtocolUDP, ProtocolSCTP)...)
			if port.Hostname != "" {
				errs = append(errs, field.Forbidden(at.Child("hostname"), "only in mode ingress"))
			}
			if port.Path != "" {
				errs = append(errs, field.Forbidden(at.Child("path"), "only in mode ingress"))
			}
			_, ranged := port.HostRange()
			if _, err := netip.ParseAddr(port.HostIP); port.HostIP != "" && err != nil && !ranged {
				errs = append(errs, field.Invalid(at.Child("hostIP"), port.HostIP, "is neither an IP address nor a range of them"))
			}
		}
		for j, o := range s.Ports[:i] {
			if texts[j] == texts[i] || o.ConflictsWith(port) || o.servedAs(port) {
				errs = append(errs, field.Invalid(at, texts[i], "conflicts with "+texts[j]))
				break
			}
		}
	}
	return errs
}

func (s *ServiceSpec) validateConfigs() field.ErrorList {
	var errs field.ErrorList
	p := field.NewPath("configs")
	names := make([]string, len(s.Configs))
	for i, c := range s.Configs {
		names[i] = c.Name
		if c.Name == "" {
			errs = append(errs, field.Required(p.Index(i).Child("name"), ""))
		} else if slices.Contains(names[:i], c.Name) {
			errs = append(errs, field.Duplicate(p.Index(i).Child("name"), c.Name))
		}
	}
	for i, m := range s.Container.ConfigMounts {
		at := field.NewPath("container", "configMounts").Index(i)
		if !slices.Contains(names, m.Config) {
			errs = append(errs, field.NotFound(at.Child("config"), m.Config))
		}
		if m.Mode < 0 || m.Mode > 0o7777 {
			errs = append(errs, field.Invalid(at.Child("mode"), m.Mode, "is not a file mode"))
		}
		errs = append(errs, absolute(at.Child("path"), m.Path)...)
	}
	return append(errs, s.samePath()...)
}

// samePath finds things that are mounted at one place.
func (s *ServiceSpec) samePath() field.ErrorList {
	var errs field.ErrorList
	taken := map[string]bool{}
	check := func(at *field.Path, target string) {
		target = path.Clean(target)
		if taken[target] {
			errs = append(errs, field.Duplicate(at, target))
		}
		taken[target] = true
	}
	for i, m := range s.Container.VolumeMounts {
		check(field.NewPath("container", "volumeMounts").Index(i).Child("path"), m.Path)
	}
	for i, m := range s.Container.ConfigMounts {
		check(field.NewPath("container", "configMounts").Index(i).Child("path"), m.Path)
	}
	return errs
}

func (h *PreDeployHook) validate(p *field.Path, s *ServiceSpec) field.ErrorList {
	var errs field.ErrorList
	if h.Volumes && s.Mode == ServiceModeGlobal {
		errs = append(errs, field.Forbidden(p.Child("volumes"), "it is run once, and each machine has volumes of its own"))
	}
	if len(h.Command) == 0 && len(h.Entrypoint) == 0 {
		errs = append(errs, field.Required(p.Child("command"), ""))
	}
	errs = append(errs, envNames(p.Child("env"), h.Env)...)
	for _, name := range slices.Sorted(maps.Keys(h.Env)) {
		if _, secret := s.Container.SecretEnv[name]; secret {
			errs = append(errs, field.Duplicate(p.Child("env"), name))
		}
	}
	return append(errs, positiveWait(p.Child("timeout"), h.Timeout)...)
}

func (s *ServiceSpec) validateUpdate(p *field.Path) field.ErrorList {
	u := &s.Update
	errs := notNegative(p.Child("parallelism"), int64(u.Parallelism))
	errs = append(errs, oneOf(p.Child("order"), u.Order, OrderStartFirst, OrderStopFirst)...)
	errs = append(errs, wait(p.Child("delay"), &u.Delay)...)
	errs = append(errs, wait(p.Child("monitor"), u.Monitor)...)
	errs = append(errs, positiveWait(p.Child("healthTimeout"), u.HealthTimeout)...)
	if u.MaxFailurePercent < 0 || u.MaxFailurePercent > 100 {
		errs = append(errs, field.Invalid(p.Child("maxFailurePercent"), u.MaxFailurePercent, "must be from 0 to 100"))
	}
	errs = append(errs, oneOf(p.Child("failureAction"), u.FailureAction, FailurePause, FailureContinue, FailureRollback)...)
	if u.Order != OrderStartFirst {
		return errs
	}
	if ports := s.HostPorts(); len(ports) > 0 {
		errs = append(errs, field.Forbidden(p.Child("order"), "start-first: two containers can't hold port "+ports[0].String()+
			" of a machine; publish it in mode ingress, or leave order empty"))
	}
	if volumes := s.MountedVolumes(VolumeTypeVolume); len(volumes) > 0 && (s.Mode == ServiceModeGlobal || s.DesiredReplicas() == 1) {
		errs = append(errs, field.Forbidden(p.Child("order"), "start-first: two versions would share volume "+volumes[0].Name+"; leave order empty"))
	}
	return errs
}
