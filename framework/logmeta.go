package framework

import (
	"context"
	"maps"
	"strconv"
	"sync/atomic"

	"github.com/giantswarm/micrologger/loggermeta"

	"github.com/operatorkit/operatorkit/context/signal"
)

// logMeta is what a context of a reconciliation adds to the messages of LogCtx: the pairs of the context around it, and framework,
// event, object, loop, resource and step, and trace_id in a trace. They are put together when the first message asks for them. Who adds pairs to them adds them
// to all messages of the context, and of those that are made of it afterwards.
type logMeta struct {
	meta atomic.Pointer[loggermeta.LoggerMeta]
}

// of returns the pairs. Around is what the context around has.
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

// stepsAtOnce is for how many steps of a resource contexts are made at once: as many as there are when nothing is to be changed.
const stepsAtOnce = 3

// newScope returns the context of the resource that has that place in its set.
func (r *reconciliation) newScope(ctx context.Context, place int, resource string) *scope {
	s := &r.first
	if place > 0 {
		s = &scope{}
	}
	s.reconciliation, s.resource, s.place = r, resource, int32(place)
	s.Init(ctx, signal.ResourceCanceled)
	return s
}

// info is the step of the resource that all others are part of.
func (s *scope) info() StepInfo {
	step := stepOf(s.reconciliation.event)
	if s.reconciliation.plans {
		step = StepPlan
	}
	return StepInfo{s.resource, step}
}

// inStep returns the context of a step of the resource.
func (s *scope) inStep(ctx context.Context, info StepInfo) context.Context {
	if s.steps == nil || s.taken == stepsAtOnce {
		s.steps, s.taken = new([stepsAtOnce]stepContext), 0
	}
	step := &s.steps[s.taken]
	s.taken++
	step.Context, step.scope, step.info = ctx, s, info
	return step
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

// metaKey is under which key micrologger looks for the pairs in a context. It does not export it.
var metaKey = func() any {
	var asked keyOfMeta
	loggermeta.FromContext(&asked)
	return asked.key
}()

// keyOfMeta is a context that remembers what it was asked for.
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
