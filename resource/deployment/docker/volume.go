package docker

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
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
			out = append(out, api.Volume{Name: v.Name, Driver: v.Driver, Owner: c.ownerOf(v.Labels)})
		}
	}
	slices.SortFunc(out, func(a, b api.Volume) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// CreateVolume implements api.VolumeClient.
func (c *Client) CreateVolume(ctx context.Context, machineID string, volume api.VolumeSpec) error {
	m, err := c.machine(machineID)
	if err != nil {
		return err
	}
	return m.change(ctx, func(ctx context.Context, engine *moby.Client) error {
		there, err := engine.VolumeInspect(ctx, volume.Name, moby.VolumeInspectOptions{})
		owner := c.ownerOf(there.Volume.Labels)
		switch {
		case err == nil && !api.OwnershipOf(ctx).Shares(owner):
			return fmt.Errorf("volume %s is there already, of %s: %w", volume.Name, owner, api.ErrOthers)
		case err == nil && there.Volume.Driver == volume.DriverName():
			return nil
		case err == nil:
			return fmt.Errorf("volume %s is there already, and was made by driver %s, not %s", volume.Name, there.Volume.Driver, volume.DriverName())
		case !errdefs.IsNotFound(err):
			return err
		}
		options := moby.VolumeCreateOptions{Name: volume.Name, Driver: volume.DriverName(), Labels: c.mark(ctx, volume.Labels)}
		if volume.Driver != nil {
			options.DriverOpts = volume.Driver.Options
		}
		_, err = engine.VolumeCreate(ctx, options)
		return err
	})
}
