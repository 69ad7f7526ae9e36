package docker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

// empty tells whether there is nothing to log in with.
func (c *Credentials) empty() bool { return c.Username == "" && c.Password == "" && c.Token == "" }

// explain adds to the error of a registry that lets nobody in with the credentials what that has to do with them. They are not in it.
func (c *Credentials) explain(ctx context.Context, registry string, err error) error {
	err = hide(ctx, err, c.secrets()...)
	if !refused(err) {
		return err
	}
	text := "registry " + registry + " refuses the login"
	if c.empty() {
		text = "registry " + registry + " wants a login"
	}
	if c.Hint != "" {
		text += "; " + c.Hint
	}
	return fmt.Errorf("%s: %w", text, err)
}

// refusals are parts of what engines say, which pass on what registries say as a text.
var refusals = []string{
	"unauthorized", "access denied", "denied: ", "registry: denied", "no basic auth credentials", "authentication required", "failed to authorize",
}

// refused tells whether an error of a registry, or of an engine that has asked one, is about who asks.
func refused(err error) bool {
	var response *errcode.ErrorResponse
	switch {
	case err == nil:
		return false
	case errors.As(err, &response):
		return response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden
	case errors.Is(err, auth.ErrBasicCredentialNotFound), errdefs.IsUnauthorized(err):
		return true
	}
	text := strings.ToLower(err.Error())
	return slices.ContainsFunc(refusals, func(part string) bool { return strings.Contains(text, part) })
}
