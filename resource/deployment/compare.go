package deployment

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// ContainerSpecStatus says what a container needs to be as a specification says.
type ContainerSpecStatus string

const (
	// ContainerUpToDate is a container that is as it should be.
	ContainerUpToDate ContainerSpecStatus = "up-to-date"
	// ContainerNeedsUpdate is a container that can be changed in place.
	ContainerNeedsUpdate ContainerSpecStatus = "needs-update"
	// ContainerNeedsRecreate is a container that another one has to take the place of.
	ContainerNeedsRecreate ContainerSpecStatus = "needs-recreate"
)

// AttributeChange is an attribute of a container that differs.
type AttributeChange struct {
	// Path is the attribute, such as container.image.
	Path string `json:"path"`
	// Old and New are the values. An attribute that is not there is empty; one that is secret is "(hidden)".
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
	// InPlace tells that it can be changed without another container.
	InPlace bool `json:"inPlace,omitempty"`
}

// String returns the change as a line: container.image: nginx:1.26 → nginx:1.27.
func (c AttributeChange) String() string {
	return fmt.Sprintf("%s: %s → %s", c.Path, cmp.Or(c.Old, "(none)"), cmp.Or(c.New, "(none)"))
}

// EvalContainerSpecChange says what a container that was made from one specification needs to be as another says. What does not
// concern a container does not count: the number of replicas, the placement, how it is updated and pulled, the pre-deploy hook, and
// volumes and configs that are not mounted. Defaults are the same as nothing. An empty command or entrypoint is not: it is none, not that
// of the image.
//
// CPU, memory and the restart policy change in place, but engines can't take a limit off again: that needs another container.
func EvalContainerSpecChange(current api.ServiceSpec, new api.ServiceSpec) ContainerSpecStatus {
	return status(ContainerSpecChanges(current, new))
}

// ContainerSpecChanges returns the attributes that EvalContainerSpecChange looks at and that differ, by path.
func ContainerSpecChanges(current api.ServiceSpec, new api.ServiceSpec) []AttributeChange {
	return difference(attributesOf(current), attributesOf(new))
}

func status(changes []AttributeChange) ContainerSpecStatus {
	switch {
	case len(changes) == 0:
		return ContainerUpToDate
	case slices.ContainsFunc(changes, func(c AttributeChange) bool { return !c.InPlace }):
		return ContainerNeedsRecreate
	}
	return ContainerNeedsUpdate
}

// attribute is a value of a specification that a container has.
type attribute struct {
	value string
	// text is the value as it was written, for those that may be known by their fingerprints.
	text string
	// means is what the value means, for those that are written in several ways.
	means string
	// hidden values are compared and not shown.
	hidden bool
	// limit can be changed in place, and not taken off.
	limit bool
	// inPlace can be changed in place.
	inPlace bool
}

func (a attribute) shown() string {
	if a.hidden && a.value != "" {
		return "(hidden)"
	}
	return a.value
}

// same tells whether two values are the same. A record of a container has fingerprints in the place of secrets.
func (a attribute) same(b attribute) bool {
	if a.value == b.value || a.means != "" && a.means == b.means {
		return true
	}
	return a.value != "" && b.value != "" && (a.hidden || b.hidden) && api.SameText(a.text, b.text)
}

type attributes map[string]attribute

func difference(current, new attributes) []AttributeChange {
	var changes []AttributeChange
	add := func(path string, old, next attribute) {
		if old.same(next) {
			return
		}
		// One that is secret on one side may be on the other.
		old.hidden, next.hidden = old.hidden || next.hidden, old.hidden || next.hidden
		limit, inPlace := old.limit || next.limit, old.inPlace || next.inPlace
		changes = append(changes, AttributeChange{
			Path: path, Old: old.shown(), New: next.shown(), InPlace: inPlace || limit && next.value != "",
		})
	}
	for path, old := range current {
		add(path, old, new[path])
	}
	for path, next := range new {
		if _, both := current[path]; !both {
			add(path, attribute{}, next)
		}
	}
	slices.SortFunc(changes, func(a, b AttributeChange) int { return cmp.Compare(a.Path, b.Path) })
	return changes
}

