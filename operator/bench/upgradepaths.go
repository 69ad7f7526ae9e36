package main

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// What the services of the row upgradepaths are asked for.
const (
	resolved     = "resolved"
	pathsAnew    = "paths, after a change"
	pathsWithout = "paths, without one"
)

const (
	// upgradesOfEach is to how many templates each of a chain leads, if there are as many after it: as many as it may.
	upgradesOfEach = 32
	// upgradesRepeated is how often each is done in a run.
	upgradesRepeated = 20
)

// upgrades is how many chains there are, with how many templates each.
type upgrades struct{ chains, templates int }

// upgradePaths measures how long it takes to find out for a status where services can go, to working out what becomes of the same
// services; and what it takes once more as long as neither a chain nor a template has changed.
func upgradePaths(ctx context.Context, e *environment) ([]line, error) {
	in := e.upgradable()
	reader := readerOf(in)
	kept, err := serviceset.ReadPaths(ctx, reader, upgradesNamespace)
	if err != nil {
		return nil, err
	}
	standing := serviceset.ServicesWithDesiredChains(in.Owner.Services, in.Owner.Set.Spec.Services)
	if err := e.wholePaths(kept, standing); err != nil {
		return nil, err
	}
	s, err := e.compare(ctx, "upgradepaths",
		repeatedly(resolved, func(context.Context) error {
			_, err := serviceset.Resolve(in)
			return err
		}),
		repeatedly(pathsAnew, func(ctx context.Context) error {
			paths, err := serviceset.ReadPaths(ctx, reader, upgradesNamespace)
			if err != nil {
				return err
			}
			_, err = paths.Of(standing)
			return err
		}),
		repeatedly(pathsWithout, func(context.Context) error {
			_, err := kept.Of(standing)
			return err
		}),
	)
	if err != nil {
		return nil, err
	}
	compared := func(way, what string) line {
		return line{
			Measure: fmt.Sprintf("upgrade paths along %d chains of %d templates, %s: time, to resolving the services", e.upgrades.chains, e.upgrades.templates, what),
			Unit:    inMicroseconds,
			Figures: map[string]float64{operatorKit: s.median(way, nanoseconds)},
			Ratio:   s.ratio(way, resolved, nanoseconds),
		}
	}
	again := reportLine(fmt.Sprintf("upgrade paths along %d chains of %d templates, nothing changed: allocations", e.upgrades.chains, e.upgrades.templates),
		counted, series{operatorKit: s[pathsWithout]}, allocations)
	return []line{
		compared(pathsAnew, "after a change").ratioAtMost(1),
		compared(pathsWithout, "nothing changed"),
		// The list of services that is returned, and that of what is missing.
		again.atMost(2),
	}, nil
}

func repeatedly(name string, do func(context.Context) error) contender {
	return contender{name, upgradesRepeated, func(ctx context.Context, b *testing.B) error {
		b.StartTimer()
		defer b.StopTimer()
		for range upgradesRepeated {
			if err := do(ctx); err != nil {
				return err
			}
		}
		return nil
	}}
}

// upgradesNamespace is where the chains are.
const upgradesNamespace = "default"

// upgradable makes a service for each chain, which is at the first template and wants to be at the last one.
func (e *environment) upgradable() serviceset.Input {
	in := serviceset.Input{
		Owner:     serviceset.Owner{Kind: v1alpha1.ClusterDeploymentKind, Set: &v1alpha1.ServiceSet{}},
		Templates: map[string]*v1alpha1.ServiceTemplate{},
		Chains:    map[string]*v1alpha1.ServiceTemplateChain{},
	}
	set, last := in.Owner.Set, e.upgrades.templates-1
	for i := range e.upgrades.chains {
		name := fmt.Sprintf("chain-%02d", i)
		in.Chains[name] = chainOf(name, e.upgrades.templates, upgradesOfEach, in.Templates)
		service := fmt.Sprintf("service-%02d", i)
		in.Owner.Services = append(in.Owner.Services, v1alpha1.Service{
			Name: service, Namespace: "default", Template: templateIn(name, last), TemplateChain: name,
		})
		set.Spec.Services = append(set.Spec.Services, v1alpha1.ServiceWithValues{
			Name: service, Namespace: "default", Template: templateIn(name, 0), Version: versionIn(0),
		})
		set.Status.Services = append(set.Status.Services, v1alpha1.ServiceState{
			Name: service, Namespace: "default", State: v1alpha1.ServiceStateDeployed, Template: templateIn(name, 0), Version: versionIn(0),
		})
	}
	return in
}

// listed reads the templates and the chains of an input. As from an operator's sources, nothing is sent for that, and what is read is
// shared.
type listed struct {
	client.Reader
	templates []v1alpha1.ServiceTemplate
	chains    []v1alpha1.ServiceTemplateChain
}

func readerOf(in serviceset.Input) *listed {
	l := &listed{}
	for _, t := range in.Templates {
		l.templates = append(l.templates, *t)
	}
	for name, c := range in.Chains {
		c.Name = name
		l.chains = append(l.chains, *c)
	}
	return l
}

// List implements client.Reader.
func (l *listed) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch of := list.(type) {
	case *v1alpha1.ServiceTemplateList:
		of.Items = slices.Clone(l.templates)
	case *v1alpha1.ServiceTemplateChainList:
		of.Items = slices.Clone(l.chains)
	default:
		return fmt.Errorf("there is no %T", list)
	}
	return nil
}

// wholePaths is an error unless each service can go to all templates of its chain but its own.
func (e *environment) wholePaths(paths *serviceset.Paths, services []v1alpha1.Service) error {
	found, err := paths.Of(services)
	if err != nil {
		return err
	}
	for i := range found {
		if n := len(found[i].AvailableUpgrades); n != e.upgrades.templates-1 {
			return fmt.Errorf("%s can go to %d of %d templates", found[i].Name, n, e.upgrades.templates-1)
		}
	}
	return nil
}
