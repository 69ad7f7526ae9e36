package serviceset_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// The tests say services, states and chains in a small language, a service a line:
//
//	desired  b: b-2.0.0 chain=b after=a,ns/c values=x disable uninstall version=2.0
//	stored   b: b-1.0.0@1.0.0 to=b-3.0.0@3.0.0 after=a values=x uninstall
//	states   b: Deployed b-1.0.0@1.0.0 last=b-1.0.0@1.0.0 message=why
//	chains   b: b-1.0.0>b-2.0.0>b-3.0.0 b-1.0.0>b-3.0.0
//
// A template's version is what stands after the first '-' of its name if that begins with a digit; else it says none.

// world is all that a resolution looks at, in this language.
type world struct {
	desired, stored, removing, states, chains string
	missing                                   string // templates that do not exist
	others                                    []other
}

// other is another owner on the cluster.
type other struct {
	name                    string
	priority                int32
	desired, stored, states string
	removing                string
	leaving                 bool // its ServiceSet is being deleted
}

var created = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// input makes the input of a resolution for the owner "platform", which has priority 100 and is a minute old at the time
// "created" plus an hour.
func (w world) input(t testing.TB) serviceset.Input {
	t.Helper()
	in := serviceset.Input{
		Owner: serviceset.Owner{
			Kind: v1alpha1.ClusterDeploymentKind, Key: client.ObjectKey{Namespace: "ns", Name: "platform"},
			Created: created, Services: desired(t, w.desired), Set: set(t, w.stored, w.removing, w.states),
		},
		Chains:    chains(t, w.chains),
		Templates: map[string]*v1alpha1.ServiceTemplate{},
	}
	for _, o := range w.others {
		in.Others = append(in.Others, serviceset.Owner{
			Kind: v1alpha1.MultiClusterServiceKind, Key: client.ObjectKey{Name: o.name}, Priority: o.priority, Created: created.Add(time.Hour),
			Services: desired(t, o.desired), Set: set(t, o.stored, o.removing, o.states),
		})
		if o.leaving {
			in.Others[len(in.Others)-1].Set.DeletionTimestamp = &metav1.Time{Time: created}
		}
	}
	for _, name := range templateNames(in) {
		if !strings.Contains(" "+w.missing+" ", " "+name+" ") {
			in.Templates[name] = template(name)
		}
	}
	return in
}

// templateNames lists all templates that anything names.
func templateNames(in serviceset.Input) []string {
	var names []string
	for _, o := range append([]serviceset.Owner{in.Owner}, in.Others...) {
		for _, s := range o.Services {
			names = append(names, s.Template)
		}
		if o.Set != nil {
			for _, s := range o.Set.Spec.Services {
				names = append(names, s.Template)
			}
		}
	}
	for _, c := range in.Chains {
		for _, s := range c.Spec.SupportedTemplates {
			names = append(names, s.Name)
		}
	}
	return names
}

func template(name string) *v1alpha1.ServiceTemplate {
	t := &v1alpha1.ServiceTemplate{}
	t.Name = name
	if _, version, ok := strings.Cut(name, "-"); ok && version != "" && version[0] >= '0' && version[0] <= '9' {
		t.Spec.Version = version
	}
	return t
}

// lines calls f with the key and the words of each line.
func lines(t testing.TB, text string, f func(key client.ObjectKey, words []string)) {
	t.Helper()
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, rest, ok := strings.Cut(line, ":")
		if !ok {
			t.Fatalf("no ':' in %q", line)
		}
		f(parseKey(name), strings.Fields(rest))
	}
}

func parseKey(text string) client.ObjectKey {
	if namespace, name, ok := strings.Cut(text, "/"); ok {
		return client.ObjectKey{Namespace: namespace, Name: name}
	}
	return client.ObjectKey{Name: text}
}

func desired(t testing.TB, text string) []v1alpha1.Service {
	t.Helper()
	var list []v1alpha1.Service
	lines(t, text, func(key client.ObjectKey, words []string) {
		s := v1alpha1.Service{Name: key.Name, Namespace: key.Namespace}
		for _, word := range words {
			switch name, value, _ := strings.Cut(word, "="); name {
			case "chain":
				s.TemplateChain = value
			case "version":
				s.Version = value
			case "after":
				s.DependsOn = dependsOn(value)
			case "values":
				s.Values = value
			case "disable":
				s.Disable = true
			case "uninstall":
				s.HelmAction = v1alpha1.HelmActionUninstall
			default:
				s.Template = word
			}
		}
		list = append(list, s)
	})
	return list
}

func dependsOn(names string) []v1alpha1.ServiceDependsOn {
	var list []v1alpha1.ServiceDependsOn
	for name := range strings.SplitSeq(names, ",") {
		key := parseKey(name)
		list = append(list, v1alpha1.ServiceDependsOn{Name: key.Name, Namespace: key.Namespace})
	}
	return list
}

func version(text string) v1alpha1.ServiceVersion {
	template, v, _ := strings.Cut(text, "@")
	return v1alpha1.ServiceVersion{Template: template, Version: v}
}

