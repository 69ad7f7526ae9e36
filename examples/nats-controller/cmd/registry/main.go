// Command registry runs the registry of the example by itself, for the operator on your own NATS and cluster.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/operatorkit/operatorkit/examples/nats-controller/registry"
)

func main() {
	address := flag.String("address", "127.0.0.1:8500", "where to listen")
	flag.Parse()
	fmt.Printf("registrations are at http://%s/registrations\n", *address)
	server := &http.Server{Addr: *address, Handler: registry.NewServer(), ReadHeaderTimeout: 10 * time.Second}
	fmt.Fprintln(os.Stderr, server.ListenAndServe())
	os.Exit(1)
}
