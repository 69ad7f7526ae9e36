package compose

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
)

// Converted is what becomes of a project.
type Converted struct {
	// Services come by name. They have no namespace.
	Services []*v1alpha1.MachineService
	// Remarks are what their reader has to know: what is left out, and what is to be done.
	Remarks []Remark
}

// Remark is about a part of the files.
type Remark struct {
	// Path is the part, such as services.web.depends_on.
	Path string
	// Text says what becomes of it.
	Text string
	// Lacking tells that it has no counterpart.
	Lacking bool
}

// String returns the remark as a line.
func (r Remark) String() string { return r.Path + ": " + r.Text }

// Lacking returns those remarks that are about what has no counterpart.
func (c *Converted) Lacking() []Remark {
	return slices.DeleteFunc(slices.Clone(c.Remarks), func(r Remark) bool { return !r.Lacking })
}

// Convert makes MachineServices of the services of a project, as Load returns it. The project is not changed. The error says of each
// service why there can't be one.
func Convert(project *types.Project) (*Converted, error) {
	out := &Converted{}
	var errs []error
	named := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(project.Services)) {
		c := &converter{project: project, path: "services." + name, out: out}
		svc, err := c.convert(name, project.Services[name])
		if other := named[svc.Name]; err == nil && other != "" {
			err = fmt.Errorf("%s and %s would have the same name %s", other, c.path, svc.Name)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		named[svc.Name] = c.path
		out.Services = append(out.Services, svc)
	}
	for _, name := range slices.Sorted(maps.Keys(project.Networks)) {
		if name != "default" {
			out.lacks("networks." + name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(project.Models)) {
		out.lacks("models." + name)
	}
	return out, errors.Join(errs...)
}

func (c *Converted) lacks(path string) {
	c.Remarks = append(c.Remarks, Remark{Path: path, Text: "it has no counterpart, and is left out", Lacking: true})
}

// converter makes one service.
type converter struct {
	project *types.Project
	path    string
	out     *Converted
	// in is what is left of the service: each part is taken out when it has been converted.
	in  types.ServiceConfig
	svc *v1alpha1.MachineService
	// errs are faults of the service.
	errs []error
}

func (c *converter) convert(name string, in types.ServiceConfig) (*v1alpha1.MachineService, error) {
	c.in = in
	c.svc = &v1alpha1.MachineService{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.MachineServiceKind}, ObjectMeta: metav1.ObjectMeta{Name: objectName(name)},
	}
	if c.svc.Name != name {
		c.remark("", "the object is called "+c.svc.Name)
	}
	c.container()
	c.environment()
	c.resources()
	c.ports()
	c.mounts()
	c.files()
	c.deploy()
	c.rest()
	c.lacking()
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

// objectName returns a name for an object, as near to another name as can be.
func objectName(name string) string {
	name = unfit.ReplaceAllString(strings.ToLower(name), "-")
	return strings.Trim(name[:min(len(name), validation.DNS1123LabelMaxLength)], "-")
}

// remark remembers something about a part of the service.
func (c *converter) remark(part, text string) {
	c.out.Remarks = append(c.out.Remarks, Remark{Path: c.at(part), Text: text})
}

// lacks remembers a part of the service that has no counterpart.
func (c *converter) lacks(part string) { c.out.lacks(c.at(part)) }

func (c *converter) at(part string) string {
	if part == "" {
		return c.path
	}
	return c.path + "." + part
}

func (c *converter) fail(part, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(part+": "+format, args...))
}

// rest takes out what says nothing to machines, and the network that all services share.
func (c *converter) rest() {
	in := &c.in
	in.Expose, in.Attach, in.Extensions, in.Profiles, in.Develop, in.Name = nil, nil, nil, nil, nil, ""
	if shared, only := in.Networks["default"]; only && shared == nil && len(in.Networks) == 1 {
		in.Networks = nil
	}
	if in.Image == "" && in.Build != nil {
		c.fail("image", "there is none: machines don't build images; build it, push it to a registry, and name it in image")
	}
}

// lacking names what is left.
func (c *converter) lacking() {
	c.in.Image = ""
	for _, part := range leftOf(c.in) {
		c.lacks(part)
	}
}

// leftOf returns the paths of what is set in a part of a file: those of the parts of deploy, and else the first names.
func leftOf(of any) []string {
	text, err := json.Marshal(of)
	if err != nil {
		return []string{err.Error()}
	}
	var parts map[string]any
	if err := json.Unmarshal(text, &parts); err != nil {
		return []string{err.Error()}
	}
	return pathsIn("", parts)
}

func pathsIn(prefix string, parts map[string]any) []string {
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		switch value := parts[name].(type) {
		case nil:
		case map[string]any:
			if within := prefix + name; strings.HasPrefix(within, "deploy") || within == "healthcheck" || within == "logging" {
				paths = append(paths, pathsIn(within+".", value)...)
				continue
			}
			paths = append(paths, prefix+name)
		default:
			paths = append(paths, prefix+name)
		}
	}
	return paths
}

// read returns the content of a file of the project.
func read(path string) (string, error) {
	content, err := os.ReadFile(path) //nolint:gosec // it is a file that the project names
	return string(content), err
}
