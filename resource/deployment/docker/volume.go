package docker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/volume"
	moby "github.com/moby/moby/client"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// volumes returns all volumes but those of configs, by name.
func (c *Client) volumes(ctx context.Context, engine *moby.Client) ([]api.Volume, error) {
	list, err := engine.VolumeList(ctx, moby.VolumeListOptions{})
	if err != nil {
		return nil, err
	}
	var out []api.Volume
	for _, v := range list.Items {
		if v.Labels[LabelConfigsOf] == "" {
			out = append(out, volumeOf(&v, c.ownerOf(v.Labels)))
		}
	}
	slices.SortFunc(out, func(a, b api.Volume) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func volumeOf(v *volume.Volume, owner api.Owner) api.Volume {
	return api.Volume{Name: v.Name, Driver: v.Driver, Owner: owner, Options: api.Fingerprints(v.Options)}
}

// CreateVolume implements api.VolumeClient.
func (c *Client) CreateVolume(ctx context.Context, machineID string, spec api.VolumeSpec) error {
	m, err := c.machine(machineID)
	if err != nil {
		return err
	}
	return m.change(ctx, func(ctx context.Context, engine *moby.Client) error {
		there, err := engine.VolumeInspect(ctx, spec.Name, moby.VolumeInspectOptions{})
		if err == nil {
			return usable(ctx, spec, volumeOf(&there.Volume, c.ownerOf(there.Volume.Labels)))
		}
		if !errdefs.IsNotFound(err) {
			return err
		}
		options := moby.VolumeCreateOptions{Name: spec.Name, Driver: spec.DriverName(), Labels: c.mark(ctx, spec.Labels)}
		if spec.Driver != nil {
			options.DriverOpts = spec.Driver.Options
		}
		// Engines return one that has come meanwhile, whosever it is, as if they had made it.
		made, err := engine.VolumeCreate(ctx, options)
		if err != nil {
			return err
		}
		return usable(ctx, spec, volumeOf(&made.Volume, c.ownerOf(made.Volume.Labels)))
	})
}

// usable says why a volume that is there can't be taken for the one that is to be made.
func usable(ctx context.Context, spec api.VolumeSpec, there api.Volume) error {
	if !api.OwnershipOf(ctx).Shares(there.Owner) {
		return fmt.Errorf("volume %s is there already, of %s: %w", spec.Name, there.Owner, api.ErrOthers)
	}
	if spec.Driver == nil {
		spec.Driver = &api.VolumeDriver{Options: there.Options}
	}
	if why := spec.Differs(&there); why != "" {
		return fmt.Errorf("volume %s is there already, and %s", spec.Name, why)
	}
	return nil
}