// attributesOf returns all attributes that make a container what it is. Those without a value are not there.
func attributesOf(spec api.ServiceSpec) attributes {
	spec = spec.Clone()
	spec.SetDefaults()
	a := attributes{}
	a.set("name", spec.Name)
	if spec.Mode == api.ServiceModeJob {
		a.set("mode", string(spec.Mode))
	}
	a.container(&spec.Container)
	a.resources(&spec.Container.Resources)
	a.healthCheck(spec.Container.HealthCheck)
	a.mounts(&spec)
	for _, p := range spec.Ports {
		a.set("ports["+p.String()+"]", string(p.Mode))
	}
	return a
}

func (a attributes) set(path, value string) {
	if value != "" {
		a[path] = attribute{value: value}
	}
}

// image knows that nginx, nginx:latest and docker.io/library/nginx:latest are one.
func (a attributes) image(path, image string) {
	a.set(path, image)
	if ref, err := reference.ParseNormalizedNamed(image); err == nil {
		a[path] = attribute{value: image, means: reference.TagNameOnly(ref).String()}
	}
}

func (a attributes) flag(path string, value bool) {
	if value {
		a.set(path, "true")
	}
}

// list is for lists whose order matters.
func (a attributes) list(path string, values []string) {
	if len(values) > 0 {
		text, _ := json.Marshal(values)
		a.set(path, string(text))
	}
}

// command is for lists of which an empty one is something else than none.
func (a attributes) command(path string, values []string) {
	if a.list(path, values); values != nil && len(values) == 0 {
		a.set(path, "[]")
	}
}

func (a attributes) each(path string, values map[string]string) {
	for k, v := range values {
		// An empty value is something else than none.
		a[path+"."+k] = attribute{value: strconv.Quote(v), text: v}
	}
}

func secretly(text string) attribute {
	return attribute{value: strconv.Quote(text), text: text, hidden: true}
}

// hide is for values among which are passwords and tokens.
func (a attributes) hide(path string, values map[string]string) {
	for k, v := range values {
		a[path+"."+k] = secretly(v)
	}
}

// limit counts a quantity in its smallest unit, so that 1Gi and 1024Mi are the same.
func (a attributes) limit(path string, q *resource.Quantity, inPlace bool) {
	if q != nil {
		canonical := *resource.NewDecimalQuantity(*q.AsDec(), resource.BinarySI)
		if strings.HasSuffix(path, ".cpu") {
			canonical.Format = resource.DecimalSI
		}
		a[path] = attribute{value: canonical.String(), limit: inPlace}
	}
}

func (a attributes) container(c *api.ContainerSpec) {
	a.image("container.image", c.Image)
	a.command("container.command", c.Command)
	a.command("container.entrypoint", c.Entrypoint)
	a.each("container.env", c.Env)
	for name, v := range c.SecretEnv {
		// The name is one variable for the program, whether it is secret or not.
		a["container.env."+name] = secretly(string(v))
	}
	a.set("container.user", c.User)
	a.set("container.workingDir", c.WorkingDir)
	a.each("container.labels", c.Labels)
	a.flag("container.privileged", c.Privileged)
	a.set("container.pidMode", string(c.PidMode))
	a.flag("container.init", c.Init)
	a.flag("container.readOnly", c.ReadOnly)
	a.list("container.capAdd", slices.Sorted(slices.Values(c.CapAdd)))
	a.list("container.capDrop", slices.Sorted(slices.Values(c.CapDrop)))
	a.each("container.sysctls", c.Sysctls)
	if c.LogDriver != nil {
		a.set("container.logDriver", c.LogDriver.Name)
		a.hide("container.logDriver.options", c.LogDriver.Options)
	}
	a.set("container.stopSignal", c.StopSignal)
	a.set("container.stopGracePeriod", c.GracePeriod().String())
	policy := string(c.RestartPolicy.Name)
	if c.RestartPolicy.MaxRetries > 0 {
		policy += ":" + strconv.Itoa(c.RestartPolicy.MaxRetries)
	}
	a["container.restartPolicy"] = attribute{value: policy, inPlace: true}
}

