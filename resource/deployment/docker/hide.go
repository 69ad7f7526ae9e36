package docker

import (
	"context"
	"maps"
	"slices"

	"github.com/moby/moby/api/types/container"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// hide returns an error of an engine or a registry without values that were sent there: some answer with what they were asked. The values
// are secret in the reconciliation of ctx as well, if it is that of one.
func hide(ctx context.Context, err error, values ...string) error {
	secretscontext.Add(ctx, values...)
	var secrets secretscontext.Vocabulary
	secrets.Add(values...)
	return secrets.ScrubError(err)
}

// secrets are what must not be seen of the credentials, also as basic authorization has them.
func (c *Credentials) secrets() []string {
	return []string{string(c.Password), string(c.Token), c.Username + ":" + string(c.Password)}
}

// secretsOf are what engines are sent of a specification and must not be seen.
func secretsOf(spec *api.ServiceSpec) []string {
	var values []string
	for _, value := range spec.Container.SecretEnv {
		values = append(values, string(value))
	}
	if d := spec.Container.LogDriver; d != nil {
		values = slices.AppendSeq(values, maps.Values(d.Options))
	}
	return values
}

// secretsIn are the same values of a container that an engine has.
func secretsIn(c *container.InspectResponse) []string {
	var values []string
	for name := range recorded(c.Config.Labels).Container.SecretEnv {
		if value, there := variable(c.Config.Env, name); there {
			values = append(values, value)
		}
	}
	if c.HostConfig != nil {
		values = slices.AppendSeq(values, maps.Values(c.HostConfig.LogConfig.Config))
	}
	return values
}
