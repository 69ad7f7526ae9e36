package framework

import (
	"context"
	"maps"
	"strconv"
	"sync"

	"github.com/giantswarm/micrologger/loggermeta"
)

// logMeta is what a context of a reconciliation adds to the messages of LogCtx: the pairs of the context around it, and framework,
// event, object, loop, resource and step. They are put together when the first message asks for them. Who adds pairs to them adds them
// to all messages of the context, and of those that are made of it afterwards.
type logMeta struct {
	once sync.Once
	meta *loggermeta.LoggerMeta
}

// of returns the pairs. Around is what the context around has.
func (l *logMeta) of(r *reconciliation, info StepInfo, around any) *loggermeta.LoggerMeta {
	l.once.Do(func() {
		l.meta = loggermeta.New()
		if outer, ok := around.(*loggermeta.LoggerMeta); ok {
			maps.Copy(l.meta.KeyVals, outer.KeyVals)
		}
		set := func(key, value string) {
			if value != "" {
				l.meta.KeyVals[key] = value
			}
		}
		set("framework", r.framework)
		set("event", string(r.event))
		set("object", describe(r.object, r.key))
		set("resource", info.Resource)
		set("step", string(info.Step))
		if r.loop != 0 {
			set("loop", strconv.FormatUint(r.loop, 10))
		}
	})
	return l.meta
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
