package main

import (
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// names are what the templates know.
type names struct {
	// Name is that of the operator, Module that of its Go module, and Group that of its API.
	Name, Module, Group string
	// Kind is the kind, Kinds several of it in a sentence, Singular and Plural its resource, and Package the Go package that looks after it.
	Kind, Kinds, Singular, Plural, Package string
	// Kit is the version of operatorkit, and Checkout the folder it is in; none for a release.
	Kit, Checkout string
	// Version is a version of the logic, and Resources the resources of the one before, as Go code.
	Version, Resources string
	// Resource is the name of a resource, and Title that in the name of a Go function.
	Resource, Title string
}

// modulePattern is how modules are called.
var modulePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*(/[A-Za-z0-9_~-][A-Za-z0-9_.~-]*)*$`)

// kindPattern is how kinds are written.
var kindPattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// reserved are names that the package of a kind can't have: those of what package main of a project declares and imports, of its files and
// folders, and of what Go treats in a way of its own.
var reserved = []string{
	"api", "bin", "chart", "command", "context", "deploy", "doc", "dockerfile", "framework", "frameworks", "http", "init", "listing", "lives", "main", "makefile",
	"objects", "operator", "pflag", "rights", "runtime", "samples", "status", "testdata", "v1alpha1", "vendor",
}

// packageOf is the Go package that looks after a kind: its name in small letters, with a word more where that can't be.
func packageOf(singular string) string {
	if slices.Contains(reserved, singular) || versionPattern.MatchString(singular) || types.Universe.Lookup(singular) != nil {
		return singular + "kind"
	}
	return singular
}

// setKind sets what is named after the kind, or says what is wrong with it.
func (n *names) setKind(kind string) error {
	if kind == "" {
		return errors.New("--kind is missing: give the kind, such as Store")
	}
	if !kindPattern.MatchString(kind) || len(kind) > validation.DNS1123LabelMaxLength-len("list") {
		return fmt.Errorf("--kind %q is no kind: it begins with a capital letter, has letters and digits only, and no more than %d, such as Store", kind, validation.DNS1123LabelMaxLength-len("list"))
	}
	n.Kind = kind
	plural, singular := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: n.Group, Version: "v1alpha1", Kind: kind})
	n.Singular, n.Plural, n.Package = singular.Resource, plural.Resource, packageOf(singular.Resource)
	n.Kinds = kind + strings.TrimPrefix(plural.Resource, singular.Resource)
	if !strings.HasPrefix(plural.Resource, singular.Resource) {
		n.Kinds = kind[:1] + plural.Resource[1:] // policies of Policy
	}
	if token.IsKeyword(n.Package) || n.Package == "directory" || strings.HasSuffix(kind, "List") {
		return fmt.Errorf("--kind %s would have the Go package %q, whose name is taken, or would be taken for a list: choose another one, such as %sClaim", kind, n.Package, strings.TrimSuffix(kind, "List"))
	}
	every := runtime.NewScheme()
	group := schema.GroupVersion{Group: n.Group, Version: "v1alpha1"}
	metav1.AddToGroupVersion(every, group)
	if every.Recognizes(group.WithKind(kind)) {
		return fmt.Errorf("--kind %s is one that Kubernetes has in every group: choose another one, such as %sClaim", kind, kind)
	}
	return nil
}

// refuseDeclared returns an error if the API has something already that is called as one of the types of the kind.
func (n *names) refuseDeclared(api ...*source) error {
	for _, s := range api {
		for _, declared := range s.declared() {
			if slices.Contains([]string{n.Kind, n.Kind + "Spec", n.Kind + "Status", n.Kind + "List"}, declared) {
				return fmt.Errorf("--kind %s would declare %s, and %s does that already: choose another one, such as %sClaim", n.Kind, declared, s.path, n.Kind)
			}
		}
	}
	return nil
}

// check says what is wrong with the names of a project.
func (n *names) check() error {
	var faults []error
	if problems := validation.IsDNS1123Label(n.Name); len(problems) > 0 {
		faults = append(faults, fmt.Errorf("%q can't be the name of an operator: %s", n.Name, strings.Join(problems, "; ")))
	}
	if n.Module == "" {
		faults = append(faults, fmt.Errorf("--module is missing: give the path of a Go module, such as example.com/%s", n.Name))
	} else if !modulePattern.MatchString(n.Module) {
		faults = append(faults, fmt.Errorf("--module %q is no path of a Go module: give one such as example.com/%s", n.Module, n.Name))
	}
	if n.Group == "" {
		faults = append(faults, fmt.Errorf("--group is missing: give the name of a domain that is yours, such as %s.example.com", n.Name))
	} else if problems := validation.IsDNS1123Subdomain(n.Group); len(problems) > 0 || !strings.Contains(n.Group, ".") {
		faults = append(faults, fmt.Errorf("--group %q is no group: give the name of a domain that is yours, such as %s.example.com", n.Group, n.Name))
	} else if strings.HasSuffix(n.Group, ".k8s.io") || strings.HasSuffix(n.Group, ".kubernetes.io") {
		faults = append(faults, fmt.Errorf("--group %q is one of Kubernetes', which needs its approval: give one below a domain that is yours", n.Group))
	}
	return errors.Join(faults...)
}

// resourcePattern is how resources are called.
var resourcePattern = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

// setResource sets what is named after a resource.
func (n *names) setResource(name string) error {
	if !resourcePattern.MatchString(name) || token.IsKeyword(name) || len(name) > 30 {
		return fmt.Errorf("%q can't be the name of a resource: it is a word of small letters and digits, such as backups", name)
	}
	n.Resource, n.Title = name, strings.ToUpper(name[:1])+name[1:]
	return nil
}

// versionPattern is how versions of the logic are called.
var versionPattern = regexp.MustCompile(`^v[0-9]+$`)
