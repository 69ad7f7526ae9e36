package docker_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

func TestWhatAContainerHasWrittenLastIsInTheError(t *testing.T) {
	k := newKit(t)
	const secret = "hunter2-and-more"
	s := spec(image1, 1)
	s.Container.SecretEnv = map[string]api.Hidden{"TOKEN": secret}
	s.Container.Command, s.Container.RestartPolicy.Name = []string{"say", secret}, api.RestartNo
	_, err := k.deploy(s, nil)
	if !errors.Is(err, api.ErrUnhealthy) || !strings.Contains(err.Error(), "its last lines are") || !strings.Contains(err.Error(), "are not known") ||
		strings.Contains(err.Error(), secret) {
		t.Errorf("err = %v", err)
	}

	s.Container.Command = nil
	s.PreDeploy = &api.PreDeployHook{Command: []string{"whisper"}}
	var hook *deployment.HookError
	if _, err := k.deploy(s, nil); !errors.As(err, &hook) || !strings.Contains(err.Error(), `\"whisper\"] are not known`) {
		t.Errorf("err = %v", err)
	}
}
