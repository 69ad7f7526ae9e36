package command_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/command"
)

func TestExitCodeTellsWhatKindOfEndItWas(t *testing.T) {
	none := func(context.Context, *operator.Dependencies) ([]*framework.Framework, error) { return nil, nil }
	good := command.Config{Name: "gardener", New: none}
	tests := []struct {
		name   string
		config command.Config
		args   []string
		want   int
	}{
		{"success", good, []string{"version"}, command.ExitOK},
		{"help", good, []string{"--help"}, command.ExitOK},
		{"a failure", good, []string{"run", "--kubeconfig", "/none"}, command.ExitFailure},
		{"an unknown flag", good, []string{"crds", "--colour"}, command.ExitUsage},
		{"an unknown command", good, []string{"plant"}, command.ExitUsage},
		{"a value of the wrong type", good, []string{"run", "--workers", "many"}, command.ExitUsage},
		{"a bad configuration", command.Config{}, []string{"version"}, command.ExitFailure},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			got := command.Execute(t.Context(), tt.config, tt.args, &stdout, &stderr)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s\n%s", diff, stderr.String())
			}
			if told := stderr.Len() > 0; told != (tt.want != command.ExitOK) {
				t.Errorf("stderr: %q", stderr.String())
			}
		})
	}
}

func TestBadConfigurationNamesEveryFault(t *testing.T) {
	_, err := command.New(command.Config{
		CRDs:     []*apiextensionsv1.CustomResourceDefinition{nil},
		CRDFiles: fstest.MapFS{"x.yaml": {Data: []byte("kind: Secret")}},
	})
	if !framework.IsInvalidConfig(err) {
		t.Fatalf("IsInvalidConfig(%v) = false", err)
	}
	want := "invalid config: command.Config: Name must not be empty; New must not be nil; CRDs[0] must not be nil; " +
		"CRDFiles: read custom resource definitions: x.yaml: "
	if !strings.HasPrefix(err.Error(), want) {
		t.Errorf("want %q at the beginning, got %q", want, err)
	}
}

func TestFlagOfTheOperatorsOwnWhoseNameIsTakenIsNamed(t *testing.T) {
	none := func(context.Context, *operator.Dependencies) ([]*framework.Framework, error) { return nil, nil }
	_, err := command.New(command.Config{Name: "gardener", New: none, Flags: func(flags *pflag.FlagSet) {
		flags.Int("workers", 1, "")
		flags.StringP("fertilizer", "f", "", "")
		flags.String("soil", "", "")
	}})
	want := "invalid config: command.Config: Flags: the names or shorthands of fertilizer, workers are taken: rename them"
	if !framework.IsInvalidConfig(err) || err.Error() != want {
		t.Errorf("want %q, got %v", want, err)
	}
}
