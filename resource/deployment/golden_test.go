package deployment_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a text with testdata/name.
func golden(t *testing.T, name, have string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(have), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), have); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// large changes attributes of every kind, secret ones too.
func large(s *api.ServiceSpec) {
	c := &s.Container
	c.Command = []string{"serve", "--verbose"}
	c.Env = map[string]string{"LOG": "debug"}
	c.SecretEnv = map[string]api.Hidden{"PASSWORD": "hunter2"}
	c.Resources = api.Resources{CPU: quantity("500m"), Memory: quantity("1Gi"), Ulimits: map[string]api.Ulimit{"nofile": {Soft: 1024, Hard: 4096}}}
	c.CapAdd = []string{"NET_ADMIN"}
	c.StopGracePeriod = &metav1.Duration{Duration: time.Minute}
	c.LogDriver = &api.LogDriver{Name: "splunk", Options: map[string]string{"splunk-token": "hunter2"}}
	s.Configs = []api.ConfigSpec{{Name: "settings", Content: "password: hunter2"}}
	c.ConfigMounts = []api.ConfigMount{{Config: "settings", Path: "/etc/settings"}}
	s.Ports = []api.PortSpec{{ContainerPort: 8080}}
}

// plans are what the golden files show.
var plans = []struct {
	name     string
	machines int
	from     []api.ServiceSpec
	change   func(s *simulation)
	to       api.ServiceSpec
	strategy deployment.Strategy
}{
	{name: "first", machines: 3, to: web("app:v1", 4, hook("migrate"))},
	{name: "nothing", machines: 2, from: []api.ServiceSpec{web("app:v1", 2)}, to: web("app:v1", 2)},
	{name: "start-first", machines: 2, from: []api.ServiceSpec{web("app:v1", 3)}, to: web("app:v2", 3, rollback)},
	{name: "stop-first", machines: 2, from: []api.ServiceSpec{web("app:v1", 2, port80)}, to: web("app:v2", 2, port80)},
	{name: "attributes", machines: 1, from: []api.ServiceSpec{web("app:v1", 1)}, to: web("app:v2", 1, large), change: func(s *simulation) {
		s.machine("m1").Ingress = true
	}},
	{name: "in-place", machines: 2, from: []api.ServiceSpec{web("app:v1", 2)}, to: web("app:v1", 3, func(s *api.ServiceSpec) {
		s.Container.Resources.Memory = quantity("512Mi")
		s.Container.RestartPolicy = api.RestartPolicy{Name: api.RestartOnFailure, MaxRetries: 3}
	})},
	{name: "shrink-with-volume", machines: 2, from: []api.ServiceSpec{web("app:v1", 3, data)}, to: web("app:v2", 1, data)},
	{name: "move", machines: 2, from: []api.ServiceSpec{web("app:v1", 2)}, to: web("app:v1", 2, func(s *api.ServiceSpec) {
		s.Placement.Machines = []string{"m2"}
	})},
	{name: "global", machines: 3, from: []api.ServiceSpec{web("app:v1", 0, global)}, to: web("app:v2", 0, global, data), change: func(s *simulation) {
		s.machine("m3").unreachable = true
	}},
	{name: "unseen", machines: 3, from: []api.ServiceSpec{web("app:v1", 3)}, to: web("app:v2", 4), change: func(s *simulation) {
		s.machine("m2").unreachable = true
		s.machine("m3").unreachable, s.machine("m3").forgotten = true, true
	}},
	{name: "stopped", machines: 2, from: []api.ServiceSpec{web("app:v1", 2)}, to: web("app:v1", 2), change: func(s *simulation) {
		s.machine("m1").containers[0].State = api.ContainerExited
	}},
	{name: "blue-green", machines: 2, from: []api.ServiceSpec{web("app:v1", 3)}, to: web("app:v2", 2),
		strategy: &deployment.BlueGreenStrategy{Hold: time.Minute}},
	{name: "canary", machines: 4, from: []api.ServiceSpec{web("app:v1", 10)}, to: web("app:v2", 10, func(s *api.ServiceSpec) {
		s.Update.Parallelism, s.Update.MaxFailurePercent = 3, 20
		s.Update.Delay = metav1.Duration{Duration: 10 * time.Second}
	}), strategy: &deployment.CanaryStrategy{}},
}

func TestPlanTexts(t *testing.T) {
	for _, tc := range plans {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := newSimulation(tc.machines)
				for _, spec := range tc.from {
					mustDeploy(t, s, spec)
				}
				if tc.change != nil {
					tc.change(s)
				}
				log := len(s.log)
				plan, err := deployment.NewDeployment(s, tc.to, tc.strategy).Plan(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if len(s.log) != log {
					t.Errorf("planning changed something: %v", s.log[log:])
				}
				golden(t, "plans/"+tc.name+".txt", plan.Format(nil))
				text, err := json.MarshalIndent(&plan, "", "  ")
				if err != nil {
					t.Fatal(err)
				}
				golden(t, "plans/"+tc.name+".json", string(text)+"\n")
				if all := plan.Format(nil) + plan.String() + string(text); strings.Contains(all, "hunter2") {
					t.Error("the plan has something secret in it")
				}
			})
		})
	}
}
