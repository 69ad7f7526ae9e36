package machines_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestServicesAreDrawnAsTheEnginesTellOfThem(t *testing.T) {
	w := newWorld(t, 2)
	w.start()
	web := service("web", "app:1", 2)
	w.create(web)
	w.want(web, "Ready=True Deployed: ")
	w.wantDrawn(web, "container:ready container:ready machine:ready machine:ready service:ready")

	// One container after the other: the first new one does not become healthy for minutes, and the old ones serve on.
	change(w, web, func(s *v1alpha1.MachineService) { s.Spec.Container.Image = "app:slow" })
	w.wantDrawn(web, "container:progressing container:removing container:removing machine:ready machine:ready service:progressing")
	change(w, web, func(s *v1alpha1.MachineService) { s.Spec.Container.Image = "app:1" })
	w.want(web, "Ready=True Deployed: ")

	if err := w.engines[1].Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.want(web, "Ready=False MachineUnknown: ")
	w.wantDrawn(web, "container:ready container:unknown machine:ready machine:unknown service:unknown")
}

// wantDrawn waits until the nodes of the picture of a service are of certain kinds and states, in alphabetical order.
func (w *world) wantDrawn(s *v1alpha1.MachineService, want string) {
	w.t.Helper()
	operatortest.Eventually(w.t, "it is drawn as "+want, func() error {
		graphs, err := w.inspector.Graphs(w.t.Context(), w.frameworks["machineservices"], client.ObjectKeyFromObject(s))
		if err != nil || len(graphs) != 1 {
			return fmt.Errorf("%d graphs and the error %w", len(graphs), err)
		}
		var nodes []string
		for _, n := range graphs[0].Nodes {
			kind, _, _ := strings.Cut(n.ID, "/")
			nodes = append(nodes, fmt.Sprintf("%s:%s", kind, n.State))
		}
		slices.Sort(nodes)
		if got := strings.Join(nodes, " "); got != want {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})
}
