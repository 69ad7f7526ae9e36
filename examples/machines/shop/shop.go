// Package shop is what compose.yaml runs: a page in front, an API behind it, and a database behind that. A container has one of the first two roles
// by its argument, "web" or "api", and answers at port 8080. With "health" it says whether the container works.
package shop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"
)

const (
	address = ":8080"
	// patience is how long an answer from behind may take.
	patience = time.Minute
)

// customer asks what is behind.
var customer = &http.Client{Timeout: patience}

// Run has a role until ctx ends.
func Run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("say web, api or health, not %q", args)
	}
	switch args[0] {
	case "health":
		return health(ctx)
	case "web":
		return serve(ctx, web(os.Getenv("API")))
	case "api":
		var ready atomic.Bool
		go func() {
			// What is there already is not made again.
			for ctx.Err() == nil && !ready.Load() {
				_, err := query(ctx, "create table if not exists orders (number serial)")
				ready.Store(err == nil)
				time.Sleep(100 * time.Millisecond)
			}
		}()
		return serve(ctx, api(&ready))
	}
	return fmt.Errorf("there is no role %q: say web, api or health", args[0])
}

func serve(ctx context.Context, handler http.Handler) error {
	server := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: patience}
	defer context.AfterFunc(ctx, func() { _ = server.Shutdown(context.WithoutCancel(ctx)) })()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// health asks whether this container works.
func health(ctx context.Context) error {
	_, err := Ask(ctx, customer, http.MethodGet, "http://127.0.0.1"+address+"/health")
	return err
}

// web asks the API, by its name.
func web(behind string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		text, err := Ask(r.Context(), customer, r.Method, behind)
		answer(w, fmt.Sprintf("%s, web %s", text, os.Getenv("VERSION")), err)
	})
	return mux
}

// api counts orders: a POST is another one.
func api(ready *atomic.Bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			http.Error(w, "the database is not there yet", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			if _, err := query(r.Context(), "insert into orders default values"); err != nil {
				answer(w, "", err)
				return
			}
		}
		count, err := query(r.Context(), "select count(*) from orders")
		answer(w, fmt.Sprintf("orders %s, api %s", count, os.Getenv("VERSION")), err)
	})
	return mux
}

func answer(w http.ResponseWriter, text string, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	_, _ = io.WriteString(w, text) // who has gone does not miss it
}

// Ask asks an address, and returns what it says without the space around it. An answer other than 200 is an error that says what was answered.
func Ask(ctx context.Context, client *http.Client, method, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, strings.TrimSpace(string(text)))
	}
	return strings.TrimSpace(string(text)), err
}

// query asks the database that the variables of libpq name.
func query(ctx context.Context, statement string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var failure bytes.Buffer
	cmd := exec.CommandContext(ctx, "/usr/bin/psql", "--no-psqlrc", "--tuples-only", "--no-align", "--quiet", "--set=ON_ERROR_STOP=1", "--command="+statement)
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, strings.TrimSpace(failure.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
