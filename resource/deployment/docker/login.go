package docker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
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

// refused tells whether an error of an engine that has asked a registry is about who asks.
func refused(err error) bool {
	if err == nil || errdefs.IsUnauthorized(err) {
		return err != nil
	}
	text := strings.ToLower(err.Error())
	return slices.ContainsFunc(refusals, func(part string) bool { return strings.Contains(text, part) })
}
