package machines_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	example "github.com/operatorkit/operatorkit/examples/machines"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

func TestMachinesAreDrawnWithTheirContainers(t *testing.T) {
	machine := func(name, reason string) v1alpha1.Machine {
		return v1alpha1.Machine{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status:     v1alpha1.MachineStatus{Conditions: []metav1.Condition{{Type: "Ready", Reason: reason}}},
		}
	}
	container := func(name string, health api.Health, port uint16) v1alpha1.ContainerStatus {
		return v1alpha1.ContainerStatus{
			Name: name, State: api.ContainerRunning, Health: health, Image: "shop:2", Ports: []api.PortSpec{{PublishedPort: port, ContainerPort: 8080}},
		}
	}
	service := example.NewService("default", "2")
	service.Status.UpToDate = 1
	service.Status.Machines = []v1alpha1.MachineContainers{
		{Name: "a", State: api.MachineAvailable, Containers: []v1alpha1.ContainerStatus{
			container("shop-1", api.HealthHealthy, 32768), container("shop-2", api.HealthStarting, 32769),
		}},
		{Name: "b", State: api.MachineUnknown, Containers: []v1alpha1.ContainerStatus{container("shop-3", api.HealthHealthy, 32770)}},
		{Name: "c", State: api.MachineUnknown},
	}
	var got bytes.Buffer
	all := []v1alpha1.Machine{machine("c", "Unreachable"), machine("a", "Connected"), machine("b", "Unreachable")}
	if err := example.Draw(&got, all, service); err != nil {
		t.Fatal(err)
	}
	want := `┌─ a (connected) ──────────────┐  ┌─ b (unreachable) ────────────┐  ┌─ c (unreachable) ────────────┐
│ ● shop-1 shop:2 :32768       │  │ ? shop-3 shop:2 :32770       │  │ ? what is here is not known  │
│ ○ shop-2 shop:2 :32769       │  │                              │  │                              │
└──────────────────────────────┘  └──────────────────────────────┘  └──────────────────────────────┘
service shop: 1 of 6 containers work and are shop:2
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Error(diff)
	}
}
