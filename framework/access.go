package framework

import "github.com/operatorkit/operatorkit/internal/access"

// engine implements access.Engine. Its methods are beside the code that they call.
type engine struct{ *Framework }

func init() {
	access.EngineOf = func(f any) access.Engine { return engine{f.(*Framework)} }
	access.Advice = adviceOn
	access.RetriesAfter, access.LastTry = retriesAfter, lastTry
}

// OnEnd implements access.Engine.
func (f engine) OnEnd(call func(access.End)) { f.observers = append(f.observers, ends{call: call}) }

// ends passes the ends of reconciliations to another package.
type ends struct {
	call func(access.End)
	unobserved
}

func (o ends) ended(e ended) {
	o.call(access.End{
		Key:       e.key,
		Succeeded: e.outcome == Succeeded || e.outcome == Canceled,
		Skipped:   e.outdated || e.reason == reasonBehind || e.reason == reasonElsewhere,
		Gone:      e.reason == reasonGone || e.reason == reasonGoneEarly,
		Failed:    e.count.errors,
		Err:       e.err,
	})
}
