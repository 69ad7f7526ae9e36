// Command nameserver answers for the names of services on a machine: see package names. It needs nothing else in its image.
package main

import (
	"context"
	"log"
	"os/signal"
	"syscall"

	"github.com/operatorkit/operatorkit/resource/deployment/docker/names"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := names.Run(ctx); err != nil {
		log.Fatal(err) //nolint:gocritic // nothing is left to end
	}
}
