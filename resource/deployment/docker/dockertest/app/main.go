// Command app is the program of dockertest.App.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

const address = ":8080"

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(arguments []string) (int, error) {
	// The first process of a container gets only the signals that it asks for.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	switch {
	case len(arguments) == 0:
		if mode := os.Getenv("MODE"); mode != "exit" {
			return 0, serve(ctx, mode)
		}
		return 3, nil
	case arguments[0] == "health":
		return 0, check()
	case arguments[0] == "hang":
		<-ctx.Done()
		return 0, nil
	case arguments[0] == "echo":
		_, err := io.Copy(os.Stdout, os.Stdin)
		return 0, err
	case arguments[0] == "migrate":
		_, err := fmt.Println("the database is at version", os.Getenv("VERSION"))
		return 0, err
	case arguments[0] == "exit" && len(arguments) == 2:
		return strconv.Atoi(arguments[1])
	}
	return 0, fmt.Errorf("arguments %q are not known", arguments)
}

func serve(ctx context.Context, mode string) error {
	var ready atomic.Bool
	ready.Store(mode == "")
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Container-Host", host) // dockertest.HostHeader; what tests are made of stays out of the program
		_, _ = fmt.Fprintf(w, "version %s at %s\n", os.Getenv("VERSION"), host)
	})
	mux.HandleFunc("/ready", func(http.ResponseWriter, *http.Request) { ready.Store(mode != "unhealthy") })
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			http.Error(w, "mode "+mode, http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/env", func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, os.Getenv(r.FormValue("name"))) })
	mux.HandleFunc("/fetch", func(w http.ResponseWriter, r *http.Request) {
		// Each time the name is looked up, and another connection is made.
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
		response, err := client.Get(r.FormValue("url"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer func() { _ = response.Body.Close() }()
		_, _ = io.Copy(w, response.Body)
	})
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, r.FormValue("path")) })
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		// What was asked before is answered.
		return server.Shutdown(context.Background())
	}
}

func check() error {
	response, err := http.Get("http://127.0.0.1" + address + "/health")
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return errors.New("not healthy: " + response.Status)
	}
	return nil
}
