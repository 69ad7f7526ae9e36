package statemanagers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

func TestServiceSetsAreDrawnWithWhatTheyStandOnInOthers(t *testing.T) {
	w := newWorld(t)
	w.files("rules", map[string]string{"rules.yaml": mapManifest})
	w.create(filesTemplate("broken"), filesTemplate("rules"), pageTemplate(w.charts, "1.0.0"))
	w.reach("one")
	r := w.start()
	one := cluster("one", w.service("broken=broken"), w.service("shop=page-1.0.0"), w.service("unrelated=page-1.0.0"))
	w.create(one)
	w.wantService("one", "broken", "Failed broken")
	w.wantService("one", "shop", "Deployed page-1.0.0")
	w.wantService("one", "unrelated", "Deployed page-1.0.0")
	w.wantDrawn(r, w.named("one"), "broken@1.0.0:blocked shop@1.0.0:ready unrelated@1.0.0:ready")

	all := &v1alpha1.MultiClusterService{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace, Labels: map[string]string{scenarioLabel: w.namespace}},
		Spec: v1alpha1.MultiClusterServiceSpec{
			ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}},
			ServiceSpec:     v1alpha1.ServiceSpec{Services: []v1alpha1.Service{w.service("shop=page-1.0.0"), w.service("rules=rules", "shop")}},
		},
	}
	if err := w.user.Create(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	key := serviceset.ObjectKey("", one, all)
	w.wantService(key.Name, "rules", "Deployed rules")
	w.wantDrawn(r, key, "rules@1.0.0:ready<-shop shop@1.0.0:ready(service set one)")
	if err := w.user.Delete(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	w.wantGone(all)
}

// named is the key of something in the namespace of the world.
func (w *world) named(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: w.namespace, Name: name}
}

// wantDrawn waits until the nodes of the picture of a ServiceSet are "name@versions:state(group)<-dependencies", in alphabetical order.
func (w *world) wantDrawn(r *running, set client.ObjectKey, want string) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("%s is drawn as %s", set.Name, want), func() error {
		graphs, err := r.deps.Inspector.Graphs(w.t.Context(), r.native(), set)
		if err != nil || len(graphs) != 1 {
			return fmt.Errorf("%d graphs and the error %w", len(graphs), err)
		}
		var nodes []string
		for _, n := range graphs[0].Nodes {
			text := strings.TrimPrefix(n.Label, w.namespace+"/")
			if len(n.Versions) > 0 {
				text += "@" + strings.Join(n.Versions, ">")
			}
			text += ":" + string(n.State)
			if n.Group != "" {
				text += "(" + n.Group + ")"
			}
			for _, id := range n.DependsOn {
				text += "<-" + strings.TrimPrefix(id, w.namespace+"/")
			}
			nodes = append(nodes, text)
		}
		slices.Sort(nodes)
		if got := strings.Join(nodes, " "); got != want {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})
}
