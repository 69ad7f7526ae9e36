package serviceset_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// simulation is a cluster with a state manager of which nothing is real but what it writes. It carries out what the
// ServiceSet says, in any order, and some things fail for a while.
type simulation struct {
	t        *rapid.T
	in       serviceset.Input
	failures map[string]int // how often a service will still fail
	rounds   int
}

func (s *simulation) set() *v1alpha1.ServiceSet { return s.in.Owner.Set }

// drawSimulation makes services that depend on each other, each with a chain of its own or none, anywhere on its way.
func drawSimulation(t *rapid.T) *simulation {
	s := &simulation{t: t, failures: map[string]int{}}
	s.in.Owner = serviceset.Owner{Kind: v1alpha1.ClusterDeploymentKind, Set: &v1alpha1.ServiceSet{}}
	s.in.Templates = map[string]*v1alpha1.ServiceTemplate{}
	s.in.Chains = map[string]*v1alpha1.ServiceTemplateChain{}
	for i := range rapid.IntRange(1, 6).Draw(t, "services") {
		s.drawService(i)
	}
	s.in.Owner.Services = rapid.Permutation(s.in.Owner.Services).Draw(t, "order")
	return s
}

func (s *simulation) drawService(i int) {
	t := s.t
	name := fmt.Sprintf("s%d", i)
	templates := s.drawTemplates(name)
	service := v1alpha1.Service{Name: name, Template: rapid.SampledFrom(templates).Draw(t, "desired"), Values: "new"}
	for d := range i {
		if rapid.IntRange(0, 2).Draw(t, "depends") == 0 {
			service.DependsOn = append(service.DependsOn, v1alpha1.ServiceDependsOn{Name: fmt.Sprintf("s%d", d)})
		}
	}
	if rapid.IntRange(0, 4).Draw(t, "chained") > 0 {
		service.TemplateChain = name
		s.in.Chains[name] = s.drawChain(templates)
	}
	s.in.Owner.Services = append(s.in.Owner.Services, service)
	s.failures[name] = rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "failures")
	if rapid.Bool().Draw(t, "stored") {
		s.drawStored(service, templates)
	}
}

func (s *simulation) drawTemplates(name string) []string {
	var templates []string
	for i := range rapid.IntRange(1, 7).Draw(s.t, "templates") {
		template := &v1alpha1.ServiceTemplate{}
		template.Name = fmt.Sprintf("%s-%c", name, 'a'+i)
		template.Spec.Version = rapid.SampledFrom([]string{"1.0.0", "2.0.0", "2.0.0-rc.1", "3.0.0", "10.0.0", "9.0.0", "4", "", "spring"}).Draw(s.t, "version")
		s.in.Templates[template.Name] = template
		templates = append(templates, template.Name)
	}
	return templates
}

func (s *simulation) drawChain(templates []string) *v1alpha1.ServiceTemplateChain {
	chain := &v1alpha1.ServiceTemplateChain{}
	for _, from := range templates {
		supported := v1alpha1.SupportedTemplate{Name: from}
		for _, to := range templates {
			if from != to && rapid.IntRange(0, 3).Draw(s.t, "edge") == 0 {
				supported.AvailableUpgrades = append(supported.AvailableUpgrades, v1alpha1.AvailableUpgrade{Name: to})
			}
		}
		chain.Spec.SupportedTemplates = append(chain.Spec.SupportedTemplates, supported)
	}
	return chain
}

func (s *simulation) drawStored(service v1alpha1.Service, templates []string) {
	// Much is where it should be, or else a service that does not change would rarely stand between two that do.
	at := rapid.SampledFrom(append(slices.Repeat([]string{service.Template}, len(templates)), templates...)).Draw(s.t, "stored at")
	entry := v1alpha1.ServiceWithValues{
		Name: service.Name, Namespace: "default", Template: at, Values: "old", DependsOn: service.DependsOn,
	}
	if rapid.Bool().Draw(s.t, "stored with version") {
		entry.Version = s.version(at)
	}
	s.set().Spec.Services = append(s.set().Spec.Services, entry)
	phase := rapid.SampledFrom([]v1alpha1.ServicePhase{
		"", v1alpha1.ServiceStatePending, v1alpha1.ServiceStateProvisioning, v1alpha1.ServiceStateFailed,
		v1alpha1.ServiceStateDeployed, v1alpha1.ServiceStateDeployed, v1alpha1.ServiceStateDeployed, v1alpha1.ServiceStateDeployed,
	}).Draw(s.t, "state")
	if phase == "" {
		return
	}
	state := v1alpha1.ServiceState{Name: service.Name, State: phase, Template: at, Version: s.version(at)}
	if rapid.Bool().Draw(s.t, "deployed before") {
		last := rapid.SampledFrom(templates).Draw(s.t, "last deployed")
		state.LastDeployed = &v1alpha1.LastDeployed{ServiceVersion: v1alpha1.ServiceVersion{Template: last, Version: s.version(last)}}
	}
	s.set().Status.Services = append(s.set().Status.Services, state)
}

