package serviceset_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// platform makes blocks of 200 services with five dependencies each on earlier ones of their block, and a chain of ten
// templates for every ten. All but a tenth run in the desired version. More services are more of the same blocks, so that
// the ratio of their times says how the time grows.
func platform(services int) serviceset.Input {
	var random *rand.Rand
	in := serviceset.Input{
		Owner:     serviceset.Owner{Kind: v1alpha1.ClusterDeploymentKind, Set: &v1alpha1.ServiceSet{}},
		Templates: map[string]*v1alpha1.ServiceTemplate{},
		Chains:    map[string]*v1alpha1.ServiceTemplateChain{},
	}
	set := in.Owner.Set
	for i := range services {
		if i%200 == 0 {
			random = rand.New(rand.NewPCG(1, 2))
		}
		chain := fmt.Sprintf("chain-%d", i/10)
		if i%10 == 0 {
			in.Chains[chain] = platformChain(chain, in.Templates)
		}
		s := v1alpha1.Service{Name: fmt.Sprintf("service-%d", i), Namespace: "default", Template: chain + "-9", TemplateChain: chain, Values: "a: b"}
		for range min(5, i%200) {
			d := i - 1 - random.IntN(i%200)
			s.DependsOn = append(s.DependsOn, v1alpha1.ServiceDependsOn{Name: fmt.Sprintf("service-%d", d), Namespace: "default"})
		}
		in.Owner.Services = append(in.Owner.Services, s)
		at := 9
		if i%10 == 9 {
			at = 3
		}
		version := fmt.Sprintf("1.%d.0", at)
		set.Spec.Services = append(set.Spec.Services, v1alpha1.ServiceWithValues{
			Name: s.Name, Namespace: "default", Template: fmt.Sprintf("%s-%d", chain, at), Version: version, Values: s.Values, DependsOn: s.DependsOn,
		})
		set.Status.Services = append(set.Status.Services, v1alpha1.ServiceState{
			Name: s.Name, Namespace: "default", State: v1alpha1.ServiceStateDeployed, Template: fmt.Sprintf("%s-%d", chain, at), Version: version,
		})
	}
	// As we write it.
	slices.SortFunc(set.Spec.Services, func(a, b v1alpha1.ServiceWithValues) int { return strings.Compare(a.Name, b.Name) })
	return in
}

func platformChain(name string, templates map[string]*v1alpha1.ServiceTemplate) *v1alpha1.ServiceTemplateChain {
	chain := &v1alpha1.ServiceTemplateChain{}
	for i := range 10 {
		t := &v1alpha1.ServiceTemplate{}
		t.Name = fmt.Sprintf("%s-%d", name, i)
		t.Spec.Version = fmt.Sprintf("1.%d.0", i)
		templates[t.Name] = t
		supported := v1alpha1.SupportedTemplate{Name: t.Name}
		for next := i + 1; next < min(10, i+3); next++ {
			supported.AvailableUpgrades = append(supported.AvailableUpgrades, v1alpha1.AvailableUpgrade{Name: fmt.Sprintf("%s-%d", name, next)})
		}
		chain.Spec.SupportedTemplates = append(chain.Spec.SupportedTemplates, supported)
	}
	return chain
}

func TestResolvingAllocatesLessThanOnceAService(t *testing.T) {
	const services = 2000
	in := platform(services)
	allocations := testing.AllocsPerRun(5, func() {
		if _, err := serviceset.Resolve(in); err != nil {
			t.Fatal(err)
		}
	})
	if allocations > services {
		t.Errorf("%d services take %.0f allocations: what belongs to one service has to be a part of a list for all", services, allocations)
	}
}

func BenchmarkResolve(b *testing.B) {
	for _, services := range []int{200, 2000, 10000} {
		b.Run(fmt.Sprintf("%d services", services), func(b *testing.B) {
			in := platform(services)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := serviceset.Resolve(in); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(services), "ns/service")
		})
	}
}
