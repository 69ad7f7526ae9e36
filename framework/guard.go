package framework

import (
	"fmt"

	"github.com/operatorkit/operatorkit/informer"
)

// guard calls code of the author's that is no part of a reconciliation, but told of it or asked about it. A panic is logged and counted,
// and changes nothing else.
func (f *Framework) guard(what string, call func(), fields ...any) {
	if err := Recovered(func() error { call(); return nil }); err != nil {
		f.panicked(what, err, fields...)
	}
}

// panicked counts and logs a panic that guard, or who calls it too often to make the fields of a log each time, has recovered from.
func (f *Framework) panicked(what string, err error, fields ...any) {
	f.metrics.panicked()
	f.log("error", what, append(fields, "error", err.Error(), "stack", stackOf(err))...)
}

// counted counts the events of a source, and passes on those that are known.
func (f *Framework) counted(source informer.Source, handle informer.Handler) informer.Handler {
	events := f.metrics.eventsOf(source)
	return func(e informer.Event) {
		if e.Type < informer.Added || e.Type > informer.Deleted {
			f.unusable(fmt.Sprintf("event %d of source %q", e.Type, source.Name()), fmt.Errorf("%w: its type is unknown", ErrExecutionFailed))
			return
		}
		events[e.Type].Inc()
		handle(e)
	}
}

// unusable counts what arrived and can't be used, and logs the first one of its sort.
func (f *Framework) unusable(sort string, err error) {
	f.metrics.errors.Inc()
	if _, logged := f.logged.LoadOrStore(sort, true); !logged {
		f.log("error", "object was not taken; more of its sort is not logged", "sort", sort, "error", err.Error())
	}
}
