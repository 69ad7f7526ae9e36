package serviceset

import "github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"

// What tests look at from outside.
var (
	SameSpec      = sameSpec
	EqualVersions = equalVersions
)

// UpgradePathsOf returns the paths from a template along a chain whose templates are made by a function.
func UpgradePathsOf(from string, spec *v1alpha1.ServiceTemplateChainSpec, template func(string) *v1alpha1.ServiceTemplate) ([]v1alpha1.UpgradePath, error) {
	known := templates{}
	for _, s := range spec.SupportedTemplates {
		known[s.Name] = template(s.Name)
	}
	c, err := newChain(spec, known)
	if err != nil {
		return nil, err
	}
	return c.paths(c.index[from]), nil
}

// RoutesOf returns the same paths in any order, each found for its goal alone.
func RoutesOf(from string, spec *v1alpha1.ServiceTemplateChainSpec, template func(string) *v1alpha1.ServiceTemplate) ([]v1alpha1.UpgradePath, error) {
	known := templates{}
	for _, s := range spec.SupportedTemplates {
		known[s.Name] = template(s.Name)
	}
	c, err := newChain(spec, known)
	if err != nil {
		return nil, err
	}
	var paths []v1alpha1.UpgradePath
	for goal := range int32(len(c.nodes)) {
		r := c.routesTo(goal)
		if r.next[c.index[from]] < 0 {
			continue
		}
		path := v1alpha1.UpgradePath{}
		for _, n := range r.walk(c.index[from], goal) {
			path.Versions = append(path.Versions, c.upgrade(n))
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// EligibleAndToApply returns what FilterServiceDependencies and ResolveServicesToApply return of an input that they have read.
func EligibleAndToApply(in Input) ([]v1alpha1.Service, []v1alpha1.ServiceWithValues, error) {
	r, err := in.resolver()
	if err != nil {
		return nil, nil, err
	}
	return r.eligibleServices(), r.servicesToApply(), nil
}
