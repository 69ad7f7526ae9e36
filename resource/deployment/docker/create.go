package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	moby "github.com/moby/moby/client"
	"github.com/moby/moby/client/pkg/versions"

	"github.com/operatorkit/operatorkit/internal/outlive"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// createTimeout is how long the creation of a container goes on when its context has ended, and how long a name is waited for that is
// taken by nothing that can be seen.
const createTimeout = time.Minute

// namePeriod is the time between two looks at such a name.
const namePeriod = 100 * time.Millisecond

// CreateContainer implements api.ContainerClient. Secrets of which the specification has only fingerprints are those of a container of
// the service on the machine that has the same ones; if there is none, it is an error.
//
// The end of ctx does not cut it off for a minute: an engine would go on all the same, and the container would be there later, when
// nobody knows of it.
func (c *Client) CreateContainer(ctx context.Context, machineID string, options api.CreateContainerOptions) (string, error) {
	m, err := c.machine(machineID)
	if err != nil {
		return "", err
	}
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	ctx, cancel := outlive.Context(ctx, createTimeout)
	defer cancel()
	options.Spec = options.Spec.Clone()
	options.Spec.SetDefaults()
	var id string
	err = m.change(ctx, func(ctx context.Context, engine *moby.Client) error {
		id, err = m.create(ctx, engine, &options)
		return hide(ctx, err, secretsOf(&options.Spec)...)
	})
	return id, err
}

func (m *machine) create(ctx context.Context, engine *moby.Client, options *api.CreateContainerOptions) (string, error) {
	spec := &options.Spec
	labels, err := m.client.labels(ctx, options)
	if err != nil {
		return "", err
	}
	// Configs are written before, and not over those of another container.
	if err := m.nameTaken(ctx, engine, options.Name); err != nil {
		return "", err
	}
	if err := m.client.reveal(ctx, engine, spec); err != nil {
		return "", err
	}
	host, err := hostConfig(engine, spec, m.spec().Addresses)
	if err != nil {
		return "", err
	}
	networking, joined, err := m.join(ctx, engine, spec, host)
	if err != nil {
		return "", err
	}
	defer joined()
	create := moby.ContainerCreateOptions{Name: options.Name, Config: containerConfig(spec, labels), HostConfig: host, NetworkingConfig: networking}
	if err := withoutCommand(ctx, engine, create.Config); err != nil {
		return "", err
	}
	id, err := m.createWithConfigs(ctx, engine, options, create)
	if err != nil {
		return "", err
	}
	if err := m.announce(ctx, engine, spec); err != nil {
		return "", errors.Join(err, removeContainer(ctx, engine, id), m.sweepConfigs(ctx, engine))
	}
	return id, nil
}

// createWithConfigs creates a container after its configs have been written.
func (m *machine) createWithConfigs(
	ctx context.Context, engine *moby.Client, options *api.CreateContainerOptions, create moby.ContainerCreateOptions,
) (string, error) {
	if len(options.Spec.Container.ConfigMounts) == 0 {
		return m.createAs(ctx, engine, create)
	}
	volume := configsVolume(options.Name)
	create.Config.Labels[LabelConfigs] = volume
	filled := m.fill(volume)
	mounts, err := m.writeConfigs(ctx, engine, volume, options)
	if err != nil {
		filled()
		return "", err
	}
	create.HostConfig.Mounts = append(create.HostConfig.Mounts, mounts...)
	id, err := m.createAs(ctx, engine, create)
	if err != nil && !declined(err) {
		// The container may come yet, and without its configs it could never start. They are swept later if it does not.
		time.AfterFunc(createTimeout, filled)
		return "", err
	}
	filled()
	if err != nil {
		err = errors.Join(err, dropVolume(ctx, engine, volume))
	}
	return id, err
}

// declined tells whether an engine has answered that it does not create a container. Of other failures nobody knows what it goes on with.
func declined(err error) bool {
	return errors.Is(err, api.ErrExists) || errdefs.IsInvalidArgument(err) || errdefs.IsNotFound(err) || errdefs.IsConflict(err) || errdefs.IsInternal(err)
}

// nameTaken returns api.ErrExists, with whose it is, if there is a container of a name.
func (m *machine) nameTaken(ctx context.Context, engine *moby.Client, name string) error {
	inspected, err := engine.ContainerInspect(ctx, name, moby.ContainerInspectOptions{})
	switch {
	case errdefs.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case inspected.Container.Config == nil:
		return errLeftOut
	}
	return fmt.Errorf("container %s of %s: %w", name, m.client.ownerOf(inspected.Container.Config.Labels), api.ErrExists)
}

