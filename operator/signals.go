package operator

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Signals returns a context that ends at the first SIGINT or SIGTERM, or with ctx. From then on the signals have their
// default effect again, so that a second one ends a program that does not stop. The returned function gives the
// signals back as well; call it at the end.
func Signals(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