// set makes a ServiceSet, nil if there is nothing in it.
func set(t testing.TB, stored, removing, states string) *v1alpha1.ServiceSet {
	t.Helper()
	if stored+removing+states == "" {
		return nil
	}
	s := &v1alpha1.ServiceSet{}
	lines(t, stored, func(key client.ObjectKey, words []string) {
		s.Spec.Services = append(s.Spec.Services, storedService(key, words))
	})
	lines(t, removing, func(key client.ObjectKey, words []string) {
		removal := v1alpha1.ServiceRemoval{Name: key.Name, Namespace: key.Namespace}
		for _, word := range words {
			removal.DependsOn = dependsOn(strings.TrimPrefix(word, "after="))
		}
		s.Spec.Removing = append(s.Spec.Removing, removal)
	})
	lines(t, states, func(key client.ObjectKey, words []string) {
		s.Status.Services = append(s.Status.Services, serviceState(key, words))
	})
	return s
}

func storedService(key client.ObjectKey, words []string) v1alpha1.ServiceWithValues {
	s := v1alpha1.ServiceWithValues{Name: key.Name, Namespace: key.Namespace}
	for _, word := range words {
		switch name, value, _ := strings.Cut(word, "="); name {
		case "to":
			to := version(value)
			s.UpgradingTo = &to
		case "after":
			s.DependsOn = dependsOn(value)
		case "values":
			s.Values = value
		case "uninstall":
			s.HelmAction = v1alpha1.HelmActionUninstall
		default:
			v := version(word)
			s.Template, s.Version = v.Template, v.Version
		}
	}
	return s
}

func serviceState(key client.ObjectKey, words []string) v1alpha1.ServiceState {
	s := v1alpha1.ServiceState{Name: key.Name, Namespace: key.Namespace, State: v1alpha1.ServicePhase(words[0])}
	for _, word := range words[1:] {
		switch name, value, _ := strings.Cut(word, "="); name {
		case "last":
			s.LastDeployed = &v1alpha1.LastDeployed{ServiceVersion: version(value)}
		case "message":
			s.FailureMessage = value
		default:
			v := version(word)
			s.Template, s.Version = v.Template, v.Version
		}
	}
	return s
}

func chains(t testing.TB, text string) map[string]*v1alpha1.ServiceTemplateChain {
	t.Helper()
	found := map[string]*v1alpha1.ServiceTemplateChain{}
	lines(t, text, func(key client.ObjectKey, words []string) {
		found[key.Name] = &v1alpha1.ServiceTemplateChain{Spec: chainSpec(words...)}
	})
	return found
}

// chainSpec makes a chain of ways: "a>b>c". A template may have a version: "a@1>b@2".
func chainSpec(ways ...string) v1alpha1.ServiceTemplateChainSpec {
	spec := v1alpha1.ServiceTemplateChainSpec{}
	index := map[string]int{}
	at := func(name string) *v1alpha1.SupportedTemplate {
		i, ok := index[name]
		if !ok {
			i = len(spec.SupportedTemplates)
			index[name] = i
			spec.SupportedTemplates = append(spec.SupportedTemplates, v1alpha1.SupportedTemplate{Name: name})
		}
		return &spec.SupportedTemplates[i]
	}
	for _, way := range ways {
		steps := strings.Split(way, ">")
		for i, step := range steps {
			supported := at(version(step).Template)
			if i+1 < len(steps) {
				next := version(steps[i+1])
				supported.AvailableUpgrades = append(supported.AvailableUpgrades, v1alpha1.AvailableUpgrade{Name: next.Template, Version: next.Version})
			}
		}
	}
	return spec
}

// said returns services in the language of the tests, as they are stored.
func said(services []v1alpha1.ServiceWithValues) string {
	var b strings.Builder
	for _, s := range services {
		fmt.Fprintf(&b, "%s: %s@%s", shortKey(s.Namespace, s.Name), s.Template, s.Version)
		if s.UpgradingTo != nil {
			fmt.Fprintf(&b, " to=%s@%s", s.UpgradingTo.Template, s.UpgradingTo.Version)
		}
		if len(s.DependsOn) > 0 {
			names := make([]string, len(s.DependsOn))
			for i, d := range s.DependsOn {
				names[i] = shortKey(d.Namespace, d.Name)
			}
			b.WriteString(" after=" + strings.Join(names, ","))
		}
		if s.Values != "" {
			b.WriteString(" values=" + s.Values)
		}
		if s.HelmAction == v1alpha1.HelmActionUninstall {
			b.WriteString(" uninstall")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// saidWhy returns decisions, each on a line with its reason.
func saidWhy(decisions []serviceset.Decision) string {
	var b strings.Builder
	for i := range decisions {
		fmt.Fprintf(&b, "%s: %s\n", decisions[i].Reason, strings.ReplaceAll(decisions[i].String(), "default/", ""))
	}
	return b.String()
}

func shortKey(namespace, name string) string {
	if namespace == "" || namespace == "default" {
		return name
	}
	return namespace + "/" + name
}

// trimmed drops the indentation of a raw string.
func trimmed(text string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}
