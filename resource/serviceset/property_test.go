package serviceset_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// maxRounds is more than any simulation needs: 6 services one after the other, 7 templates each, some rounds for each.
const maxRounds = 2000

func TestFollowingTheAnswersEndsAtWhatIsDesiredWhereThereIsAWay(t *testing.T) {
	checkSimulations(t, func(s *simulation) {
		start := s.set().DeepCopy()
		for {
			_, written := s.resolve()
			if moved := s.carryOut(); !written && !moved {
				break
			}
			if s.rounds > maxRounds {
				s.t.Fatal("it does not come to an end")
			}
		}
		ready := map[string]bool{}
		for _, name := range []string{"s0", "s1", "s2", "s3", "s4", "s5"} {
			if !slices.ContainsFunc(s.in.Owner.Services, func(sv v1alpha1.Service) bool { return sv.Name == name }) {
				continue
			}
			service := s.service(name)
			possible, below := s.possible(start, service), true
			for _, d := range service.DependsOn {
				below = below && ready[d.Name]
			}
			entry := entryOf(s.set(), name)
			arrived := entry != nil && entry.Template == service.Template && s.done(*entry)
			ready[name] = below && arrived
			if below && possible != arrived {
				r, _ := s.resolve()
				s.t.Fatalf("%s should have arrived: %v; it has: %v:\n%s", name, possible, arrived, saidWhy(r.Decisions))
			}
		}
	})
}

// possible tells whether a service can become what is desired, if all that it depends on does.
func (s *simulation) possible(start *v1alpha1.ServiceSet, service *v1alpha1.Service) bool {
	entry := entryOf(start, service.Name)
	if entry == nil || service.TemplateChain == "" {
		return true
	}
	if s.reaches(service.TemplateChain, entry.Template, service.Template) {
		return true
	}
	// It may fail where it is, and go back to where it came from.
	for _, state := range start.Status.Services {
		if state.Name == service.Name && state.LastDeployed != nil && state.LastDeployed.Template == service.Template {
			return entryOf(s.set(), service.Name).Template == service.Template
		}
	}
	return false
}

// The paths in a status are the ways that services take, also where they are found for all goals at once.
func TestPathsAreTheRoutesToTheirGoals(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		versions := rapid.IntRange(4, 12).Draw(rt, "versions")
		// With names of a second kind, versions are not there once only, or not at all.
		kinds := rapid.SampledFrom([][]string{{"a-%d"}, {"a-%d"}, {"a-%d", "b-%d"}, {"a-%d", "x%d"}}).Draw(rt, "kinds")
		name := rapid.Custom(func(rt *rapid.T) string {
			return fmt.Sprintf(rapid.SampledFrom(kinds).Draw(rt, "kind"), rapid.IntRange(1, versions).Draw(rt, "version"))
		})
		ways := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) string {
			return name.Draw(rt, "from") + ">" + name.Draw(rt, "to")
		}), 1, 40).Draw(rt, "ways")
		spec := chainSpec(ways...)
		from := spec.SupportedTemplates[0].Name
		found, err := serviceset.UpgradePathsOf(from, &spec, template)
		want, wantErr := serviceset.RoutesOf(from, &spec, template)
		if err != nil || wantErr != nil {
			rt.Fatalf("%v, %v", err, wantErr)
		}
		said := func(paths []v1alpha1.UpgradePath) []string {
			all := make([]string, len(paths))
			for i, p := range paths {
				all[i] = saidPath(p)
			}
			slices.Sort(all)
			return all
		}
		if diff := cmp.Diff(said(want), said(found)); diff != "" {
			rt.Fatalf("the paths from %s in %v differ (-want +got):\n%s", from, ways, diff)
		}
	})
}

func TestNoStepSkipsARequiredOne(t *testing.T) {
	checkSimulations(t, func(s *simulation) {
		s.watch(func(before, after *v1alpha1.ServiceSet, service *v1alpha1.Service) {
			from, to := entryOf(before, service.Name), entryOf(after, service.Name)
			if from == nil || from.Template == to.Template || service.TemplateChain == "" {
				return
			}
			if state := s.state(service.Name); state.State == v1alpha1.ServiceStateFailed &&
				state.LastDeployed != nil && state.LastDeployed.Template == to.Template {
				return
			}
			if !s.edge(service.TemplateChain, from.Template, to.Template) {
				s.t.Fatalf("%s went from %s to %s, which is no edge", service.Name, from.Template, to.Template)
			}
		})
	})
}

