package deployment_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
)

// fleet is a cluster with ten containers of web and one of somebody else on each machine.
func fleet(containers int) (*scheduler.ClusterState, api.ServiceSpec) {
	spec := web("app:v1", int32(containers), checked)
	spec.Container.Env = map[string]string{"A": "1", "B": "2", "C": "3"}
	spec.SetDefaults()
	state := &scheduler.ClusterState{}
	for i := range containers / 10 {
		m := &scheduler.Machine{Machine: api.Machine{ID: fmt.Sprintf("id-%d", i), Name: fmt.Sprintf("m%d", i)}}
		m.Inventory.Images = []api.Image{{Tags: []string{"app:v1"}}, {Tags: []string{"other:v1"}}}
		for j := range 11 {
			c := api.Container{
				ID: fmt.Sprintf("c%d-%d", i, j), Name: fmt.Sprintf("web-%d-%d", i, j), ServiceID: "1", ServiceName: "web", Spec: spec,
				State: api.ContainerRunning, Health: api.HealthHealthy, Created: metav1.Unix(int64(j), 0),
			}
			if j == 10 {
				c.ServiceID, c.ServiceName, c.Spec = "", "", api.ServiceSpec{}
			}
			m.Inventory.Containers = append(m.Inventory.Containers, c)
		}
		state.Machines = append(state.Machines, m)
	}
	return state, spec
}

// BenchmarkPlan plans for a version that replaces all containers, and for none that does. The time of a container says how planning
// grows: it grows with the logarithm of their number.
func BenchmarkPlan(b *testing.B) {
	for _, kind := range []string{"replace all", "nothing to do", "place all"} {
		for _, containers := range []int{100, 1000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d containers", kind, containers), func(b *testing.B) {
				state, spec := fleet(containers)
				switch kind {
				case "replace all":
					spec.Container.Image = "app:v2"
				case "place all":
					spec.Name = "new"
				}
				b.ReportAllocs()
				for b.Loop() {
					strategy := &deployment.RollingStrategy{State: state}
					plan, err := strategy.Plan(b.Context(), nil, nil, spec)
					if err != nil || plan.Empty() != (kind == "nothing to do") {
						b.Fatal(plan.Empty(), err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(containers), "ns/container")
			})
		}
	}
}

// TestPlanningAllocatesInProportion holds that ten times the containers take not much more than ten times the memory allocations, which
// is what n log n allows, unlike their square.
func TestPlanningAllocatesInProportion(t *testing.T) {
	for name, cluster := range map[string]func(containers int) (*scheduler.ClusterState, api.ServiceSpec){
		"ten on each machine": func(containers int) (*scheduler.ClusterState, api.ServiceSpec) {
			state, spec := fleet(containers)
			spec.Container.Image = "app:v2"
			return state, spec
		},
		"all on one machine": func(containers int) (*scheduler.ClusterState, api.ServiceSpec) {
			state, spec := fleet(10)
			spec.Name, spec.Replicas = "new", new(int32(containers))
			return state, spec
		},
	} {
		t.Run(name, func(t *testing.T) {
			allocations := func(containers int) float64 {
				state, spec := cluster(containers)
				return testing.AllocsPerRun(1, func() {
					plan, err := (&deployment.RollingStrategy{State: state}).Plan(t.Context(), nil, nil, spec)
					if err != nil || plan.Empty() {
						t.Fatal(plan.Empty(), err)
					}
				})
			}
			small, large := allocations(200), allocations(2000)
			if ratio := large / small; ratio > 15 {
				t.Errorf("10 times the containers take %.1f times the allocations", ratio)
			}
		})
	}
}
