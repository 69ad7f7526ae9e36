package helm

import (
	"testing"

	chartcommon "helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
)

func TestFunctionsReturnWhatHelmsDo(t *testing.T) {
	const value = `(dict "b" (list 1 "two" true nil) "a" (dict "text" "x\n<y>&z" "none" nil) "n" 1.5 "e" (dict) "l" (list))`
	for _, text := range []string{
		`{{ toYaml ` + value + ` }}`, `{{ mustToYaml ` + value + ` }}`, `{{ toYamlPretty ` + value + ` }}`, `{{ toJson ` + value + ` }}`,
		`{{ mustToJson ` + value + ` }}`, `{{ toPrettyJson ` + value + ` }}`, `{{ toToml (dict "a" (dict "b" 1) "c" "x") }}`, `{{ mustToToml (dict "a" 1) }}`,
		`{{ toToml (list 1) }}`, `{{ toToml ` + value + ` }}`, `{{ toYaml nil }}|{{ toJson nil }}|{{ toYamlPretty nil }}|{{ toYaml "x" }}|{{ toYaml .Values }}`,
		`{{ fromYaml "a: {b: [1, x]}" }}`, `{{ fromYaml "[" }}`, `{{ fromYaml "[1]" }}`, `{{ fromYaml "" }}`,
		`{{ fromYamlArray "[1, {a: b}]" }}`, `{{ fromYamlArray "a: b" }}`, `{{ fromYamlArray "" }}`,
		`{{ dig "a" "b" "none" (dict "a" (dict "b" 1)) }}{{ dig "a" "c" "none" (dict "a" (dict "b" 1)) }}{{ dig "x" "c" "none" (dict) }}`,
		`{{ toYaml $ }}`, `{{ toJson (dict "context" $) }}`,
	} {
		rendered := func(e engine.Engine) string {
			c := &chart.Chart{
				Metadata:  &chart.Metadata{Name: "same"},
				Templates: []*chartcommon.File{{Name: "templates/a.yaml", Data: []byte(text)}},
			}
			values := chartcommon.Values{
				"Capabilities": map[string]any{}, "Chart": c.Metadata, "Release": map[string]any{"Name": "web"}, "Values": map[string]any{"x": "y"},
			}
			files, err := e.RenderWithContext(t.Context(), c, values)
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			return files["same/templates/a.yaml"]
		}
		want, got := rendered(engine.Engine{}), rendered(engine.Engine{CustomTemplateFuncs: functions(t.Context())})
		if got != want {
			t.Errorf("%s comes to\n%s\nand by Helm to\n%s", text, got, want)
		}
	}
}
