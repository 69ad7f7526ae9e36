package docker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"
	moby "github.com/moby/moby/client"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// maxConfig is the most that is read of a config, in bytes.
const maxConfig = 16 << 20

// reveal replaces the fingerprints in a specification that a container needs by what they stand for.
func (c *Client) reveal(ctx context.Context, engine *moby.Client, spec *api.ServiceSpec) error {
	missing := fingerprints(spec)
	if len(missing) == 0 {
		return nil
	}
	list, err := engine.ContainerList(ctx, moby.ContainerListOptions{
		All: true, Filters: moby.Filters{}.Add("label", LabelService+"="+spec.Name),
	})
	if err != nil {
		return err
	}
	ours := api.OwnershipOf(ctx)
	for _, item := range list.Items {
		if !c.known(item.Labels) || !ours.Owns(c.ownerOf(item.Labels)) {
			continue
		}
		inspected, err := engine.ContainerInspect(ctx, item.ID, moby.ContainerInspectOptions{})
		if err != nil {
			return err
		}
		if err := revealFrom(ctx, engine, &inspected.Container, missing); err != nil {
			return err
		}
	}
	for _, f := range missing {
		if api.IsFingerprint(f.read()) {
			return fmt.Errorf("%s is known by its fingerprint alone, and no container of the service on the machine has it", f.path)
		}
	}
	return nil
}

// secret is a value of a specification.
type secret struct {
	path string
	read func() string
	set  func(string)
	// in returns the value of a container that has the fingerprint, or false for one that does not.
	in func(ctx context.Context, engine *moby.Client, spec *api.ServiceSpec, from *container.InspectResponse) (string, bool, error)
}

// fingerprints are the values of which the specification has only fingerprints.
func fingerprints(spec *api.ServiceSpec) []secret {
	var all []secret
	for name, value := range spec.Container.SecretEnv {
		all = append(all, secret{
			path: "container.secretEnv." + name,
			read: func() string { return string(spec.Container.SecretEnv[name]) },
			set:  func(v string) { spec.Container.SecretEnv[name] = api.Hidden(v) },
			in: func(_ context.Context, _ *moby.Client, other *api.ServiceSpec, from *container.InspectResponse) (string, bool, error) {
				if other.Container.SecretEnv[name] != value {
					return "", false, nil
				}
				v, ok := variable(from.Config.Env, name)
				return v, ok, nil
			},
		})
	}
	for _, m := range spec.Container.ConfigMounts {
		i := slices.IndexFunc(spec.Configs, func(c api.ConfigSpec) bool { return c.Name == m.Config })
		if i < 0 {
			continue
		}
		config := &spec.Configs[i]
		wanted := config.Content
		all = append(all, secret{
			path: "configs[" + config.Name + "]",
			read: func() string { return string(config.Content) },
			set:  func(v string) { config.Content = api.Hidden(v) },
			in: func(ctx context.Context, engine *moby.Client, other *api.ServiceSpec, from *container.InspectResponse) (string, bool, error) {
				return readConfig(ctx, engine, other, wanted, from.ID)
			},
		})
	}
	if d := spec.Container.LogDriver; d != nil {
		for name, value := range d.Options {
			all = append(all, secret{
				path: "container.logDriver.options." + name,
				read: func() string { return d.Options[name] },
				set:  func(v string) { d.Options[name] = v },
				in: func(_ context.Context, _ *moby.Client, other *api.ServiceSpec, from *container.InspectResponse) (string, bool, error) {
					if o := other.Container.LogDriver; o == nil || o.Options[name] != value {
						return "", false, nil
					}
					v, ok := from.HostConfig.LogConfig.Config[name]
					return v, ok, nil
				},
			})
		}
	}
	return slices.DeleteFunc(all, func(s secret) bool { return !api.IsFingerprint(s.read()) })
}

func revealFrom(ctx context.Context, engine *moby.Client, from *container.InspectResponse, missing []secret) error {
	other := recorded(from.Config.Labels)
	for _, s := range missing {
		fingerprint := s.read()
		if !api.IsFingerprint(fingerprint) {
			continue
		}
		value, ok, err := s.in(ctx, engine, &other, from)
		if err != nil {
			return fmt.Errorf("read %s from container %s: %w", s.path, from.Name, err)
		}
		if ok && api.SameText(fingerprint, value) {
			s.set(value)
		}
	}
	return nil
}

func variable(env []string, name string) (string, bool) {
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// readConfig reads the config with a fingerprint from a container.
func readConfig(ctx context.Context, engine *moby.Client, spec *api.ServiceSpec, fingerprint api.Hidden, id string) (string, bool, error) {
	config := slices.IndexFunc(spec.Configs, func(c api.ConfigSpec) bool { return c.Content == fingerprint })
	if config < 0 {
		return "", false, nil
	}
	mounted := slices.IndexFunc(spec.Container.ConfigMounts, func(m api.ConfigMount) bool { return m.Config == spec.Configs[config].Name })
	if mounted < 0 {
		return "", false, nil
	}
	content, err := copyOut(ctx, engine, id, spec.Container.ConfigMounts[mounted].Path)
	return string(content), err == nil, err
}
