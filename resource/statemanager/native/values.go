package native

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/strvals"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/operatorkit/operatorkit/resource/internal/exact"
	"github.com/operatorkit/operatorkit/resource/internal/yamlsize"
)

// values are what valuesFrom and values say together.
type values struct {
	merged map[string]any
	// secret has the structure of merged, with true for each leaf that comes from a Secret. A list is a leaf.
	secret map[string]any
}

// largestValues is how large values may be with the aliases of their YAML as what they stand for, in bytes.
const largestValues = 16 << 20

// readValues reads YAML the way Helm reads a file with values, but with all digits of numbers (package exact).
func readValues(text string) (map[string]any, error) {
	if _, err := yamlsize.Of([]byte(text), largestValues); err != nil {
		return nil, err
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n" // A reader of lines may lose the last one without it.
	}
	all := map[string]any{}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		values, err := exact.Map(document)
		if err != nil {
			return nil, err
		}
		all = loader.MergeMaps(all, values)
	}
}

// add merges more values in: maps are merged, anything else is replaced.
func (v *values) add(more map[string]any, secret bool) {
	v.merged, v.secret = merge(v.merged, v.secret, more, secret)
}

// put puts a single value to a path, as `helm --set` knows paths and types. It is not merged, and no list by itself: commas, braces
// and backslashes are what they are. One in quotes is a text.
func (v *values) put(path, text string, secret bool) error {
	parse := strvals.ParseInto
	if last := len(text) - 1; last > 0 && text[0] == text[last] && strings.ContainsRune("'\"", rune(text[0])) {
		text, parse = text[1:last], strvals.ParseIntoString
	}
	line := path + "=" + unlisted.Replace(text)
	merged, alone := runtime.DeepCopyJSON(v.merged), map[string]any{}
	if merged == nil {
		merged = map[string]any{}
	}
	if err := errors.Join(parse(line, merged), parse(line, alone)); err != nil {
		return err
	}
	if len(alone) == 0 {
		return errors.New("the path leads nowhere")
	}
	// A list that has another element is as secret as it was before.
	if secret || !strings.Contains(path, "[") {
		_, v.secret = merge(v.merged, v.secret, alone, secret)
	}
	v.merged = merged
	return nil
}

// unlisted takes from characters what they mean between values of `helm --set`.
var unlisted = strings.NewReplacer(`\`, `\\`, ",", `\,`, "{", `\{`)

func merge(merged, mask, more map[string]any, secret bool) (map[string]any, map[string]any) {
	merged, mask = maps.Clone(merged), maps.Clone(mask)
	if merged == nil {
		merged = map[string]any{}
	}
	if mask == nil {
		mask = map[string]any{}
	}
	for key, value := range more {
		before, isMap := merged[key].(map[string]any)
		with, moreMap := value.(map[string]any)
		if isMap && moreMap {
			below, _ := mask[key].(map[string]any)
			merged[key], below = merge(before, below, with, secret)
			setMask(mask, key, below)
			continue
		}
		merged[key] = value
		delete(mask, key)
		if secret {
			setMask(mask, key, maskOf(value))
		}
	}
	return merged, mask
}

// setMask leaves out what hides nothing.
func setMask(mask map[string]any, key string, value any) {
	if below, ok := value.(map[string]any); ok && len(below) == 0 {
		delete(mask, key)
		return
	}
	mask[key] = value
}

// maskOf returns true for each leaf of a value.
func maskOf(value any) any {
	fields, ok := value.(map[string]any)
	if !ok {
		return true
	}
	mask := map[string]any{}
	for key, field := range fields {
		setMask(mask, key, maskOf(field))
	}
	return mask
}
