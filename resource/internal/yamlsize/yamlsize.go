// Package yamlsize tells how large YAML is with aliases as what they stand for. A parser shares a text that is named a hundred thousand
// times; whoever writes it as JSON afterwards, as sigs.k8s.io/yaml does, has it in memory as often:
//
//	if _, err := yamlsize.Of(text, 16<<20); err != nil { … }
//	err := yaml.Unmarshal(text, &value)
package yamlsize

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v2"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// perValue is about how many bytes a value takes in JSON beside those of a text.
const perValue = 4

// Of returns how many bytes the documents of a text with aliases have, zero for one without, and an error for more than most. What can't be
// read has none: its reader says so.
func Of(text []byte, most int) (int, error) {
	if !bytes.ContainsRune(text, '&') || !bytes.ContainsRune(text, '*') {
		return 0, nil
	}
	// Readers of YAML part a text in two ways, and one goes on where the other has come to what it can't read: each counts for itself.
	left := min(ofStream(text, most), ofLines(text, most))
	if left < 0 {
		return 0, fmt.Errorf("it has more than %d bytes, with aliases as what they stand for: use fewer aliases, or make it smaller", most)
	}
	return most - left, nil
}

// ofStream returns what is left after the documents that a parser finds in a text.
func ofStream(text []byte, left int) int {
	// The parser of sigs.k8s.io/yaml refuses documents with more than some million values itself.
	for documents := yaml.NewDecoder(bytes.NewReader(text)); left >= 0; {
		var value any
		if documents.Decode(&value) != nil {
			break // It is the end, or its reader says what is wrong.
		}
		left = weigh(value, left)
	}
	return left
}

// ofLines returns what is left after the documents between lines of ---, as Helm and the patches of kubectl read them.
func ofLines(text []byte, left int) int {
	// The reader of lines would lose the end of one that is not ended.
	whole := io.MultiReader(bytes.NewReader(text), strings.NewReader("\n"))
	for documents := utilyaml.NewYAMLReader(bufio.NewReader(whole)); left >= 0; {
		document, err := documents.Read()
		if err != nil {
			break
		}
		var value any
		if yaml.Unmarshal(document, &value) == nil {
			left = weigh(value, left)
		}
	}
	return left
}

// weigh returns what is left after a value.
func weigh(value any, left int) int {
	left -= perValue
	switch v := value.(type) {
	case string:
		left -= len(v)
	case []any:
		for i := 0; i < len(v) && left >= 0; i++ {
			left = weigh(v[i], left)
		}
	case map[any]any:
		for key, inner := range v {
			if left = weigh(inner, weigh(key, left)); left < 0 {
				break
			}
		}
	}
	return left
}
