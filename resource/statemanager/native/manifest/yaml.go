package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/operatorkit/operatorkit/resource/internal/yamlsize"
)

// deepest is how deep YAML may be nested: deeper than any object, and far from what a stack bears.
const deepest = 200

// budget counts what rendering one service has cost so far.
type budget struct {
	limits         Limits
	bytes          int
	aliased        int
	nodes          int
	objects        int
	kustomizations int
}

func (b *budget) takeBytes(n int) error {
	if b.bytes += n; b.bytes > b.limits.Bytes {
		return fmt.Errorf("its files have more than %d bytes together: split the service", b.limits.Bytes)
	}
	return nil
}

func (b *budget) takeObject() error {
	if b.objects++; b.objects > b.limits.Objects {
		return fmt.Errorf("it has more than %d objects: split the service", b.limits.Objects)
	}
	return nil
}

func (b *budget) takeKustomization() error {
	if b.kustomizations++; b.kustomizations > b.limits.Kustomizations {
		return fmt.Errorf("its kustomization goes through more than %d folders", b.limits.Kustomizations)
	}
	return nil
}

// errAliases is for YAML that a few aliases make large.
var errAliases = errors.New("its YAML is too large")

// takeAliases counts how many bytes a document has with its aliases as what they stand for.
func (b *budget) takeAliases(document []byte) error {
	n, err := yamlsize.Of(document, b.limits.Bytes-b.aliased)
	if err != nil {
		return fmt.Errorf("%w: it has more than %d bytes, with aliases as what they stand for: use fewer aliases, or split the service",
			errAliases, b.limits.Bytes)
	}
	b.aliased += n
	return nil
}

// takeNodes counts the values of a document, an alias as many as it stands for.
func (b *budget) takeNodes(node *yaml.Node) error {
	counted := counter{seen: map[*yaml.Node]int{}, most: b.limits.Nodes}
	n, err := counted.count(node, 0)
	if err != nil {
		return err
	}
	if b.nodes += n; b.nodes > b.limits.Nodes {
		return fmt.Errorf("its YAML has more than %d values, with aliases as what they stand for: use fewer aliases, or split the service",
			b.limits.Nodes)
	}
	return nil
}

// takeValue counts a value that is put in place of a reference, and all that is in it.
func (b *budget) takeValue(value any) error {
	if b.nodes++; b.nodes > b.limits.Nodes {
		return fmt.Errorf("it has more than %d values with what its references stand for: split the service", b.limits.Nodes)
	}
	grow := func(text string) error {
		if b.bytes += len(text); b.bytes > b.limits.Bytes {
			return fmt.Errorf("it has more than %d bytes with what its references stand for: split the service", b.limits.Bytes)
		}
		return nil
	}
	switch v := value.(type) {
	case string:
		return grow(v)
	case []any:
		for _, inner := range v {
			if err := b.takeValue(inner); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, inner := range v {
			if err := grow(name); err != nil {
				return err
			}
			if err := b.takeValue(inner); err != nil {
				return err
			}
		}
	}
	return nil
}

type counter struct {
	seen map[*yaml.Node]int
	most int
}

// under is the count of a node that is being counted: an alias to it goes in a circle.
const under = -1

func (c *counter) count(node *yaml.Node, depth int) (int, error) {
	if depth > deepest {
		return 0, fmt.Errorf("line %d: its YAML is nested deeper than %d", node.Line, deepest)
	}
	if n, ok := c.seen[node]; ok {
		if n == under {
			return 0, fmt.Errorf("line %d: an alias stands for what it is in", node.Line)
		}
		return n, nil
	}
	c.seen[node] = under
	if node.Kind == yaml.ScalarNode && node.Value == "" && node.ShortTag() == "!!null" {
		node.Value = "null" // An empty one in braces would be written as an empty text.
	}
	n := 1
	inner := node.Content
	if node.Kind == yaml.AliasNode {
		inner = []*yaml.Node{node.Alias}
	}
	for _, each := range inner {
		m, err := c.count(each, depth+1)
		if err != nil {
			return 0, err
		}
		if n += m; n > c.most {
			n = c.most + 1
		}
	}
	c.seen[node] = n
	return n, nil
}

// parse reads the documents of a file, as JSON values with whole numbers as int64, and counts what they have. A key that is there
// twice is an error.
func parse(data []byte, budget *budget) ([]any, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var values []any
	for {
		var node yaml.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return values, nil
		}
		if err != nil {
			return nil, fmt.Errorf("it is no YAML: %w", err)
		}
		if err := budget.takeNodes(&node); err != nil {
			return nil, err
		}
		text, err := yaml.Marshal(&node)
		if err != nil {
			return nil, fmt.Errorf("it is no YAML: %w", err)
		}
		if err := budget.takeAliases(text); err != nil {
			return nil, err
		}
		value, err := valueOf(text)
		if err != nil {
			return nil, fmt.Errorf("it is no YAML: %w", err)
		}
		if value != nil {
			values = append(values, value)
		}
	}
}

// valueOf makes a JSON value of a document, by the rules of YAML that kubectl has.
func valueOf(text []byte) (any, error) {
	encoded, err := sigsyaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	return decode(encoded)
}

// decode reads JSON, with whole numbers as int64.
func decode(encoded []byte) (value any, err error) {
	err = json.UnmarshalCaseSensitivePreserveInts(encoded, &value)
	return value, err
}

// textOf returns the text at a place in a map, or nothing.
func textOf(value any, path ...string) string {
	for _, name := range path {
		value = field(value, name)
	}
	text, _ := value.(string)
	return text
}

// field returns the value of a key, or nil.
func field(value any, name string) any {
	fields, _ := value.(map[string]any)
	return fields[name]
}
