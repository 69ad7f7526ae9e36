package compose

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
)

// Convert makes MachineServices of the services of a project, as Load returns it. The project is not changed. The error says of each
// service why there can't be one.
func Convert(project *types.Project) (*Converted, error) {
	// Without names it is a copy.
	p := &projectConverter{project: project, left: project.WithServicesDisabled(), out: &Converted{}, used: map[string]bool{}, volumes: map[string]bool{}}
	for _, volume := range project.Volumes {
		p.volumes[volume.Name] = true
	}
	var errs []error
	named := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(project.Services)) {
		c := &converter{projectConverter: p, path: "services." + name, was: project.Services[name], in: p.left.Services[name]}
		delete(p.left.Services, name)
		if c.was.Provider != nil {
			p.out.add(Remark{Path: c.path + ".provider", Text: "machines have no providers: the service is left out", Lacking: true})
			continue
		}
		svc, err := c.convert(name)
		if other := named[svc.Name]; err == nil && other != "" {
			err = fmt.Errorf("%s and %s would have the same name %s", other, c.path, svc.Name)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		named[svc.Name] = c.path
		p.out.Services = append(p.out.Services, svc)
	}
	p.rest()
	return p.out, errors.Join(errs...)
}

// projectConverter is what the services of a project have in common.
type projectConverter struct {
	project *types.Project
	// left is what is left of the project: each part is taken out when it has been converted, and what is left in the end is named. So
	// nothing is left out without a remark.
	left *types.Project
	out  *Converted
	// used are the configs, secrets and volumes of services, by their paths, and volumes the names of volumes that are taken.
	used, volumes map[string]bool
}

// rest names what is left of the project.
func (p *projectConverter) rest() {
	left := p.left
	left.Name, left.WorkingDir, left.ComposeFiles, left.Environment, left.Profiles = "", "", nil, nil, nil
	for _, name := range slices.Sorted(maps.Keys(left.DisabledServices)) {
		p.out.notChosen("services."+name, left.DisabledServices[name].Profiles)
	}
	for _, name := range slices.Sorted(maps.Keys(left.DisabledJobs)) {
		p.out.notChosen("jobs."+name, left.DisabledJobs[name].Profiles)
	}
	left.DisabledServices, left.DisabledJobs = nil, nil
	// All services share this network, which the library adds.
	if n, ok := left.Networks["default"]; ok && n.Name == p.project.Name+"_default" {
		n.Name = ""
		left.Networks["default"] = n
	}
	unused(p, "configs", left.Configs)
	unused(p, "secrets", left.Secrets)
	unused(p, "volumes", left.Volumes)
	leftIn("", reflect.ValueOf(*p.project), reflect.ValueOf(*left), p.out.lacks)
}

// unused takes out what no service has.
func unused[T any](p *projectConverter, kind string, left map[string]T) {
	for _, name := range slices.Sorted(maps.Keys(left)) {
		if path := kind + "." + name; !p.used[path] {
			p.out.add(Remark{Path: path, Text: "no service uses it, and it is left out"})
			delete(left, name)
		}
	}
}

// converter makes one service.
type converter struct {
	*projectConverter
	path string
	// was is the service, and in what is left of it.
	was, in types.ServiceConfig
	svc     *v1alpha1.MachineService
	// anonymous are the mounts of volumes without names.
	anonymous []string
	// errs are faults of the service.
	errs []error
}

func (c *converter) convert(name string) (*v1alpha1.MachineService, error) {
	c.svc = &v1alpha1.MachineService{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.MachineServiceKind},
		ObjectMeta: metav1.ObjectMeta{Name: c.objectName("", name)},
	}
	if c.svc.Name != name && c.svc.Name != "" {
		c.remark("", "the object is called "+c.svc.Name)
	}
	c.container()
	c.environment()
	c.resources()
	c.ports()
	c.mounts()
	c.files()
	c.deploy()
	c.job(name)
	c.dependsOn(name)
	c.sharing()
	c.rest()
	spec := c.svc.Spec.DeepCopy()
	spec.Name = c.svc.Name
	if err := spec.Validate(); err != nil {
		c.errs = append(c.errs, err)
	}
	if err := errors.Join(c.errs...); err != nil {
		return c.svc, fmt.Errorf("%s: %w", c.path, err)
	}
	return c.svc, nil
}

// unfit is what names of objects can't have.
var unfit = regexp.MustCompile(`[^a-z0-9-]+`)

// objectName returns a name for an object, as near to another name as can be. It is empty for one without letters and digits.
func objectName(name string) string {
	name = unfit.ReplaceAllString(strings.ToLower(name), "-")
	return strings.Trim(name[:min(len(name), validation.DNS1123LabelMaxLength)], "-")
}

// objectName is the function of the same name, for a part of the service.
func (c *converter) objectName(part, name string) string {
	object := objectName(name)
	if object == "" {
		c.fail(part, "%q has no letter or digit for the name of an object: give it another name", name)
	}
	return object
}

// hashed adds to a name what makes it another one for other texts.
func hashed(name string, texts ...string) string {
	h := fnv.New32a()
	for _, text := range texts {
		_, _ = h.Write([]byte(text + "\x00")) // it never fails
	}
	return fmt.Sprintf("%s-%08x", name, h.Sum32())
}

// remark remembers something about a part of the service.
func (c *converter) remark(part, text string) {
	c.out.add(Remark{Path: c.at(part), Text: text})
}

// lacks remembers a part of the service that has no counterpart.
func (c *converter) lacks(part string) { c.out.lacks(c.at(part)) }

func (c *converter) at(part string) string { return join(c.path, part) }

func (c *converter) fail(part, format string, args ...any) {
	err := fmt.Errorf(format, args...)
	if part != "" {
		err = fmt.Errorf("%s: %w", part, err)
	}
	c.errs = append(c.errs, err)
}

// rest takes out what says nothing to machines, what the library adds, and the network that all services share, and names what is left.
func (c *converter) rest() {
	in := &c.in
	in.Profiles, in.Name = nil, ""
	if shared, only := in.Networks["default"]; only && shared == nil && len(in.Networks) == 1 {
		in.Networks = nil
	}
	if in.Image == "" && in.Build != nil {
		c.fail("image", "there is none: machines don't build images; build it, push it to a registry, and name it in image")
	}
	in.Image = ""
	leftIn(c.path, reflect.ValueOf(c.was), reflect.ValueOf(c.in), c.out.lacks)
}
