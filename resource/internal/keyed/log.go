package keyed

import (
	"context"
	"strings"

	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
)

// Log logs which thing was written. Of an update it logs which fields have changed, without values, and from what former mark the thing
// was adopted.
func Log[K Key](ctx context.Context, logger micrologger.Logger, message string, it Item[K]) {
	fields := []any{"level", "info", "message", message, "written", it.Key().String()}
	if it.Action() == plan.Update {
		var paths []string
		for _, f := range it.Change().Fields {
			paths = append(paths, f.Path)
		}
		fields = append(fields, "fields", strings.Join(paths, ", "))
		if from := it.Held().Takeover(); from != "" {
			fields = append(fields, "takeover", from)
		}
	}
	framework.Logger(ctx, logger).LogCtx(ctx, fields...)
}
