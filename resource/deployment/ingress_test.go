package deployment_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// servedAt publishes port 80 of a service in mode ingress.
func servedAt(host, path string) func(*api.ServiceSpec) {
	return func(s *api.ServiceSpec) { s.Ports = []api.PortSpec{{Hostname: host, Path: path, ContainerPort: 80}} }
}

func TestPortsInModeIngressNeedAMachineForThem(t *testing.T) {
	s := newSimulation(3)
	s.machines[2].MeshAddress = "10.0.0.3"
	spec := web("app:v1", 2, servedAt("www.example.com", ""))
	_, err := deployment.NewDeployment(s, spec, nil).Plan(t.Context())
	if !errors.Is(err, scheduler.ErrNoIngress) || !strings.Contains(err.Error(), "port www.example.com:443:80/https of service web: ") {
		t.Errorf("got %v", err)
	}
	none := spec.Clone()
	none.Replicas = new(int32(0))
	if _, err := deployment.NewDeployment(s, none, nil).Plan(t.Context()); err != nil {
		t.Errorf("without containers: %v", err)
	}
	s.machines[1].Ingress = true
	if _, err := deployment.NewDeployment(s, spec, nil).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{0, 1, 1} {
		if n := len(s.machines[i].containers); n != want {
			t.Errorf("machine %d has %d containers, want %d: one is for them, and the last one is reached from there", i, n, want)
		}
	}
}

func TestOfTwoPlansForOnePlaceTheSecondIsStale(t *testing.T) {
	s := newSimulation(2)
	s.machines[0].Ingress, s.machines[1].Ingress = true, true
	first, err := deployment.NewDeployment(s, web("app:v1", 1, servedAt("www.example.com", "")), nil).Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other := named("other", 1, servedAt("www.example.com", ""))
	second, err := deployment.NewDeployment(s, other, nil).Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Run(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context(), s); !errors.Is(err, deployment.ErrStalePlan) || !strings.Contains(err.Error(), "can't be served at www.example.com") {
		t.Errorf("got %v", err)
	}
	_, err = deployment.NewDeployment(s, other, nil).Plan(t.Context())
	var taken *scheduler.LocationError
	if !errors.As(err, &taken) {
		t.Errorf("got %v", err)
	}
}
