package informer

import (
	"errors"
	"log/slog"

	"github.com/giantswarm/micrologger"
	"github.com/go-logr/logr"

	"github.com/operatorkit/operatorkit/internal/liblog"
)

// newReflectorLog returns a log for client-go's reflector. Its errors are errors, unless the log
// has them already, and whatever else it says is for debugging. What it says at V(2) and above is
// left out.
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

// isNoted reports whether the log has the error of a record already.
func isNoted(r *slog.Record) (noted bool) {
	r.Attrs(func(a slog.Attr) bool {
		err, _ := a.Value.Any().(error)
		noted = errors.As(err, &notedError{})
		return !noted
	})
	return noted
}
