package framework

import (
	"context"
	"maps"
	"strconv"

	"github.com/giantswarm/micrologger/loggermeta"
)

// pairs returns the pairs of all log messages of the reconciliation: framework, event, object, loop,
// and trace_id in a trace.
func (r *reconciliation) pairs() map[string]string {
	pairs := map[string]string{"event": r.event.String(), "object": describe(r.object, r.key)}
	if r.framework != nil {
		pairs["framework"] = r.framework.Name()
	}
	if id := r.traceID(); id != "" {
		pairs["trace_id"] = id
	}
	if r.loop != 0 {
		pairs["loop"] = strconv.FormatUint(r.loop, 10)
	}
	return pairs
}

// withLogPairs returns a child of ctx. Its messages by LogCtx have the pairs of ctx, those of the
// reconciliation, and resource and step unless they are empty.
func (r *reconciliation) withLogPairs(ctx context.Context, info StepInfo) context.Context {
	meta := loggermeta.New()
	if outer, ok := loggermeta.FromContext(ctx); ok {
		maps.Copy(meta.KeyVals, outer.KeyVals)
	}
	maps.Copy(meta.KeyVals, r.logPairs)
	if info.Resource != "" {
		meta.KeyVals["resource"], meta.KeyVals["step"] = info.Resource, string(info.Step)
	}
	return loggermeta.NewContext(ctx, meta)
}

// log writes a message with the name of the framework.
func (f *Framework) log(level, message string, fields ...any) {
	f.config.Logger.Log(append([]any{"level", level, "message", message, "framework", f.Name()}, fields...)...)
}
