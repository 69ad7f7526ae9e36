package docker

import (
	"archive/tar"
	stdbytes "bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	moby "github.com/moby/moby/client"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// configsAt is where the volume with configs is mounted while they are written.
const configsAt = "/configs"

// tidyTimeout is how long taking away what is not needed any more may take when the request has ended.
const tidyTimeout = 30 * time.Second

// configsOf returns the name of the volume with the configs of a container, and of the container that they are written through.
func configsOf(name string) string { return "operatorkit-configs-" + name }

// fill marks the configs of a container as being written, until the function that it returns is called.
func (m *machine) fill(name string) func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.filling[name] = true
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.filling, name)
	}
}

func (m *machine) isFilling(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.filling[name]
}

// writeConfigs makes a volume with the configs of a container that is about to be created, and returns what to mount. Engines write
// into volumes through containers alone: through one of the same image that is never started.
func (m *machine) writeConfigs(ctx context.Context, engine *moby.Client, name string, spec *api.ServiceSpec) ([]mount.Mount, error) {
	if len(spec.Container.ConfigMounts) == 0 {
		return nil, nil
	}
	archive, err := archiveConfigs(spec)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{LabelConfigsOf: name, LabelCluster: m.client.config.Cluster}
	volume := configsOf(name)
	made, err := engine.VolumeCreate(ctx, moby.VolumeCreateOptions{Name: volume, Driver: api.DefaultVolumeDriver, Labels: labels})
	if err != nil {
		return nil, fmt.Errorf("create the volume of its configs: %w", err)
	}
	if made.Volume.Labels[LabelConfigsOf] != name || made.Volume.Labels[LabelCluster] != labels[LabelCluster] {
		return nil, fmt.Errorf("volume %s, which its configs need, is another's", volume)
	}
	if err := m.writeVolume(ctx, engine, spec.Container.Image, volume, labels, archive); err != nil {
		return nil, errors.Join(fmt.Errorf("write its configs: %w", err), m.dropConfigs(ctx, engine, name))
	}
	var mounts []mount.Mount
	for i, c := range spec.Container.ConfigMounts {
		mounts = append(mounts, mount.Mount{
			Type: mount.TypeBind, Source: path.Join(made.Volume.Mountpoint, strconv.Itoa(i)), Target: c.Path, ReadOnly: true,
		})
	}
	return mounts, nil
}

func (m *machine) writeVolume(ctx context.Context, engine *moby.Client, image, volume string, labels map[string]string, archive []byte) (err error) {
	// One that a crash has left is in the way.
	if err := removeContainer(ctx, engine, volume); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
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

// dropConfigs removes the volume with the configs of a container that is not there, also when ctx has ended.
func (m *machine) dropConfigs(ctx context.Context, engine *moby.Client, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTimeout)
	defer cancel()
	_, err := engine.VolumeRemove(ctx, configsOf(name), moby.VolumeRemoveOptions{})
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove the volume of its configs: %w", err)
	}
	return nil
}

// sweepConfigs removes the volumes with configs of containers that are not there any more.
func (m *machine) sweepConfigs(ctx context.Context, engine *moby.Client) error {
	cluster := m.client.config.Cluster
	list, err := engine.VolumeList(ctx, moby.VolumeListOptions{Filters: moby.Filters{}.Add("label", LabelConfigsOf)})
	if err != nil {
		return fmt.Errorf("list the volumes of configs: %w", err)
	}
	var errs []error
	for _, v := range list.Items {
		name := v.Labels[LabelConfigsOf]
		if v.Labels[LabelCluster] != cluster || v.Name != configsOf(name) || m.isFilling(name) {
			continue
		}
		if _, err := engine.ContainerInspect(ctx, name, moby.ContainerInspectOptions{}); !errdefs.IsNotFound(err) {
			if err != nil {
				errs = append(errs, err)
			}
			continue
		}
		if err := removeContainer(ctx, engine, v.Name); err != nil && !errdefs.IsNotFound(err) {
			errs = append(errs, err)
		}
		errs = append(errs, m.dropConfigs(ctx, engine, name))
	}
	return errors.Join(errs...)
}
