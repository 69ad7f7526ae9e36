package operator

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Signals returns a context that ends at the first SIGINT or SIGTERM, or with ctx. After that the
// signals have their default effect again, so that a second one ends a program that does not stop.
// The returned function restores the default effect as well; call it at the end.
func Signals(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
