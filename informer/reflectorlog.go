package informer

import (
	"errors"
	"log/slog"

	"github.com/giantswarm/micrologger"
	"github.com/go-logr/logr"

	"github.com/operatorkit/operatorkit/internal/liblog"
)

// newReflectorLog returns a log for client-go's reflector. Errors stay errors unless they are
// logged already. Other messages become debug messages, and those at V(2) and above are dropped.
func newReflectorLog(logger micrologger.Logger) logr.Logger {
	return logr.FromSlogHandler(liblog.Handler(logger, func(r *slog.Record, write func()) {
		switch {
		case r.Level < slog.LevelInfo-1:
			return
		case r.Level < slog.LevelError || isNoted(r):
			r.Level = slog.LevelDebug
		}
		write()
	}))
}

// isNoted reports whether the error of a record was logged before.
func isNoted(r *slog.Record) (noted bool) {
	r.Attrs(func(a slog.Attr) bool {
		err, _ := a.Value.Any().(error)
		noted = errors.As(err, &notedError{})
		return !noted
	})
	return noted
}
