package framework

import (
	"context"
	"maps"
	"strconv"
	"sync"

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
	return &logContext{Context: ctx, pairs: r.logPairs, info: info}
}

// logContext is a context of withLogPairs. It collects the pairs for its first message. Most steps
// write none.
type logContext struct {
	context.Context
	pairs map[string]string
	info  StepInfo
	once  sync.Once
	meta  *loggermeta.LoggerMeta
}

// Value implements context.Context.
func (c *logContext) Value(key any) any {
	if key != logKey {
		return c.Context.Value(key)
	}
	c.once.Do(func() {
		c.meta = loggermeta.New()
		if outer, ok := loggermeta.FromContext(c.Context); ok {
			maps.Copy(c.meta.KeyVals, outer.KeyVals)
		}
		maps.Copy(c.meta.KeyVals, c.pairs)
		if c.info.Resource != "" {
			c.meta.KeyVals["resource"], c.meta.KeyVals["step"] = c.info.Resource, string(c.info.Step)
		}
	})
	return c.meta
}

// logKey is the key under which contexts have the pairs of messages. Package loggermeta does not
// export it.
var logKey = func() any {
	asked := &askedKey{Context: context.Background()}
	loggermeta.FromContext(asked)
	return asked.key
}()

// askedKey is a context that notes which key it is asked for.
type askedKey struct {
	context.Context
	key any
}

// Value implements context.Context.
func (a *askedKey) Value(key any) any {
	a.key = key
	return nil
}

// log writes a message with the name of the framework.
func (f *Framework) log(level, message string, fields ...any) {
	f.config.Logger.Log(append([]any{"level", level, "message", message, "framework", f.Name()}, fields...)...)
}
