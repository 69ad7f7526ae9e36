package deployment_test

import (
	"context"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// web is a service named web.
func web(image string, replicas int32, change ...func(*api.ServiceSpec)) api.ServiceSpec {
	spec := api.ServiceSpec{Name: "web", Replicas: &replicas, Container: api.ContainerSpec{Image: image}}
	for _, f := range change {
		f(&spec)
	}
	return spec
}

func global(s *api.ServiceSpec) { s.Mode, s.Replicas = api.ServiceModeGlobal, nil }

func checked(s *api.ServiceSpec) {
	s.Container.HealthCheck = &api.HealthCheck{Test: []string{"CMD", "true"}}
}

func port80(s *api.ServiceSpec) {
	s.Ports = append(s.Ports, api.PortSpec{Mode: api.PortModeHost, PublishedPort: 80, ContainerPort: 8080})
}

func data(s *api.ServiceSpec) {
	s.Volumes = append(s.Volumes, api.VolumeSpec{Name: "data"})
	s.Container.VolumeMounts = append(s.Container.VolumeMounts, api.VolumeMount{Volume: "data", Path: "/data"})
}

func rollback(s *api.ServiceSpec) { s.Update.FailureAction = api.FailureRollback }

func hook(command string) func(*api.ServiceSpec) {
	return func(s *api.ServiceSpec) { s.PreDeploy = &api.PreDeployHook{Command: []string{command}} }
}

func quantity(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

// deploy makes a plan and runs it.
func deploy(ctx context.Context, s *simulation, spec api.ServiceSpec, strategy deployment.Strategy) (deployment.Plan, error) {
	return deployment.NewDeployment(s, spec, strategy).Run(ctx)
}

// mustDeploy makes plans and runs them until there is nothing to do.
func mustDeploy(t *testing.T, s *simulation, spec api.ServiceSpec) {
	t.Helper()
	for range 10 {
		plan, err := deploy(t.Context(), s, spec, nil)
		if err != nil {
			t.Fatal(err)
		}
		if plan.Empty() {
			return
		}
	}
	t.Fatal("the plans have no end")
}

// bubble runs a test on a clock of its own, which moves when everybody waits.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}
