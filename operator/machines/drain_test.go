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

func TestServicesMoveAwayFromMachinesThatAreDeleted(t *testing.T) {
	w := newWorld(t, 2)
	w.start()
	web := service("web", "app:1", 3)
	w.create(web)
	w.want(web, "Ready=True")
	stays := web.Status.Machines[1].Containers[0].Name

	m := w.machine(0)
	if err := w.user.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.wantGone(m)
	w.want(web, "Ready=True Deployed: all 3 containers work")
	w.want(web, "Blocked=False")
	w.wantContainers("web", "", "app:1 running, app:1 running, app:1 running")
	// The machine that went may be in the status for a moment longer.
	operatortest.Eventually(t, "the status tells of the other machine alone", func() error {
		if err := w.user.Get(t.Context(), client.ObjectKeyFromObject(web), web); err != nil {
			return err
		}
		if on := web.Status.Machines; len(on) != 1 || on[0].Name != w.machine(1).Name {
			return fmt.Errorf("it tells of %v", on)
		}
		return nil
	})
	if !slices.ContainsFunc(web.Status.Machines[0].Containers, func(c v1alpha1.ContainerStatus) bool { return c.Name == stays }) {
		t.Errorf("%s, which was not concerned, is not among %v", stays, web.Status.Machines)
	}
}

func TestMachinesThatAreUnschedulableTakeNoNewContainers(t *testing.T) {
	w := newWorld(t, 2)
	w.start()
	other := w.machine(1)
	change(w, other, func(m *v1alpha1.Machine) { m.Spec.Unschedulable = true })
	w.want(other, "Ready=True")
	web := service("web", "app:1", 2)
	w.create(web)
	w.want(web, "Ready=True")
	w.wantContainers("web", "app:1 running, app:1 running", "")

	m := w.machine(0)
	if err := w.user.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.want(web, "Blocked=True Unschedulable: left on engine-1, although it is drained: 2 containers, because there is no other machine: "+
		"engine-1: it is being deleted; engine-2: its spec.unschedulable is true")
	w.wantContainers("web", "app:1 running, app:1 running", "")

	change(w, other, func(m *v1alpha1.Machine) { m.Spec.Unschedulable = false })
	w.wantGone(m)
	w.want(web, "Ready=True")
	w.wantContainers("web", "", "app:1 running, app:1 running")

	// Those that are there stay.
	change(w, other, func(m *v1alpha1.Machine) { m.Spec.Unschedulable = true })
	change(w, web, func(s *v1alpha1.MachineService) { s.Spec.Replicas = new(int32(1)) })
	w.want(web, "Ready=True Deployed: all 1 containers work")
	w.wantContainers("web", "", "app:1 running")
}

func TestMachinesWaitForPlansThatAreAboutToUseThem(t *testing.T) {
	w := newWorld(t, 2)
	w.start()
	// The first container is waited for, so that the one on the other machine is not made.
	web := neverReady("web", 2)
	w.create(web)
	operatortest.Eventually(t, "the first container is waited for", func() bool {
		return strings.Join(w.containers(w.engines[0], "web"), "") == "app:slow running"
	})
	m := w.machine(1)
	if err := w.user.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.want(m, "Ready=True InUse: it is deleted once no containers of services are on it: web")
	change(w, web, func(s *v1alpha1.MachineService) {
		s.Spec.Container.Image, s.Spec.Container.HealthCheck = "app:1", nil
	})
	w.wantGone(m)
	w.want(web, "Ready=True")
	w.wantContainers("web", "app:1 running, app:1 running", "")
}
