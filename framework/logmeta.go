package framework

import (
	"context"
	"maps"
	"strconv"

	"github.com/giantswarm/micrologger/loggermeta"
)

// withLogFields returns a child of ctx whose messages by LogCtx have the pairs of ctx, and
// framework, event, object, loop, resource and step, and trace_id in a trace.
func (r *reconciliation) withLogFields(ctx context.Context, info StepInfo) context.Context {
	meta := loggermeta.New()
	if outer, ok := loggermeta.FromContext(ctx); ok {
		maps.Copy(meta.KeyVals, outer.KeyVals)
	}
	set := func(key, value string) {
		if value != "" {
			meta.KeyVals[key] = value
		}
	}
	if r.framework != nil {
		set("framework", r.framework.Name())
	}
	set("event", r.event.String())
	set("object", describe(r.object, r.key))
	set("resource", info.Resource)
	set("step", string(info.Step))
	set("trace_id", r.traceID())
	if r.loop != 0 {
		set("loop", strconv.FormatUint(r.loop, 10))
	}
	return loggermeta.NewContext(ctx, meta)
}

// log writes a message with the name of the framework.
func (f *Framework) log(level, message string, fields ...any) {
	f.config.Logger.Log(append([]any{"level", level, "message", message, "framework", f.Name()}, fields...)...)
}
