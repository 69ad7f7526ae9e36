package keyed

import (
	"context"
	"strings"

	"github.com/giantswarm/micrologger"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
)

// Log says which thing was written, which of its fields if it was updated, and of what former mark it was taken over, if it was. It says
// none of their values.
func Log[K Key](ctx context.Context, logger micrologger.Logger, message string, it Item[K], takenOver string) {
	fields := []any{"level", "info", "message", message, "written", it.Key().String()}
	if it.Action() == plan.Update {
		var paths []string
		for _, f := range it.Change().Fields {
			paths = append(paths, f.Path)
		}
		fields = append(fields, "fields", strings.Join(paths, ", "))
	}
	if takenOver != "" {
		fields = append(fields, "takeover", takenOver)
	}
	framework.Logger(ctx, logger).LogCtx(ctx, fields...)
}
