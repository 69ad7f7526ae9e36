package helm

import (
	"context"
	"text/template"

	"github.com/Masterminds/sprig/v3"

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
	bounds := templating.Bounds{Text: largestText, Value: largestValue, Total: mostMade, Ended: ctx.Err}
	return bounds.Functions(all)
}
