package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

func TestAnEmptyCommandIsSomethingElseThanNone(t *testing.T) {
	absent := valid()
	for name, set := range map[string]func(s *api.ServiceSpec, list []string){
		"command":    func(s *api.ServiceSpec, list []string) { s.Container.Command = list },
		"entrypoint": func(s *api.ServiceSpec, list []string) { s.Container.Entrypoint = list },
		"preDeploy.entrypoint": func(s *api.ServiceSpec, list []string) {
			s.PreDeploy = &api.PreDeployHook{Command: []string{"migrate"}, Entrypoint: list}
		},
	} {
		empty, without := valid(), valid()
		set(&empty, []string{})
		set(&without, nil)
		if empty.Equal(without) || without.Equal(empty) {
			t.Errorf("%s: empty and absent are equal", name)
		}
		var back api.ServiceSpec
		text, err := json.Marshal(empty)
		if err != nil || json.Unmarshal(text, &back) != nil || !back.Equal(empty) {
			t.Errorf("%s: the record is not the same: %s", name, text)
		}
		if clone, record := empty.Clone(), empty.Fingerprinted(); !clone.Equal(empty) || !record.Equal(empty) {
			t.Errorf("%s: a copy is not the same", name)
		}
		if err := empty.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text, err := json.Marshal(absent); err != nil || strings.Contains(string(text), "command") {
		t.Errorf("an absent command is in the record: %s", text)
	}
	hooked := valid()
	hooked.Container.Entrypoint = []string{"app"}
	hooked.PreDeploy = &api.PreDeployHook{Command: []string{"migrate"}, Entrypoint: []string{}}
	if hook := hooked.HookSpec(); hook.Container.Entrypoint == nil || len(hook.Container.Entrypoint) > 0 {
		t.Errorf("the hook has the entrypoint %v", hook.Container.Entrypoint)
	}
	nothing := valid()
	nothing.Container.Command, nothing.Container.Entrypoint = []string{}, []string{}
	if err := nothing.Validate(); err == nil || !strings.Contains(err.Error(), "container.command: Invalid") {
		t.Errorf("a container that has nothing to run: %v", err)
	}
}

func TestAJobHasWhatRunsToItsEnd(t *testing.T) {
	job := valid()
	job.Mode = api.ServiceModeJob
	job.SetDefaults()
	if err := job.Validate(); err != nil || job.Container.RestartPolicy.Name != api.RestartNo || job.Replicas != nil {
		t.Errorf("%v, %+v", err, job)
	}
	one := int32(1)
	for path, change := range map[string]func(*api.ServiceSpec){
		"replicas: Forbidden": func(s *api.ServiceSpec) { s.Replicas = &one },
		"container.restartPolicy.name: Invalid": func(s *api.ServiceSpec) {
			s.Container.RestartPolicy.Name = api.RestartUnlessStopped
		},
		"preDeploy: Forbidden": func(s *api.ServiceSpec) { s.PreDeploy = &api.PreDeployHook{Command: []string{"a"}} },
		"ports[0]: Forbidden":  func(s *api.ServiceSpec) { s.Ports = []api.PortSpec{{ContainerPort: 80}} },
	} {
		spec := job.Clone()
		change(&spec)
		if err := spec.Validate(); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v, want %s", err, path)
		}
	}
}

func TestWhatHasEndedIsOverByItsRestartPolicy(t *testing.T) {
	for _, tc := range []struct {
		policy      api.RestartPolicy
		code        int
		over, ready bool
	}{
		{api.RestartPolicy{Name: api.RestartUnlessStopped}, 0, false, false},
		{api.RestartPolicy{}, 0, false, false},
		{api.RestartPolicy{Name: api.RestartNo}, 0, true, true},
		{api.RestartPolicy{Name: api.RestartNo}, 1, true, false},
		{api.RestartPolicy{Name: api.RestartOnFailure}, 0, true, true},
		{api.RestartPolicy{Name: api.RestartOnFailure}, 1, false, false},
		{api.RestartPolicy{Name: api.RestartOnFailure, MaxRetries: 3}, 1, true, false},
	} {
		c := api.Container{State: api.ContainerExited, ExitCode: tc.code}
		c.Spec.Container.RestartPolicy = tc.policy
		if c.Over() != tc.over || c.Ready() != tc.ready {
			t.Errorf("%+v with %d: over %v, ready %v", tc.policy, tc.code, c.Over(), c.Ready())
		}
		if c.State = api.ContainerCreated; c.Over() || c.Ready() {
			t.Errorf("%+v: it was not started yet", tc.policy)
		}
	}
}
