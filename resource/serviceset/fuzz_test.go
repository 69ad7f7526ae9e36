package serviceset_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// FuzzVersions looks for texts of which it depends on who asks whether they mean the same version.
func FuzzVersions(f *testing.F) {
	for _, pair := range [][2]string{{"1.2.3", "v1.2.3"}, {"10.0.0", "9.0.0"}, {"1.0.0-rc.1+b", "1.0.0"}, {"spring", ""}, {"2024.01", "2024.1.0"}} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if !serviceset.EqualVersions(a, a) || !serviceset.EqualVersions(b, b) {
			t.Errorf("%q or %q is not equal to itself", a, b)
		}
		equal := serviceset.EqualVersions(a, b)
		if equal != serviceset.EqualVersions(b, a) {
			t.Errorf("%q and %q are equal one way only", a, b)
		}
		spec := &v1alpha1.ServiceTemplateChainSpec{SupportedTemplates: []v1alpha1.SupportedTemplate{
			{Name: "from", AvailableUpgrades: []v1alpha1.AvailableUpgrade{{Name: "to", Version: a}}},
			{Name: "by", AvailableUpgrades: []v1alpha1.AvailableUpgrade{{Name: "to", Version: b}}},
		}}
		_, err := serviceset.UpgradePathsOf("from", spec, template)
		if contradicts := err != nil; contradicts != (a != "" && b != "" && !equal) {
			t.Errorf("versions %q and %q of one template: equal %v, but the error is %v", a, b, equal, err)
		}
	})
}

// FuzzChains looks for chains whose paths are no paths, or that lack one. A chain is written as in the other tests.
func FuzzChains(f *testing.F) {
	f.Add("a-1>a-2>a-3 a-1>a-3")
	f.Add("a-1>a-5>a-4>a-1 a-5>a-2>a-3")
	f.Add("a@1>b@1>a@1 b>c@2 c>x>a")
	f.Add("one>two>three>one two>one")
	f.Fuzz(func(t *testing.T, text string) {
		ways := strings.Fields(text)
		if strings.Count(text, ">")+len(ways) > 60 || len(ways) == 0 {
			return
		}
		spec := chainSpec(ways...)
		from := spec.SupportedTemplates[0].Name
		paths, err := serviceset.UpgradePathsOf(from, &spec, template)
		if err != nil {
			return
		}
		seen := map[string]bool{from: true}
		for _, p := range paths {
			if len(p.Versions) == 0 {
				t.Fatalf("an empty path from %s in %q", from, text)
			}
			at, on := from, map[string]bool{from: true}
			for _, v := range p.Versions {
				if !leads(&spec, at, v.Name) || on[v.Name] {
					t.Fatalf("%s is no path from %s in %q", saidPath(p), from, text)
				}
				at, on[v.Name], seen[v.Name] = v.Name, true, true
			}
		}
		for _, name := range reachable(&spec, from) {
			if !seen[name] {
				t.Fatalf("there is no path from %s to %s in %q", from, name, text)
			}
		}
	})
}

func leads(spec *v1alpha1.ServiceTemplateChainSpec, from, to string) bool {
	return slices.ContainsFunc(spec.SupportedTemplates, func(s v1alpha1.SupportedTemplate) bool {
		return s.Name == from && slices.ContainsFunc(s.AvailableUpgrades, func(u v1alpha1.AvailableUpgrade) bool { return u.Name == to })
	})
}

func reachable(spec *v1alpha1.ServiceTemplateChainSpec, from string) []string {
	found := []string{from}
	for done := 0; done < len(found); done++ {
		for _, s := range spec.SupportedTemplates {
			if !slices.Contains(found, s.Name) && leads(spec, found[done], s.Name) {
				found = append(found, s.Name)
			}
		}
	}
	return found
}

// FuzzDependencies looks for lists of services that break a promise: without an error, following the answers installs all of them, one
// layer after the other. A list is written as in the other tests, with ';' between services.
func FuzzDependencies(f *testing.F) {
	f.Add("a: a-1;b: b-1 after=a;c: c-1 after=a,b")
	f.Add("a: a-1 after=b;b: b-1 after=a")
	f.Add("a: a-1 after=a;a: a-2;x/a: a-1 after=a disable")
	f.Add("a: a-1 after=,;default/b: chain=c version=1 after=a")
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ReplaceAll(text, ";", "\n")
		for line := range strings.SplitSeq(text, "\n") {
			if !strings.Contains(line, ":") && strings.TrimSpace(line) != "" {
				return
			}
		}
		services := desired(t, text)
		in := serviceset.Input{Owner: serviceset.Owner{Services: services, Set: &v1alpha1.ServiceSet{}}}
		in.Templates = map[string]*v1alpha1.ServiceTemplate{}
		for _, s := range services {
			in.Templates[s.Template] = template(s.Template)
		}
		for range len(services) + 1 {
			r, err := serviceset.Resolve(in)
			if err != nil {
				checkGraphError(t, err)
				return
			}
			before := len(in.Owner.Set.Spec.Services)
			checkAnswer(t, r)
			in.Owner.Set = deployed(r)
			if len(r.Services) == before {
				break
			}
		}
		r, err := serviceset.Resolve(in)
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.Decisions {
			if d := &r.Decisions[i]; d.Reason == v1alpha1.ReasonWaiting && len(r.Blocked()) == 0 && !strings.Contains(text, "disable") {
				t.Errorf("%s still", d)
			}
		}
	})
}

// deployed returns a ServiceSet in which everything runs.
func deployed(r *serviceset.Resolution) *v1alpha1.ServiceSet {
	set := &v1alpha1.ServiceSet{Spec: v1alpha1.ServiceSetSpec{Services: r.Services, Removing: r.Removing}}
	for _, s := range r.Services {
		set.Status.Services = append(set.Status.Services, v1alpha1.ServiceState{
			Name: s.Name, Namespace: s.Namespace, State: v1alpha1.ServiceStateDeployed, Template: s.Template, Version: s.Version,
		})
	}
	return set
}

func checkGraphError(t *testing.T, err error) {
	t.Helper()
	var fault *serviceset.GraphError
	if !errors.As(err, &fault) || len(fault.Absent)+len(fault.Cycles) == 0 {
		t.Fatalf("the error is %v", err)
	}
	for _, c := range fault.Cycles {
		if len(c.Path) < 2 || c.Path[0] != c.Path[len(c.Path)-1] {
			t.Fatalf("%v is no cycle", c.Path)
		}
	}
}

func checkAnswer(t *testing.T, r *serviceset.Resolution) {
	t.Helper()
	var keys []client.ObjectKey
	for _, s := range r.Services {
		keys = append(keys, s.Key())
	}
	ordered := slices.IsSortedFunc(keys, func(a, b client.ObjectKey) int {
		return strings.Compare(a.Namespace+"\x00"+a.Name, b.Namespace+"\x00"+b.Name)
	})
	if !ordered || len(slices.Compact(keys)) != len(r.Services) {
		t.Fatalf("the services are not each once, by key: %v", keys)
	}
}
