package dockertest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	mobyregistry "github.com/moby/moby/api/types/registry"
	moby "github.com/moby/moby/client"
)

// Registry is a registry for images that lets in one user, by a password.
type Registry struct {
	user, password string
	server         *httptest.Server
	images         http.Handler
}

// StartRegistry starts a registry on this machine, without TLS. It ends with the test.
func StartRegistry(t testing.TB, user, password string) *Registry {
	t.Helper()
	r := &Registry{user: user, password: password, images: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	r.server = httptest.NewServer(r)
	t.Cleanup(r.server.Close)
	return r
}

// ServeHTTP implements http.Handler.
func (r *Registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if user, password, ok := request.BasicAuth(); !ok || user != r.user || password != r.password {
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"who are you?"}]}`, http.StatusUnauthorized)
		return
	}
	r.images.ServeHTTP(w, request)
}

// Host returns the name of the registry, with which the names of its images begin.
func (r *Registry) Host() string { return strings.TrimPrefix(r.server.URL, "http://") }

// Push puts images into the registry by way of an engine, on which they don't stay. Their names begin with Host.
func (r *Registry) Push(ctx context.Context, e *Engine, images ...Image) error {
	if err := e.Load(ctx, images...); err != nil {
		return err
	}
	engine, err := e.Client()
	if err != nil {
		return err
	}
	defer func() { _ = engine.Close() }()
	login, err := json.Marshal(mobyregistry.AuthConfig{Username: r.user, Password: r.password})
	if err != nil {
		return err
	}
	for _, image := range images {
		push, err := engine.ImagePush(ctx, image.Name, moby.ImagePushOptions{RegistryAuth: base64.URLEncoding.EncodeToString(login)})
		if err != nil {
			return err
		}
		if err := errors.Join(push.Wait(ctx), push.Close()); err != nil {
			return err
		}
		if _, err := engine.ImageRemove(ctx, image.Name, moby.ImageRemoveOptions{Force: true}); err != nil {
			return err
		}
	}
	return nil
}
