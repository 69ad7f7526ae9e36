package helm

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"text/template"

	"github.com/BurntSushi/toml"
	"github.com/Masterminds/sprig/v3"
	chartcommon "helm.sh/helm/v4/pkg/chart/common"
	"sigs.k8s.io/yaml"
	goyaml "sigs.k8s.io/yaml/goyaml.v3"

	"github.com/operatorkit/operatorkit/resource/internal/yamlsize"
	"github.com/operatorkit/operatorkit/resource/statemanager/templating"
)

// Bounds of what the functions of a chart's templates make in one rendering, in bytes. All that Helm records of a release has to go into a Secret
// of 1 MiB.
const (
	largestText  = 16 << 20
	largestValue = 64 << 20
	mostMade     = 512 << 20
)

// helmsOwn are functions of sprig in whose place Helm has others, or none.
var helmsOwn = []string{"env", "expandenv", "fail", "fromJson", "getHostByName"}

// functions are those that Helm has from sprig and text/template, and its own that make much of little, with bounds. They end with the context, and
// so does a loop with one in it.
func functions(ctx context.Context) template.FuncMap {
	all := sprig.TxtFuncMap()
	for _, name := range helmsOwn {
		delete(all, name)
	}
	maps.Copy(all, template.FuncMap{
		"fromYaml": fromYAML, "fromYamlArray": fromYAMLArray,
		"mustToJson": toJSON, "mustToToml": toTOML, "mustToYaml": toYAML,
		"toJson": silent(toJSON), "toToml": said(toTOML), "toYaml": silent(toYAML), "toYamlPretty": silent(toYAMLPretty),
	})
	bounds := templating.Bounds{Text: largestText, Value: largestValue, Total: mostMade, Context: isContext, Ended: ctx.Err}
	return bounds.Functions(all)
}

// fromYAML has an error as a value of the map, as Helm does.
func fromYAML(text string) map[string]any {
	value := map[string]any{}
	if err := readYAML(text, &value); err != nil {
		value["Error"] = err.Error()
	}
	return value
}

// fromYAMLArray has an error as the only element, as Helm does.
func fromYAMLArray(text string) []any {
	value := []any{}
	if err := readYAML(text, &value); err != nil {
		value = []any{err.Error()}
	}
	return value
}

func readYAML(text string, value any) error {
	if _, err := yamlsize.Of([]byte(text), largestValue); err != nil {
		return err
	}
	return yaml.Unmarshal([]byte(text), value)
}

func toYAML(value any) (string, error) {
	text, err := yaml.Marshal(value)
	return strings.TrimSuffix(string(text), "\n"), err
}

func toYAMLPretty(value any) (string, error) {
	var text strings.Builder
	encoder := goyaml.NewEncoder(&text)
	encoder.SetIndent(2)
	err := encoder.Encode(value)
	return strings.TrimSuffix(text.String(), "\n"), err
}

func toJSON(value any) (string, error) {
	text, err := json.Marshal(value)
	return string(text), err
}

func toTOML(value any) (string, error) {
	var text strings.Builder
	err := toml.NewEncoder(&text).Encode(value)
	return text.String(), err
}

// silent makes nothing of an error.
func silent(f func(any) (string, error)) func(any) string {
	return func(value any) string {
		text, err := f(value)
		if err != nil {
			return ""
		}
		return text
	}
}

// said makes its text of an error.
func said(f func(any) (string, error)) func(any) string {
	return func(value any) string {
		text, err := f(value)
		if err != nil {
			return err.Error()
		}
		return text
	}
}

// isContext tells of what is $ in templates. Charts hand it on as dict "context" $, and put it into their own values as set . "root" $.
func isContext(value any) bool {
	var content map[string]any
	switch v := value.(type) {
	case map[string]any:
		content = v
	case chartcommon.Values:
		content = v
	}
	for _, key := range []string{"Capabilities", "Chart", "Release", "Values"} {
		if _, ok := content[key]; !ok {
			return false
		}
	}
	return true
}
