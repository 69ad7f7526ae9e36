package logging

import (
	"log"
	"log/slog"

	"github.com/giantswarm/micrologger"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// Capture makes klog, controller-runtime and slog's default logger write to logger. These are settings of the whole
// program: it is for a main, which calls it once, before anything logs; a library never does. It must not be called
// while others log.
//
// The standard library's package log stays as it is, because micrologger itself reports there what it can't write.
func Capture(logger micrologger.Logger) {
	klog.SetLoggerWithOptions(Logr(logger), klog.ContextualLogger(true))
	ctrllog.SetLogger(Logr(logger))

	writer, flags := log.Writer(), log.Flags()
	slog.SetDefault(Slog(logger))
	log.SetOutput(writer)
	log.SetFlags(flags)
}
