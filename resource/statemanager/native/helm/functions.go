package helm

import (
	"context"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	chartcommon "helm.sh/helm/v4/pkg/chart/common"

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
var helmsOwn = []string{"env", "expandenv", "fail", "fromJson", "getHostByName", "mustToJson", "toJson"}

// functions are those that Helm has from sprig and text/template, with bounds. They end with the context, and so does a loop with one in it.
func functions(ctx context.Context) template.FuncMap {
	all := sprig.TxtFuncMap()
	for _, name := range helmsOwn {
		delete(all, name)
	}
	bounds := templating.Bounds{Text: largestText, Value: largestValue, Total: mostMade, Context: isContext, Ended: ctx.Err}
	return bounds.Functions(all)
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
