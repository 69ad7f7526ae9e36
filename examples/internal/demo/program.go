package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/command"
)

// program is the operator's own program, on the control plane of the demo.
type program struct {
	config     command.Config
	kubeconfig string
	log        io.Writer
	// metrics and page are the addresses of health and metrics, and of the inspector.
	metrics, page string
}

func newProgram(story Story, kubeconfig string) *program {
	p := &program{config: story.Operator, kubeconfig: kubeconfig, log: newLog(os.Stderr, story.Told)}
	p.config.KeepGlobalLoggers = true // the demo has clients of its own
	return p
}

// news passes on the log entries in which there is nothing that was told already. Each Write is an entry.
type news struct {
	out  io.Writer
	told []string
}

func newLog(out io.Writer, told []string) io.Writer {
	if len(told) == 0 {
		return out
	}
	return news{out, told}
}

// Write implements io.Writer.
func (n news) Write(entry []byte) (int, error) {
	for _, text := range n.told {
		if bytes.Contains(entry, []byte(text)) {
			return len(entry), nil
		}
	}
	return n.out.Write(entry)
}

// operate is the command "run", with health and metrics and the inspector at its addresses.
func (p *program) operate(ctx context.Context) error {
	if code := command.Execute(ctx, p.config, p.runArgs(p.metrics, p.page), os.Stdout, p.log); code != command.ExitOK {
		return fmt.Errorf("the operator ended with exit code %d, see above", code)
	}
	return nil
}

func (p *program) runArgs(metrics, page string) []string {
	return []string{"run", "--kubeconfig", p.kubeconfig, "--listen-address", metrics, "--inspector-address", page,
		"--log-level", "warning", "--log-format", "text"}
}

// Plan shows what the operator is going to do once an object has been applied: the command "plan -f". Nothing is changed.
// What the resources with these names are going to do is left out.
func (d *Demo) Plan(ctx context.Context, obj client.Object, without ...string) error {
	return d.PlanLines(ctx, obj, func(string) bool { return true }, without...)
}

// PlanLines is Plan with those lines only that are to be shown. Shown gets them without colours and what they are indented by.
func (d *Demo) PlanLines(ctx context.Context, obj client.Object, shown func(line string) bool, without ...string) error {
	gvk, err := d.Client.GroupVersionKindFor(obj)
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	written := obj.DeepCopyObject().(client.Object)
	written.GetObjectKind().SetGroupVersionKind(gvk)
	data, err := json.Marshal(written)
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
		var out strings.Builder
		mode := "never"
		if color {
			mode = "always"
		}
		err := d.execute(ctx, &out, []string{"plan", "-f", file, "--color", mode})
		for line := range strings.Lines(leaveOut(out.String(), without)) {
			if shown(strings.TrimSpace(escapes.ReplaceAllString(line, ""))) {
				_, writeErr := io.WriteString(w, line)
				err = errors.Join(err, writeErr)
			}
		}
		return err
	})
}

// escapes are the codes of colours.
var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// leaveOut returns the text of a plan of one object without the parts of some resources, and then also without the sums at
// its end, which count them too. A part begins with the name of the resource, two spaces from the left, and what belongs to it
// is further to the right.
func leaveOut(text string, resources []string) string {
	if len(resources) == 0 {
		return text
	}
	text, _, _ = strings.Cut(text, "\n\n")
	var kept strings.Builder
	skip := false
	for line := range strings.Lines(text) {
		plain := escapes.ReplaceAllString(line, "")
		name := strings.TrimLeft(plain, " ")
		if len(plain)-len(name) <= 2 {
			name, _, _ = strings.Cut(strings.TrimSpace(name), ":")
			skip = slices.Contains(resources, name)
		}
		if !skip {
			kept.WriteString(line)
		}
	}
	return strings.TrimSuffix(kept.String(), "\n") + "\n"
}

// Quietly runs a command of the operator without showing what it writes.
func (d *Demo) Quietly(ctx context.Context, args ...string) error {
	return d.execute(ctx, io.Discard, args)
}

// execute runs a command of the operator on the control plane of the demo.
func (d *Demo) execute(ctx context.Context, w io.Writer, args []string) error {
	args = append(slices.Clone(args), "--kubeconfig", d.program.kubeconfig)
	if code := command.Execute(ctx, d.program.config, args, w, os.Stderr); code != command.ExitOK {
		return fmt.Errorf("the command %s ended with exit code %d, see above", args[0], code)
	}
	return nil
}
