package docker

import (
	"archive/tar"
	stdbytes "bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	moby "github.com/moby/moby/client"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// configsAt is where the volume with configs is mounted while they are written.
const configsAt = "/configs"

// tidyTimeout is how long taking away what is not needed any more may take when the request has ended.
const tidyTimeout = 30 * time.Second

// configsVolume returns a name for the volume with the configs of a container, and for the container that they are written through. No
// other creation has it, not even one of a container of the same name: who takes away what is left of an earlier one can't meet it.
func configsVolume(container string) string {
	return "operatorkit-configs-" + container + "-" + strings.ToLower(rand.Text()[:8])
}

// fill marks a volume of configs as being written, until the function that it returns is called.
func (m *machine) fill(volume string) func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.filling[volume] = true
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.filling, volume)
	}
}

// beingFilled returns the volumes that are marked now.
func (m *machine) beingFilled() map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.filling)
}

// writeConfigs makes a volume with the configs of a container that is about to be created, and returns what to mount. Engines write
// into volumes through containers alone: through one of the same image that is never started.
func (m *machine) writeConfigs(ctx context.Context, engine *moby.Client, volume string, options *api.CreateContainerOptions) ([]mount.Mount, error) {
	spec := &options.Spec
	archive, err := archiveConfigs(spec)
	if err != nil {
		return nil, err
	}
	labels := m.client.markContainer(ctx, nil)
	labels[LabelConfigsOf], labels[LabelConfigs] = options.Name, volume
	made, err := engine.VolumeCreate(ctx, moby.VolumeCreateOptions{Name: volume, Driver: api.DefaultVolumeDriver, Labels: labels})
	if err != nil {
		return nil, fmt.Errorf("create the volume of its configs: %w", err)
	}
	if err := writeVolume(ctx, engine, spec.Container.Image, volume, labels, archive); err != nil {
		return nil, errors.Join(fmt.Errorf("write its configs: %w", err), dropVolume(ctx, engine, volume))
	}
	var mounts []mount.Mount
	for i, c := range spec.Container.ConfigMounts {
		mounts = append(mounts, mount.Mount{
			Type: mount.TypeBind, Source: path.Join(made.Volume.Mountpoint, strconv.Itoa(i)), Target: c.Path, ReadOnly: true,
		})
	}
	return mounts, nil
}

func writeVolume(ctx context.Context, engine *moby.Client, image, volume string, labels map[string]string, archive []byte) (err error) {
	writer, err := engine.ContainerCreate(ctx, moby.ContainerCreateOptions{
		Name:       volume,
		Config:     &container.Config{Image: image, Cmd: []string{"never"}, Labels: labels},
		HostConfig: &container.HostConfig{Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: volume, Target: configsAt}}},
	})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTimeout)
		defer cancel()
		err = errors.Join(err, removeContainer(ctx, engine, writer.ID))
	}()
	_, err = engine.CopyToContainer(ctx, writer.ID, moby.CopyToContainerOptions{DestinationPath: configsAt, Content: stdbytes.NewReader(archive)})
	return err
}

// archiveConfigs has a file for each mount, named after its index.
func archiveConfigs(spec *api.ServiceSpec) ([]byte, error) {
	var out stdbytes.Buffer
	w := tar.NewWriter(&out)
	for i, m := range spec.Container.ConfigMounts {
		c := slices.IndexFunc(spec.Configs, func(c api.ConfigSpec) bool { return c.Name == m.Config })
		if c < 0 {
			return nil, fmt.Errorf("the specification has no config %s", m.Config)
		}
		content := []byte(spec.Configs[c].Content)
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: strconv.Itoa(i), Size: int64(len(content)), Mode: int64(m.Mode), Uid: int(m.UID), Gid: int(m.GID),
			Format: tar.FormatPAX,
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(content); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}

// dropVolume removes a volume of configs that no container has, also when ctx has ended.
func dropVolume(ctx context.Context, engine *moby.Client, volume string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTimeout)
	defer cancel()
	_, err := engine.VolumeRemove(ctx, volume, moby.VolumeRemoveOptions{})
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove the volume of its configs: %w", err)
	}
	return nil
}

// sweepConfigs removes our volumes with configs of which there is no container any more, and what writes into them if that was cut off.
func (m *machine) sweepConfigs(ctx context.Context, engine *moby.Client) error {
	list, err := engine.VolumeList(ctx, moby.VolumeListOptions{Filters: moby.Filters{}.Add("label", LabelConfigsOf)})
	if err != nil {
		return fmt.Errorf("list the volumes of configs: %w", err)
	}
	if len(list.Items) == 0 {
		return nil
	}
	// After the volumes, the marks, and after those the containers: each volume is marked before it is there, until its container is.
	filling := m.beingFilled()
	containers, err := engine.ContainerList(ctx, moby.ContainerListOptions{All: true, Filters: moby.Filters{}.Add("label", LabelConfigs)})
	if err != nil {
		return fmt.Errorf("list the containers with configs: %w", err)
	}
	used, writers := map[string]bool{}, map[string]string{}
	for _, c := range containers.Items {
		if volume := c.Labels[LabelConfigs]; c.Labels[LabelConfigsOf] == "" {
			used[volume] = true
		} else {
			writers[volume] = c.ID
		}
	}
	ours := api.OwnershipOf(ctx)
	var errs []error
	for _, v := range list.Items {
		if v.Labels[LabelForm] != identity.Form || !ours.Owns(m.client.ownerOf(v.Labels)) || used[v.Name] || filling[v.Name] {
			continue
		}
		if writer := writers[v.Name]; writer != "" {
			if err := removeContainer(ctx, engine, writer); err != nil && !errdefs.IsNotFound(err) {
				errs = append(errs, err)
			}
		}
		errs = append(errs, dropVolume(ctx, engine, v.Name))
	}
	return errors.Join(errs...)
}
