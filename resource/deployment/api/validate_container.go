package api

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

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