func TestNoServiceChangesWhileSomethingBelowItIsNotReady(t *testing.T) {
	checkSimulations(t, func(s *simulation) {
		s.watch(func(before, after *v1alpha1.ServiceSet, service *v1alpha1.Service) {
			from, to := entryOf(before, service.Name), entryOf(after, service.Name)
			if from != nil && to != nil && cmp.Equal(*from, *to) || from == nil && to == nil {
				return
			}
			for _, d := range s.below(service.Name) {
				entry, state := entryOf(before, d), s.state(d)
				if entry == nil || state == nil || state.State != v1alpha1.ServiceStateDeployed ||
					state.Template != entry.Template || entry.Template != s.service(d).Template {
					s.t.Fatalf("%s changed, but %s is not ready", service.Name, d)
				}
			}
		})
	})
}

func TestNothingIsAdvancedInFlight(t *testing.T) {
	checkSimulations(t, func(s *simulation) {
		s.watch(func(before, after *v1alpha1.ServiceSet, service *v1alpha1.Service) {
			from, to := entryOf(before, service.Name), entryOf(after, service.Name)
			state := s.state(service.Name)
			if from == nil || from.Template == to.Template {
				return
			}
			if state == nil || state.Template != from.Template ||
				state.State != v1alpha1.ServiceStateDeployed && state.State != v1alpha1.ServiceStateFailed {
				s.t.Fatalf("%s went from %s to %s before it was there: %+v", service.Name, from.Template, to.Template, state)
			}
		})
	})
}

func TestNothingOscillates(t *testing.T) {
	checkSimulations(t, func(s *simulation) {
		seen := map[string][]string{}
		s.watch(func(before, after *v1alpha1.ServiceSet, service *v1alpha1.Service) {
			from, to := entryOf(before, service.Name), entryOf(after, service.Name)
			if to == nil || from != nil && from.Template == to.Template {
				return
			}
			if from != nil && len(seen[service.Name]) == 0 {
				seen[service.Name] = append(seen[service.Name], from.Template)
			}
			if slices.Contains(seen[service.Name], to.Template) {
				s.t.Fatalf("%s came to %s again: %v", service.Name, to.Template, seen[service.Name])
			}
			seen[service.Name] = append(seen[service.Name], to.Template)
		})
	})
}

// watch runs a simulation to its end and shows every service before and after each answer.
func (s *simulation) watch(see func(before, after *v1alpha1.ServiceSet, service *v1alpha1.Service)) {
	for s.rounds < maxRounds {
		before := s.set()
		_, written := s.resolve()
		for i := range s.in.Owner.Services {
			see(before, s.set(), &s.in.Owner.Services[i])
		}
		if moved := s.carryOut(); !written && !moved {
			return
		}
	}
	s.t.Fatal("it does not come to an end")
}

// below returns all that a service depends on.
func (s *simulation) below(name string) []string {
	var found []string
	for _, d := range s.service(name).DependsOn {
		found = append(append(found, d.Name), s.below(d.Name)...)
	}
	return found
}

func TestResolvingChangesNoneOfItsInput(t *testing.T) {
	checkSimulations(t, func(s *simulation) {
		before := copyInput(s.in)
		if _, err := serviceset.Resolve(s.in); err != nil {
			s.t.Fatal(err)
		}
		if diff := cmp.Diff(before, s.in); diff != "" {
			s.t.Fatalf("the input was changed (-before +after):\n%s", diff)
		}
	})
}

func TestTheOrderOfTheInputDoesNotMatter(t *testing.T) {
	checkSimulations(t, func(s *simulation) {
		first, err := serviceset.Resolve(s.in)
		if err != nil {
			s.t.Fatal(err)
		}
		in := copyInput(s.in)
		in.Owner.Services = rapid.Permutation(in.Owner.Services).Draw(s.t, "services again")
		set := in.Owner.Set
		set.Spec.Services = rapid.Permutation(set.Spec.Services).Draw(s.t, "stored again")
		set.Status.Services = rapid.Permutation(set.Status.Services).Draw(s.t, "states again")
		for _, name := range slices.Sorted(maps.Keys(in.Chains)) {
			c := in.Chains[name]
			c.Spec.SupportedTemplates = rapid.Permutation(c.Spec.SupportedTemplates).Draw(s.t, "templates again")
		}
		second, err := serviceset.Resolve(in)
		if err != nil {
			s.t.Fatal(err)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			s.t.Fatalf("the results differ (-first +second):\n%s", diff)
		}
	})
}

func copyInput(in serviceset.Input) serviceset.Input {
	c := in
	c.Owner.Set = in.Owner.Set.DeepCopy()
	c.Owner.Services = nil
	for i := range in.Owner.Services {
		c.Owner.Services = append(c.Owner.Services, *in.Owner.Services[i].DeepCopy())
	}
	c.Templates = map[string]*v1alpha1.ServiceTemplate{}
	for name, t := range in.Templates {
		c.Templates[name] = t.DeepCopy()
	}
	c.Chains = map[string]*v1alpha1.ServiceTemplateChain{}
	for name, chain := range in.Chains {
		c.Chains[name] = chain.DeepCopy()
	}
	return c
}
