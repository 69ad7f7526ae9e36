package logging

import (
	"context"
	"log"
	"log/slog"

	"github.com/giantswarm/micrologger"
	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/operatorkit/operatorkit/internal/liblog"
)

// Slog returns a slog.Logger whose messages go to logger. Attributes in groups get the names of
// these before theirs, with points between. slog's levels count as the next lower one of ours: a
// level below Info is debug.
func Slog(logger micrologger.Logger) *slog.Logger { return slog.New(liblog.Handler(logger, nil)) }

// Logr returns a logr.Logger whose messages go to logger: V(0) as info, V(1) to V(4) as debug,
// what is above never. Names are joined with slashes under the key "logger".
func Logr(logger micrologger.Logger) logr.Logger {
	return logr.FromSlogHandler(liblog.Handler(logger, nil))
}

// FromLogr returns a micrologger whose messages go to to, such as the logger of a manager of
// controller-runtime: those of level error as errors, those of level debug as V(1), and all others
// as info.
func FromLogr(to logr.Logger) micrologger.Logger {
	return &logger{preset: liblog.NoLevel, stream: &stream{
		enabled: func(level slog.Level) bool { return level >= slog.LevelError || to.V(verbosity(level)).Enabled() },
		write: func(_ context.Context, r slog.Record) error {
			var pairs []any
			r.Attrs(func(a slog.Attr) bool {
				pairs = append(pairs, a.Key, a.Value.Any())
				return true
			})
			if r.Level >= slog.LevelError {
				to.Error(nil, r.Message, pairs...)
			} else {
				to.V(verbosity(r.Level)).Info(r.Message, pairs...)
			}
			return nil
		},
	}}
}

func verbosity(level slog.Level) int {
	if level < slog.LevelInfo {
		return 1
	}
	return 0
}

// Capture makes klog, controller-runtime and slog's default logger write to logger. These are
// settings of the whole program: it is for a main, which calls it once, before anything logs; a
// library never does. It must not be called while others log. The standard library's package log
// stays as it is.
func Capture(logger micrologger.Logger) {
	klog.SetLoggerWithOptions(Logr(logger), klog.ContextualLogger(true))
	ctrllog.SetLogger(Logr(logger))

	writer, flags := log.Writer(), log.Flags()
	slog.SetDefault(Slog(logger))
	log.SetOutput(writer)
	log.SetFlags(flags)
}
