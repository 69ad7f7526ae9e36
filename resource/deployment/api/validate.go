package api

import (
	"fmt"
	"maps"
	"net/netip"
	"path"
	"regexp"
	"slices"

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

func absolute(p *field.Path, value string) field.ErrorList {
	if !path.IsAbs(value) {
		return field.ErrorList{field.Invalid(p, value, "must be an absolute path")}
	}
	return nil
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
