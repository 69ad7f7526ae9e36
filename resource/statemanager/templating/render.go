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
	parsed, err := template.New("values").Option("missingkey=error").Funcs(functions()).Parse(text)
	if err != nil {
		return "", fmt.Errorf("it can't be read: %w", err)
	}
	counted, err := template.New("step").Funcs(template.FuncMap{"step": step}).Parse("{{ step }}")
	if err != nil {
		return "", err
	}
	// Only what was parsed before could have named it.
	parsed.Funcs(template.FuncMap{"step": step})
	for _, each := range parsed.Templates() {
		if each.Tree != nil {
			count(each.Root, counted.Root.Nodes[0])
			begin(each.Root, counted.Root.Nodes[0])
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

// count has each round of the loops in a list begin with a step.
func count(list *parse.ListNode, step parse.Node) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch node := node.(type) {
		case *parse.IfNode:
			count(node.List, step)
			count(node.ElseList, step)
		case *parse.WithNode:
			count(node.List, step)
			count(node.ElseList, step)
		case *parse.RangeNode:
			count(node.List, step)
			count(node.ElseList, step)
			begin(node.List, step)
		}
	}
}

// begin has a list begin with a step.
func begin(list *parse.ListNode, step parse.Node) {
	list.Nodes = append([]parse.Node{step}, list.Nodes...)
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
