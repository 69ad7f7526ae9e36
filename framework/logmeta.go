package framework

import (
	"context"
	"maps"
	"strconv"
	"sync/atomic"

	"github.com/giantswarm/micrologger/loggermeta"

	"github.com/operatorkit/operatorkit/context/signal"
)

// logMeta holds the pairs that a context of a reconciliation adds to the messages of LogCtx: the
// pairs of the enclosing context, and framework, event, object, loop, resource and step, and
// trace_id in a trace. The first message makes them. A pair that is added to them is in all later
// messages of the context, and of the contexts derived from it afterwards.
type logMeta struct {
	meta atomic.Pointer[loggermeta.LoggerMeta]
}

// of returns the pairs. around are the pairs of the enclosing context.
func (l *logMeta) of(r *reconciliation, info StepInfo, around any) *loggermeta.LoggerMeta {
	if made := l.meta.Load(); made != nil {
		return made
	}
	meta := loggermeta.New()
	if outer, ok := around.(*loggermeta.LoggerMeta); ok {
		maps.Copy(meta.KeyVals, outer.KeyVals)
	}
	set := func(key, value string) {
		if value != "" {
			meta.KeyVals[key] = value
		}
	}
	set("framework", r.framework())
	set("event", r.event.String())
	set("object", describe(r.object, r.key))
	set("resource", info.Resource)
	set("step", string(info.Step))
	set("trace_id", r.traceID())
	if r.loop != 0 {
		set("loop", strconv.FormatUint(r.loop, 10))
	}
	l.meta.CompareAndSwap(nil, meta)
	return l.meta.Load()
}

// newScope returns the context of the resource at that place in its set.
func (r *reconciliation) newScope(ctx context.Context, place int, resource string) *scope {
	s := &r.first
	if place > 0 {
		s = &scope{}
	}
	s.reconciliation, s.resource, s.place = r, resource, int32(place)
	s.Init(ctx, signal.ResourceCanceled)
	return s
}

// info is the outermost step of the resource.
func (s *scope) info() StepInfo {
	step := stepOf(s.reconciliation.event)
	if s.reconciliation.plans {
		step = StepPlan
	}
	return StepInfo{s.resource, step}
}

// inStep returns the context of a step of the resource.
func (s *scope) inStep(ctx context.Context, info StepInfo) context.Context {
	return &stepContext{Context: ctx, scope: s, info: info}
}

// stepContext is the context of one step of a CRUD resource.
type stepContext struct {
	context.Context
	scope *scope
	info  StepInfo
	log   logMeta
}

// Value implements context.Context.
func (s *stepContext) Value(key any) any {
	if key == metaKey {
		return s.log.of(s.scope.reconciliation, s.info, s.Context.Value(key))
	}
	return s.Context.Value(key)
}

// metaKey is the context key of micrologger's pairs. micrologger does not export it.
var metaKey = func() any {
	var asked keyOfMeta
	loggermeta.FromContext(&asked)
	return asked.key
}()

// keyOfMeta is a context that remembers the key of the last Value call.
type keyOfMeta struct {
	context.Context
	key any
}

// Value implements context.Context.
func (k *keyOfMeta) Value(key any) any {
	k.key = key
	return nil
}

// log writes a message with the name of the framework.
func (f *Framework) log(level, message string, fields ...any) {
	f.config.Logger.Log(append([]any{"level", level, "message", message, "framework", f.Name()}, fields...)...)
}