// createAs creates a container. Engines have its name taken before they show it, and longer: one that is about to come, from an earlier
// try, or to go, is waited for.
func (m *machine) createAs(ctx context.Context, engine *moby.Client, options moby.ContainerCreateOptions) (string, error) {
	late := time.NewTimer(createTimeout)
	defer late.Stop()
	ticker := time.NewTicker(namePeriod)
	defer ticker.Stop()
	for {
		created, err := engine.ContainerCreate(ctx, options)
		if !errdefs.IsConflict(err) {
			return created.ID, err
		}
		taken := fmt.Errorf("%w: %w", api.ErrExists, err)
		if err := m.nameTaken(ctx, engine, options.Name); err != nil {
			return "", err
		}
		select {
		case <-ticker.C:
		case <-late.C:
			return "", taken
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

func containerConfig(spec *api.ServiceSpec, labels map[string]string) *container.Config {
	c := &spec.Container
	config := &container.Config{
		Image: c.Image, Cmd: c.Command, Entrypoint: c.Entrypoint, User: c.User, WorkingDir: c.WorkingDir, Labels: labels,
		StopSignal: c.StopSignal, Healthcheck: healthCheck(c.HealthCheck),
	}
	grace := seconds(c.GracePeriod())
	config.StopTimeout = &grace
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		config.Env = append(config.Env, name+"="+c.Env[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.SecretEnv)) {
		config.Env = append(config.Env, name+"="+string(c.SecretEnv[name]))
	}
	config.ExposedPorts = network.PortSet{}
	for _, p := range spec.Ports {
		config.ExposedPorts[inner(p)] = struct{}{}
	}
	return config
}

// withoutCommand makes a command that is empty none: without an entrypoint, engines take it for the one of the image.
func withoutCommand(ctx context.Context, engine *moby.Client, config *container.Config) error {
	if config.Cmd == nil || len(config.Cmd) > 0 || config.Entrypoint != nil {
		return nil
	}
	image, err := engine.ImageInspect(ctx, config.Image)
	if err != nil {
		return err
	}
	if image.Config == nil || len(image.Config.Entrypoint) == 0 {
		return fmt.Errorf("there is nothing to run: command is empty, and image %s has no entrypoint; write an entrypoint", config.Image)
	}
	config.Entrypoint = image.Config.Entrypoint
	return nil
}

// seconds rounds up, so that nothing is killed before its time.
func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// inner returns the port in the container.
func inner(p api.PortSpec) network.Port {
	protocol := network.TCP
	if p.Mode == api.PortModeHost && p.Protocol != "" {
		protocol = network.IPProtocol(p.Protocol)
	}
	port, _ := network.PortFrom(p.ContainerPort, protocol)
	return port
}

func healthCheck(h *api.HealthCheck) *container.HealthConfig {
	switch {
	case h == nil:
		return nil
	case h.Disable:
		return &container.HealthConfig{Test: []string{"NONE"}}
	}
	return &container.HealthConfig{
		Test: h.Test, Interval: h.Interval.Duration, Timeout: h.Timeout.Duration, StartPeriod: h.StartPeriod.Duration,
		StartInterval: h.StartInterval.Duration, Retries: h.Retries,
	}
}

func hostConfig(engine *moby.Client, spec *api.ServiceSpec, addresses []string) (*container.HostConfig, error) {
	c := &spec.Container
	host := &container.HostConfig{
		RestartPolicy: restartPolicy(c.RestartPolicy), CapAdd: c.CapAdd, CapDrop: c.CapDrop, Sysctls: c.Sysctls,
		Privileged: c.Privileged, ReadonlyRootfs: c.ReadOnly, ShmSize: bytes(c.Resources.ShmSize), Resources: inPlace(&c.Resources),
		PortBindings: network.PortMap{}, PidMode: container.PidMode(c.PidMode),
	}
	if c.Init {
		host.Init = &c.Init
	}
	if c.LogDriver != nil {
		host.LogConfig = container.LogConfig{Type: c.LogDriver.Name, Config: c.LogDriver.Options}
	}
	if c.Resources.PidsLimit > 0 {
		host.PidsLimit = &c.Resources.PidsLimit
	}
	for _, d := range c.Resources.Devices {
		host.Devices = append(host.Devices, container.DeviceMapping{PathOnHost: d.Host, PathInContainer: d.Container, CgroupPermissions: d.Permissions})
	}
	if g := c.Resources.GPUs; g != nil {
		host.DeviceRequests = []container.DeviceRequest{{
			Driver: g.Driver, Count: g.Count, DeviceIDs: g.IDs, Capabilities: [][]string{append([]string{"gpu"}, g.Capabilities...)}, Options: g.Options,
		}}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Resources.Ulimits)) {
		u := c.Resources.Ulimits[name]
		host.Ulimits = append(host.Ulimits, &container.Ulimit{Name: name, Soft: u.Soft, Hard: u.Hard})
	}
	for _, p := range spec.Ports {
		if p.Mode != api.PortModeHost {
			continue
		}
		at := p.HostIPs(addresses)
		if len(at) == 0 {
			return nil, fmt.Errorf("port %s: the machine has no address in the range", p)
		}
		for _, address := range at {
			binding := network.PortBinding{}
			if p.PublishedPort != 0 {
				binding.HostPort = strconv.Itoa(int(p.PublishedPort))
			}
			if address != "" {
				ip, err := netip.ParseAddr(address)
				if err != nil {
					return nil, fmt.Errorf("port %s: %w", p, err)
				}
				binding.HostIP = ip
			}
			host.PortBindings[inner(p)] = append(host.PortBindings[inner(p)], binding)
		}
	}
	for _, m := range c.VolumeMounts {
		if err := addVolume(host, engine, spec, m); err != nil {
			return nil, fmt.Errorf("mount volume %s: %w", m.Volume, err)
		}
	}
	return host, nil
}

func restartPolicy(r api.RestartPolicy) container.RestartPolicy {
	return container.RestartPolicy{Name: container.RestartPolicyMode(r.Name), MaximumRetryCount: r.MaxRetries}
}

// inPlace returns what UpdateContainer can change. A limit of memory is one of memory and swap space together.
func inPlace(r *api.Resources) container.Resources {
	return container.Resources{
		NanoCPUs: nanoCPUs(r.CPU), Memory: bytes(r.Memory), MemorySwap: bytes(r.Memory), MemoryReservation: bytes(r.MemoryReservation),
	}
}

// subPathVersion is the API since which engines mount folders of volumes. Those before don't say that they don't.
const subPathVersion = "1.45"

// startIntervalVersion is the API since which engines heed the interval of checks in the start period. Those before pass over it.
const startIntervalVersion = "1.44"

// ignored returns what engines pass over that speak a version of the API.
func ignored(version string) map[string]string {
	if version == "" || !versions.LessThan(version, startIntervalVersion) {
		return nil
	}
	return map[string]string{
		"container.healthCheck.startInterval": fmt.Sprintf("the engine speaks version %s of the API, and it needs %s", version, startIntervalVersion),
	}
}

func addVolume(host *container.HostConfig, engine *moby.Client, spec *api.ServiceSpec, m api.VolumeMount) error {
	i := slices.IndexFunc(spec.Volumes, func(v api.VolumeSpec) bool { return v.Name == m.Volume })
	if i < 0 {
		return errors.New("the specification has no such volume")
	}
	v := &spec.Volumes[i]
	out := mount.Mount{Target: m.Path, ReadOnly: m.ReadOnly}
	switch v.Type {
	case api.VolumeTypeBind:
		out.Type, out.Source = mount.TypeBind, path.Join(v.HostPath, m.SubPath)
		out.BindOptions = &mount.BindOptions{Propagation: mount.Propagation(v.Propagation)}
		if v.CreateHostPath {
			return addBind(host, &out)
		}
	case api.VolumeTypeTmpfs:
		if m.SubPath != "" {
			return errors.New("memory has no folders")
		}
		out.Type, out.TmpfsOptions = mount.TypeTmpfs, &mount.TmpfsOptions{SizeBytes: bytes(v.Size)}
	default:
		out.Type, out.Source = mount.TypeVolume, v.Name
		out.VolumeOptions = &mount.VolumeOptions{NoCopy: m.NoCopy, Subpath: m.SubPath}
		if m.SubPath != "" {
			if have := engine.ClientVersion(); versions.LessThan(have, subPathVersion) {
				return fmt.Errorf("the engine speaks version %s of the API, and folders of volumes need %s", have, subPathVersion)
			}
		}
	}
	host.Mounts = append(host.Mounts, out)
	return nil
}

// addBind mounts a path of the machine in the way in which all engines create it if it is not there.
func addBind(host *container.HostConfig, m *mount.Mount) error {
	if strings.Contains(m.Source+m.Target, ":") {
		return errors.New("a path with a colon can't be created by engines")
	}
	bind := m.Source + ":" + m.Target
	var options []string
	if m.ReadOnly {
		options = append(options, "ro")
	}
	if p := m.BindOptions.Propagation; p != "" {
		options = append(options, string(p))
	}
	if len(options) > 0 {
		bind += ":" + strings.Join(options, ",")
	}
	host.Binds = append(host.Binds, bind)
	return nil
}
