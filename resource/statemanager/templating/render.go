package templating

import (
	"errors"
	"fmt"
	"strings"
	"text/template"
	"text/template/parse"
)

// Bounds of a rendering.
const (
	// MaxSteps is how many rounds of loops, and calls of templates, there may be.
	MaxSteps = 100_000
	// MaxSize is how long the values may be, and each text that a function makes, in bytes.
	MaxSize = 1 << 20

	// maxValue is how large a list or a map may be, and maxMade is how much functions may make together, in bytes.
	maxValue = 16 << 20
	maxMade  = 256 << 20
)

// render renders a template.
func render(text string, data any) (string, error) {
	steps := 0
	step := func() (string, error) {
		if steps++; steps > MaxSteps {
			return "", fmt.Errorf("it has gone through its loops %d times: make them smaller", MaxSteps)
		}
		return "", nil
	}
	all, printed := functions()
	parsed, err := template.New("values").Option("missingkey=error").Funcs(all).Parse(text)
	if err != nil {
		return "", fmt.Errorf("it can't be read: %w", err)
	}
	own := template.FuncMap{"printed": printed, "step": step}
	counted, err := template.New("step").Funcs(own).Parse("{{ step }}{{ printed }}")
	if err != nil {
		return "", err
	}
	b := bounder{step: counted.Root.Nodes[0], printed: counted.Root.Nodes[1].(*parse.ActionNode).Pipe.Cmds[0]}
	// Only what was parsed before could have named them.
	parsed.Funcs(own)
	for _, each := range parsed.Templates() {
		if each.Tree != nil {
			b.bound(each.Root)
			b.begin(each.Root)
		}
	}
	out := &bounded{}
	if err := parsed.Execute(out, data); err != nil {
		return "", explained(err)
	}
	rendered := out.text.String()
	if strings.Contains(rendered, noValue) {
		return "", errors.New("something that it prints is null: print something else, such as by `default`")
	}
	return rendered, nil
}

// noValue is what text/template prints for null.
const noValue = "<no value>"

// bounder puts into templates what ends them.
type bounder struct {
	step    parse.Node
	printed *parse.CommandNode
}

// bound has each round of the loops in a list begin with a step, and what is printed go through a function.
func (b *bounder) bound(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch node := node.(type) {
		case *parse.ActionNode:
			if len(node.Pipe.Decl) == 0 {
				node.Pipe.Cmds = append(node.Pipe.Cmds, b.printed)
			}
		case *parse.IfNode:
			b.bound(node.List)
			b.bound(node.ElseList)
		case *parse.WithNode:
			b.bound(node.List)
			b.bound(node.ElseList)
		case *parse.RangeNode:
			b.bound(node.List)
			b.bound(node.ElseList)
			b.begin(node.List)
		}
	}
}

// begin has a list begin with a step.
func (b *bounder) begin(list *parse.ListNode) {
	list.Nodes = append([]parse.Node{b.step}, list.Nodes...)
}

// bounded is what a template writes to.
type bounded struct{ text strings.Builder }

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.text.Len()+len(p) > MaxSize {
		return 0, fmt.Errorf("it makes more than %d bytes: make it smaller", MaxSize)
	}
	return b.text.Write(p)
}

// missing is what text/template, and our index, say of a key that is not there.
const missing = "map has no entry for key"

// explained says what to do about a key that is missing.
func explained(err error) error {
	if strings.Contains(err.Error(), missing) {
		return fmt.Errorf("%w: add it to the cluster or the object, or read it by `dig`, which has a default", err)
	}
	return err
}
