package framework

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/faults"
)

// Identity returns the identity that the framework and its resources put into their marks.
func (f *Framework) Identity() identity.Identity { return f.scope.Identity }

// Finalizer returns the finalizer that the framework puts on its objects. It is empty if it puts
// none.
func (f *Framework) Finalizer() string {
	if !f.usesFinalizer() {
		return ""
	}
	return f.finalizer
}

// Join implements access.Engine.
func (f engine) Join(operator string, former []string) error {
	if f.begun.Load() {
		return fmt.Errorf("%w: framework %q runs already: make the operator before", ErrInvalidConfig, f.Name())
	}
	if f.config.Operator != "" && f.config.Operator != operator {
		return fmt.Errorf(
			"%w: framework %q is of the operator %q by its Config.Operator, and not of %q: leave Operator empty",
			ErrInvalidConfig, f.Name(), f.config.Operator, operator)
	}
	config := f.config
	config.Operator = operator
	config.FormerOperators = slices.Compact(slices.Sorted(slices.Values(slices.Concat(config.FormerOperators, former))))
	f.identify(config.Identity())
	return nil
}

// identify sets the identity of the framework, and everything that derives from it.
func (f *Framework) identify(i identity.Identity) {
	f.scope.Identity = i
	standard := f.scope.Finalizer()
	f.finalizer = cmp.Or(f.config.Finalizer, standard)
	f.formerFinalizers = append(slices.Clone(f.config.FormerFinalizers), f.scope.FormerFinalizers()...)
	if f.finalizer != standard {
		f.formerFinalizers = append(f.formerFinalizers, standard)
	}
	f.scopes = map[*setPlanner][]identity.Scope{}
	for _, set := range f.config.ResourceRouter.sets {
		for _, s := range []*ResourceSet{set.of(updateEvent), set.of(deleteEvent)} {
			f.scopes[&s.setPlanner] = scopesOf(f.scope.Identity, slices.Clone(s.left))
		}
	}
}

// scopesOf completes scopes that have only the names left to other resources.
func scopesOf(i identity.Identity, left []identity.Scope) []identity.Scope {
	for place := range left {
		left[place].Identity = i
	}
	return left
}

// leftToOthers returns for each resource its former names that another resource handles too: a
// later one that has the name, or had it. If both list their kinds, only the kinds of the other are
// left to it.
func leftToOthers(resources []Resource) []identity.Scope {
	left := make([]identity.Scope, len(resources))
	for i, r := range resources {
		limited := kindsOf(r) != nil
		for _, name := range formerNamesOf(r) {
			for _, later := range resources[i+1:] {
				if later.Name() != name && !slices.Contains(formerNamesOf(later), name) {
					continue
				}
				kinds := kindsOf(later)
				if !limited || kinds == nil {
					left[i].Left = append(left[i].Left, name)
					break
				}
				if left[i].LeftKinds == nil {
					left[i].LeftKinds = map[string][]string{}
				}
				left[i].LeftKinds[name] = append(left[i].LeftKinds[name], kinds...)
			}
		}
	}
	return left
}

// checkFormerNames adds the faults of the former names of the resources of a set.
func checkFormerNames(resources []Resource, wrong *faults.List) {
	for i, r := range resources {
		for _, name := range formerNamesOf(r) {
			wrong.If(name == r.Name() || name == "",
				"Resources[%d]: the former names of %q must be others, and not empty", i, r.Name())
			wrong.If(slices.ContainsFunc(resources[:i], func(earlier Resource) bool { return earlier.Name() == name }),
				"Resources[%d]: %q takes over from %q and must stand before it, which else deletes what it takes over",
				i, r.Name(), name)
		}
	}
}

// claim makes sure that no other framework with the same identity or finalizer runs on the same
// source, or with the same registerer, until release is called. It registers a metric that
// describes the running framework.
func (f *Framework) claim() (release func(), err error) {
	own := identity.Identity{Operator: f.scope.Operator, Framework: f.scope.Framework}.String()
	var releases []func()
	release = func() {
		for _, release := range releases {
			release()
		}
	}
	refused := func(shared string) (func(), error) {
		release()
		return nil, fmt.Errorf(
			"%w: another %s runs already on its %s, with the finalizer %q: give one of them another Name",
			ErrInvalidConfig, own, shared, f.finalizer)
	}
	if source, ok := f.source.(informer.Claimer); ok {
		names := []string{own}
		if f.usesFinalizer() {
			names = append(names, f.finalizer)
		}
		for _, name := range names {
			free, ok := source.Claim(name)
			if !ok {
				return refused("Source")
			}
			releases = append(releases, free)
		}
	}
	if registerer := f.config.Registerer; registerer != nil {
		info := f.info()
		err := registerer.Register(info)
		switch {
		case errors.As(err, new(prometheus.AlreadyRegisteredError)):
			return refused("Registerer")
		case err != nil:
			release()
			return nil, fmt.Errorf("%w: Config: Registerer: %w", ErrInvalidConfig, err)
		}
		releases = append(releases, func() { registerer.Unregister(info) })
	}
	return release, nil
}