func (s *simulation) version(template string) string {
	if v := s.in.Templates[template].Spec.Version; v != "" {
		return v
	}
	return template
}

// resolve does what an operator does: it writes the answer. It returns whether that changed anything.
func (s *simulation) resolve() (*serviceset.Resolution, bool) {
	s.rounds++
	r, err := serviceset.Resolve(s.in)
	if err != nil {
		s.t.Fatal(err)
	}
	after := v1alpha1.ServiceSetSpec{Services: r.Services, Removing: r.Removing}
	changed := !serviceset.SameSpec(&s.set().Spec, &after)
	next := s.set().DeepCopy()
	next.Spec.Services, next.Spec.Removing = r.Services, r.Removing
	s.in.Owner.Set = next
	return r, changed
}

// carryOut does what a state manager does with some of the services. It returns whether anything changed.
func (s *simulation) carryOut() bool {
	changed := false
	for _, entry := range s.set().Spec.Services {
		if rapid.IntRange(0, 3).Draw(s.t, "idle") > 0 {
			changed = s.progress(entry) || changed
		} else {
			changed = changed || !s.done(entry)
		}
	}
	return changed
}

func (s *simulation) done(entry v1alpha1.ServiceWithValues) bool {
	state := s.state(entry.Name)
	return state != nil && state.State == v1alpha1.ServiceStateDeployed && state.Template == entry.Template && state.Version == entry.Version
}

// progress begins with what is new, and ends what was begun.
func (s *simulation) progress(entry v1alpha1.ServiceWithValues) bool {
	if s.done(entry) {
		return false
	}
	state := s.state(entry.Name)
	if state == nil {
		s.set().Status.Services = append(s.set().Status.Services, v1alpha1.ServiceState{Name: entry.Name})
		state = s.state(entry.Name)
	}
	begun := state.Template == entry.Template && state.Version == entry.Version && state.State == v1alpha1.ServiceStateProvisioning
	state.Template, state.Version = entry.Template, entry.Version
	switch {
	case !begun:
		state.State = v1alpha1.ServiceStateProvisioning
	case s.failures[entry.Name] > 0:
		s.failures[entry.Name]--
		state.State = v1alpha1.ServiceStateFailed
	default:
		state.State = v1alpha1.ServiceStateDeployed
		state.LastDeployed = &v1alpha1.LastDeployed{ServiceVersion: v1alpha1.ServiceVersion{Template: entry.Template, Version: entry.Version}}
	}
	return true
}

func (s *simulation) state(name string) *v1alpha1.ServiceState {
	i := slices.IndexFunc(s.set().Status.Services, func(st v1alpha1.ServiceState) bool { return st.Name == name })
	if i < 0 {
		return nil
	}
	return &s.set().Status.Services[i]
}

func (s *simulation) service(name string) *v1alpha1.Service {
	i := slices.IndexFunc(s.in.Owner.Services, func(sv v1alpha1.Service) bool { return sv.Name == name })
	return &s.in.Owner.Services[i]
}

func entryOf(set *v1alpha1.ServiceSet, name string) *v1alpha1.ServiceWithValues {
	i := slices.IndexFunc(set.Spec.Services, func(e v1alpha1.ServiceWithValues) bool { return e.Name == name })
	if i < 0 {
		return nil
	}
	return &set.Spec.Services[i]
}

// reaches tells whether a chain leads from one template to another: the simplest search there is.
func (s *simulation) reaches(chain, from, to string) bool {
	seen := map[string]bool{from: true}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		for _, supported := range s.in.Chains[chain].Spec.SupportedTemplates {
			if supported.Name != queue[0] {
				continue
			}
			for _, u := range supported.AvailableUpgrades {
				if !seen[u.Name] {
					seen[u.Name] = true
					queue = append(queue, u.Name)
				}
			}
		}
	}
	return seen[to]
}

func (s *simulation) edge(chain, from, to string) bool {
	for _, supported := range s.in.Chains[chain].Spec.SupportedTemplates {
		if supported.Name == from {
			return slices.ContainsFunc(supported.AvailableUpgrades, func(u v1alpha1.AvailableUpgrade) bool { return u.Name == to })
		}
	}
	return false
}

func checkSimulations(t *testing.T, f func(s *simulation)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) { f(drawSimulation(t)) })
}