func (a attributes) resources(r *api.Resources) {
	a.limit("container.resources.cpu", r.CPU, true)
	a.limit("container.resources.memory", r.Memory, true)
	a.limit("container.resources.memoryReservation", r.MemoryReservation, true)
	a.limit("container.resources.shmSize", r.ShmSize, false)
	if r.PidsLimit > 0 {
		a.set("container.resources.pidsLimit", strconv.FormatInt(r.PidsLimit, 10))
	}
	for _, d := range r.Devices {
		a.set("container.resources.devices["+d.Container+"]", d.Host+":"+d.Permissions)
	}
	if g := r.GPUs; g != nil {
		a.set("container.resources.gpus.count", strconv.Itoa(g.Count))
		a.list("container.resources.gpus.ids", g.IDs)
		a.set("container.resources.gpus.driver", g.Driver)
		a.list("container.resources.gpus.capabilities", slices.Sorted(slices.Values(g.Capabilities)))
		a.each("container.resources.gpus.options", g.Options)
	}
	for name, u := range r.Ulimits {
		a.set("container.resources.ulimits."+name, fmt.Sprintf("%d:%d", u.Soft, u.Hard))
	}
}

func (a attributes) healthCheck(h *api.HealthCheck) {
	if h == nil {
		return
	}
	a.flag("container.healthCheck.disable", h.Disable)
	a.list("container.healthCheck.test", h.Test)
	for name, d := range map[string]string{
		"interval": h.Interval.Duration.String(), "timeout": h.Timeout.Duration.String(),
		"startPeriod": h.StartPeriod.Duration.String(), "startInterval": h.StartInterval.Duration.String(),
	} {
		if d != "0s" {
			a.set("container.healthCheck."+name, d)
		}
	}
	if h.Retries > 0 {
		a.set("container.healthCheck.retries", strconv.Itoa(h.Retries))
	}
}

func (a attributes) mounts(spec *api.ServiceSpec) {
	for _, m := range spec.Container.VolumeMounts {
		i := slices.IndexFunc(spec.Volumes, func(v api.VolumeSpec) bool { return v.Name == m.Volume })
		if i < 0 {
			continue
		}
		what := describeVolume(&spec.Volumes[i])
		if m.SubPath != "" {
			what += " folder " + m.SubPath
		}
		if m.NoCopy {
			what += " without what the image has"
		}
		if m.ReadOnly {
			what += " read-only"
		}
		path := "container.volumeMounts[" + m.Path + "]"
		a.set(path, what)
		if d := spec.Volumes[i].Driver; d != nil {
			a.hide(path+".driverOptions", d.Options)
		}
	}
	for _, m := range spec.Container.ConfigMounts {
		path := "container.configMounts[" + m.Path + "]"
		a.set(path, fmt.Sprintf("config %s, owner %d:%d, mode %04o", m.Config, m.UID, m.GID, m.Mode))
		if i := slices.IndexFunc(spec.Configs, func(c api.ConfigSpec) bool { return c.Name == m.Config }); i >= 0 {
			a[path+".content"] = secretly(string(spec.Configs[i].Content))
		}
	}
}

func describeVolume(v *api.VolumeSpec) string {
	switch v.Type {
	case api.VolumeTypeBind:
		if v.Propagation != "" && v.Propagation != api.PropagationRPrivate {
			return "path " + v.HostPath + " " + string(v.Propagation)
		}
		return "path " + v.HostPath
	case api.VolumeTypeTmpfs:
		if v.Size != nil {
			return "tmpfs of " + v.Size.String()
		}
		return "tmpfs"
	}
	what := "volume " + v.Name
	if v.Driver != nil {
		what += " of driver " + v.DriverName()
	}
	return what
}
