package framework

import (
	"fmt"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/internal/panics"
)

// guard calls a function of the author that observes reconciliations or is asked about them, but is
// not part of one. A panic is logged and counted, and changes nothing else.
func (f *Framework) guard(what string, call func(), fields ...any) {
	if err := panics.Recovered(func() error { call(); return nil }); err != nil {
		f.panicked(what, err, fields...)
	}
}

// panicked counts and logs a panic that guard has recovered from. Callers that run too often to
// make the log fields each time recover by themselves and call it directly.
func (f *Framework) panicked(what string, err error, fields ...any) {
	f.metrics.panicked()
	f.log("error", what, append(fields, "error", err.Error(), "stack", stackOf(err))...)
}

// counted counts the events of a source, and passes on those of a known type.
func (f *Framework) counted(source informer.Source, handle informer.Handler) informer.Handler {
	events := f.metrics.eventsOf(source)
	return func(e informer.Event) {
		if e.Type < informer.Added || e.Type > informer.Deleted {
			err := fmt.Errorf("%w: its type is unknown", ErrExecutionFailed)
			f.unusable(fmt.Sprintf("event %d of source %q", e.Type, source.Name()), err)
			return
		}
		events[e.Type].Inc()
		handle(e)
	}
}

// unusable counts an unusable event, and logs the first one of its sort.
func (f *Framework) unusable(sort string, err error) {
	f.metrics.errors.Inc()
	if _, logged := f.logged.LoadOrStore(sort, true); !logged {
		f.log("error", "object was not taken; more of its sort is not logged", "sort", sort, "error", err.Error())
	}
}
