package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

const (
	// blockOfServices is how many services make a block.
	blockOfServices = 200
	// chainLength is how many templates a chain has, and how many services share one.
	chainLength = 10
	// waysOfEach is to how many templates each of a chain leads.
	waysOfEach = 2
	// dependenciesOfEach is how many services one depends on, if there are as many before it in its block.
	dependenciesOfEach = 5
)

// newPlatform makes blocks of services with dependencies on earlier ones of their block, and a chain of templates for every
// ten. All but a tenth run in the desired version. More services are more of the same blocks, so that the ratio of their times
// says how the time grows.
func newPlatform(services int) serviceset.Input {
	var random *rand.Rand
	in := serviceset.Input{
		Owner:     serviceset.Owner{Kind: v1alpha1.ClusterDeploymentKind, Set: &v1alpha1.ServiceSet{}},
		Templates: map[string]*v1alpha1.ServiceTemplate{},
		Chains:    map[string]*v1alpha1.ServiceTemplateChain{},
	}
	set := in.Owner.Set
	for i := range services {
		if i%blockOfServices == 0 {
			random = rand.New(rand.NewPCG(1, 2))
		}
		chain := fmt.Sprintf("chain-%d", i/chainLength)
		if i%chainLength == 0 {
			in.Chains[chain] = chainOf(chain, chainLength, waysOfEach, in.Templates)
		}
		s := v1alpha1.Service{
			Name: fmt.Sprintf("service-%d", i), Namespace: "default", Values: "a: b",
			Template: templateIn(chain, chainLength-1), TemplateChain: chain,
		}
		for range min(dependenciesOfEach, i%blockOfServices) {
			d := i - 1 - random.IntN(i%blockOfServices)
			s.DependsOn = append(s.DependsOn, v1alpha1.ServiceDependsOn{Name: fmt.Sprintf("service-%d", d), Namespace: "default"})
		}
		in.Owner.Services = append(in.Owner.Services, s)
		at := chainLength - 1
		if i%chainLength == chainLength-1 {
			at = 3
		}
		set.Spec.Services = append(set.Spec.Services, v1alpha1.ServiceWithValues{
			Name: s.Name, Namespace: s.Namespace, Values: s.Values, DependsOn: s.DependsOn,
			Template: templateIn(chain, at), Version: versionIn(at),
		})
	}
	// As the operator writes it, and a state manager reports it.
	slices.SortFunc(set.Spec.Services, func(a, b v1alpha1.ServiceWithValues) int { return strings.Compare(a.Name, b.Name) })
	for _, s := range set.Spec.Services {
		set.Status.Services = append(set.Status.Services, v1alpha1.ServiceState{
			Name: s.Name, Namespace: s.Namespace, State: v1alpha1.ServiceStateDeployed, Template: s.Template, Version: s.Version,
		})
	}
	return in
}

// chainOf makes a chain in which each template leads to the next ones, as many as there are after it.
func chainOf(name string, length, ways int, templates map[string]*v1alpha1.ServiceTemplate) *v1alpha1.ServiceTemplateChain {
	chain := &v1alpha1.ServiceTemplateChain{}
	for i := range length {
		t := &v1alpha1.ServiceTemplate{}
		t.Name = templateIn(name, i)
		t.Spec.Version = versionIn(i)
		templates[t.Name] = t
		supported := v1alpha1.SupportedTemplate{Name: t.Name}
		for next := i + 1; next < min(length, i+1+ways); next++ {
			supported.AvailableUpgrades = append(supported.AvailableUpgrades, v1alpha1.AvailableUpgrade{Name: templateIn(name, next)})
		}
		chain.Spec.SupportedTemplates = append(chain.Spec.SupportedTemplates, supported)
	}
	return chain
}

// templateIn names a template of a chain, and versionIn is its version.
func templateIn(chain string, i int) string { return fmt.Sprintf("%s-%d", chain, i) }
func versionIn(i int) string                { return fmt.Sprintf("1.%d.0", i) }
