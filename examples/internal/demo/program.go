package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/command"
)

// program is the operator's own program, on the control plane of the demo.
type program struct {
	config     command.Config
	kubeconfig string
}

func newProgram(config command.Config, kubeconfig string) *program {
	config.KeepGlobalLoggers = true // the demo has clients of its own
	return &program{config, kubeconfig}
}

// operate is the command "run", with health and metrics and the inspector at these addresses.
func (p *program) operate(ctx context.Context, metrics, page string) error {
	args := []string{"run", "--kubeconfig", p.kubeconfig, "--listen-address", metrics, "--inspector-address", page,
		"--log-level", "warning", "--log-format", "text"}
	if code := command.Execute(ctx, p.config, args, os.Stdout, os.Stderr); code != command.ExitOK {
		return fmt.Errorf("the operator ended with exit code %d, see above", code)
	}
	return nil
}

// Plan shows what the operator is going to do once an object has been applied: the command "plan -f". Nothing is changed.
func (d *Demo) Plan(ctx context.Context, obj client.Object) error {
	gvk, err := d.Client.GroupVersionKindFor(obj)
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	shown := obj.DeepCopyObject().(client.Object)
	shown.GetObjectKind().SetGroupVersionKind(gvk)
	data, err := json.Marshal(shown)
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	dir, err := os.MkdirTemp("", "demo-")
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "object.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return fmt.Errorf("plan: %w", err)
	}

	return d.Show("the operator plans:", func(w io.Writer, color bool) error {
		args := []string{"plan", "-f", file, "--kubeconfig", d.program.kubeconfig, "--color", map[bool]string{true: "always", false: "never"}[color]}
		if code := command.Execute(ctx, d.program.config, args, w, os.Stderr); code != command.ExitOK {
			return fmt.Errorf("the plan ended with exit code %d, see above", code)
		}
		return nil
	})
}
