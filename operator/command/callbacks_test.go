package command_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
)

func TestR4APanicOfNewOrConfigureIsTheErrorOfTheCommand(t *testing.T) {
	configures := idle(func(context.Context, *operator.Dependencies, *operator.Config) error { panic("at the start") })
	news := idle(nil)
	news.New = func(context.Context, *operator.Dependencies) ([]*framework.Framework, error) { panic("at the start") }
	for name, config := range map[string]command.Config{"New": news, "Configure": configures} {
		t.Run(name, func(t *testing.T) {
			config.RESTConfig = &rest.Config{Host: "http://127.0.0.1:1"}
			var stderr bytes.Buffer
			code := command.Execute(t.Context(), config, []string{"run", "--log-format", "text"}, &stderr, &stderr)
			if code != command.ExitFailure || strings.Count(stderr.String(), "panic: value of type string in github.com/operatorkit/operatorkit/") < 2 || !strings.Contains(stderr.String(), "callbacks_test.go") {
				t.Errorf("got %d %s, want an error with a stack", code, &stderr)
			}
		})
	}
}
