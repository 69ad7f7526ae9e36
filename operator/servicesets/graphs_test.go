package servicesets_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/inspector/graph"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// wantGraphs waits until the graphs of an object are these, as lines.
func (w *world) wantGraphs(r *running, framework int, o client.Object, want ...string) {
	w.t.Helper()
	operatortest.Eventually(w.t, "the graphs of "+o.GetName(), func() error {
		graphs, err := r.deps.Inspector.Graphs(w.t.Context(), r.frameworks[framework], client.ObjectKeyFromObject(o))
		if err != nil {
			return err
		}
		var got []string
		for _, g := range graphs {
			got = append(got, linesOf(g)...)
		}
		for i := range got {
			got[i] = strings.ReplaceAll(got[i], w.namespace, "ns")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("%s", diff)
		}
		return nil
	})
}

func linesOf(g *graph.Graph) []string {
	lines := []string{"# " + g.Title}
	for _, n := range g.Nodes {
		line := fmt.Sprintf("%s %s %s: %s", n.Label, strings.Join(n.Versions, " > "), n.State, n.Message)
		if n.Group != "" {
			line += " [" + n.Group + "]"
		}
		if len(n.DependsOn) > 0 {
			line += fmt.Sprint(" needs ", n.DependsOn)
		}
		if len(n.WaitsFor) > 0 {
			line += fmt.Sprint(" held up by ", n.WaitsFor)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestGraphsShowServicesAndWhatTheyWaitFor(t *testing.T) {
	w := newWorld(t)
	w.templates("a-1-0-0", "a-2-0-0", "a-3-0-0", "b-1-0-0", "m-1-0-0")
	w.create(chainOf("a", "a-1-0-0", "a-2-0-0", "a-3-0-0"))
	r := w.start()
	a := service("a=a-1-0-0")
	a.TemplateChain = "a"
	one := cluster("one", "gold", a, service("b=b-1-0-0", "a"))
	mcs := w.multi("base", "gold", service("m=m-1-0-0"), service("b=b-1-0-0", "m"))
	mcs.Spec.ServiceSpec.Priority = 50
	two := cluster("two", "gold")
	w.create(one, two, mcs)
	w.report(w.setName(one, nil), v1alpha1.ServiceStateDeployed, "a")
	w.report(w.setName(one, mcs), v1alpha1.ServiceStateDeployed, "m")
	change(w, one, func(cd *v1alpha1.ClusterDeployment) { cd.Spec.ServiceSpec.Services[0].Template = "a-3-0-0" })
	owned := "belongs to ClusterDeployment ns/one, which has priority 100, MultiClusterService base-ns has 50"
	w.wantGraphs(r, 0, one,
		"# Services of cluster ns/one",
		"a 1.0.0 > 2.0.0 > 3.0.0 progressing: 2.0.0 is on its way, a step to 3.0.0 [ClusterDeployment ns/one]",
		"b 1.0.0 waiting: waits for a [ClusterDeployment ns/one] needs [default/a] held up by [default/a]",
		"m 1.0.0 ready: 1.0.0 is deployed [MultiClusterService base-ns]",
		"# Services of ClusterDeployment ns/one in service set ns/one",
		"a 1.0.0 > 2.0.0 > 3.0.0 progressing: 2.0.0 is on its way, a step to 3.0.0",
		"b 1.0.0 waiting: waits for a needs [default/a] held up by [default/a]",
		"# Services of MultiClusterService base-ns in service set ns/"+w.setName(one, mcs).Name,
		"b 1.0.0 disabled: "+owned+" needs [default/m]",
		"m 1.0.0 ready: 1.0.0 is deployed",
	)
	w.wantGraphs(r, 1, mcs,
		"# Services of MultiClusterService base-ns",
		"b b-1-0-0 progressing: deployed on 0 of 1 cluster, overridden on 1 needs [default/m]",
		"m m-1-0-0 progressing: deployed on 1 of 2 clusters",
	)
}

// chainOf is a chain of templates, each an upgrade of the one before.
func chainOf(name string, templates ...string) *v1alpha1.ServiceTemplateChain {
	chain := &v1alpha1.ServiceTemplateChain{}
	chain.Name = name
	for i, t := range templates {
		supported := v1alpha1.SupportedTemplate{Name: t}
		for _, next := range slices.Clone(templates)[i+1 : min(i+2, len(templates))] {
			supported.AvailableUpgrades = append(supported.AvailableUpgrades, v1alpha1.AvailableUpgrade{Name: next})
		}
		chain.Spec.SupportedTemplates = append(chain.Spec.SupportedTemplates, supported)
	}
	return chain
}
