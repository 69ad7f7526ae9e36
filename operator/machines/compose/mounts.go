package compose

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/types"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// mounts converts volumes, paths of the machine and memory.
func (c *converter) mounts() {
	remarked := map[string]bool{}
	for i := range c.in.Volumes {
		v, part := &c.in.Volumes[i], fmt.Sprintf("volumes[%d]", i)
		var volume api.VolumeSpec
		mount := api.VolumeMount{}
		switch v.Type {
		case types.VolumeTypeVolume:
			volume = c.volume(part, v)
			if v.Volume != nil {
				mount.SubPath, mount.NoCopy = take(&v.Volume.Subpath), take(&v.Volume.NoCopy)
			}
		case types.VolumeTypeBind:
			volume = api.VolumeSpec{Name: c.freeName(fmt.Sprintf("bind-%d", i)), Type: api.VolumeTypeBind, HostPath: v.Source, CreateHostPath: true}
			if v.Bind != nil {
				volume.CreateHostPath, v.Bind.CreateHostPath = bool(v.Bind.CreateHostPath), true
				volume.Propagation = api.Propagation(take(&v.Bind.Propagation))
			}
			if !remarked[v.Source] {
				remarked[v.Source] = true
				c.remark(part, v.Source+" is a path of the machines: what it has here is not there by itself; use configs for files")
			}
		case types.VolumeTypeTmpfs:
			volume = api.VolumeSpec{Name: c.freeName(fmt.Sprintf("tmpfs-%d", i)), Type: api.VolumeTypeTmpfs}
			if v.Tmpfs != nil {
				volume.Size = quantity(take(&v.Tmpfs.Size))
			}
		default:
			c.lacks(part)
			*v = types.ServiceVolumeConfig{}
			continue
		}
		if v.Type != types.VolumeTypeTmpfs {
			v.Source = ""
		}
		v.Type = ""
		mount.Volume, mount.Path, mount.ReadOnly = volume.Name, take(&v.Target), take(&v.ReadOnly)
		c.mount(part, volume, mount)
	}
	c.memory()
}

// mount adds a mount, and its volume unless it is there.
func (c *converter) mount(part string, volume api.VolumeSpec, mount api.VolumeMount) {
	spec := &c.svc.Spec
	i := slices.IndexFunc(spec.Volumes, func(o api.VolumeSpec) bool { return o.Name == volume.Name })
	switch {
	case i < 0:
		spec.Volumes = append(spec.Volumes, volume)
	case !equality.Semantic.DeepEqual(spec.Volumes[i], volume):
		c.fail(part, "two volumes of the project are called %s, and differ", volume.Name)
	}
	spec.Container.VolumeMounts = append(spec.Container.VolumeMounts, mount)
}

// freeName returns a name that no volume of the project has, which begins with another one.
func (c *converter) freeName(name string) string {
	free := name
	for n := 2; c.volumes[free]; n++ {
		free = fmt.Sprintf("%s-%d", name, n)
	}
	return free
}

// volume returns a volume of the project. One without a name has one of its own for each container in Compose.
func (c *converter) volume(part string, mount *types.ServiceVolumeConfig) api.VolumeSpec {
	if mount.Source == "" {
		name := objectName(c.project.Name + "-" + c.svc.Name + "-" + path.Clean(mount.Target))
		if c.volumes[name] {
			name = hashed(name, c.svc.Name, mount.Target)
		}
		c.volumes[name] = true
		c.anonymous = append(c.anonymous, part)
		c.remark(part, "it has no name, and is called "+name)
		return api.VolumeSpec{Name: name}
	}
	config, left := c.project.Volumes[mount.Source], c.left.Volumes[mount.Source]
	c.used["volumes."+mount.Source] = true
	volume := api.VolumeSpec{Name: cmp.Or(config.Name, mount.Source), External: bool(config.External)}
	left.Name, left.External = "", false
	if !volume.External {
		left.Labels, left.Driver, left.DriverOpts = nil, "", nil
		volume.Labels = emptyIsNil(config.Labels)
		if config.Driver != "" || len(config.DriverOpts) > 0 {
			volume.Driver = &api.VolumeDriver{Name: config.Driver, Options: emptyIsNil(config.DriverOpts)}
		}
	}
	if _, ok := c.left.Volumes[mount.Source]; ok {
		c.left.Volumes[mount.Source] = left
	}
	return volume
}

// sharing names the volumes without names that containers share here, and not in Compose.
func (c *converter) sharing() {
	if c.svc.Spec.DesiredReplicas() < 2 {
		return
	}
	for _, part := range c.anonymous {
		c.out.add(Remark{Path: c.at(part), Lacking: true, Text: "containers of one machine share it, where each has one of its own in Compose"})
	}
}

// memory converts tmpfs at the service itself: a path, and maybe options.
func (c *converter) memory() {
	for i, text := range take(&c.in.Tmpfs) {
		part := fmt.Sprintf("tmpfs[%d]", i)
		target, options, _ := strings.Cut(text, ":")
		volume := api.VolumeSpec{Name: c.freeName(fmt.Sprintf("memory-%d", i)), Type: api.VolumeTypeTmpfs}
		for _, option := range strings.FieldsFunc(options, func(r rune) bool { return r == ',' }) {
			name, text, _ := strings.Cut(option, "=")
			var size types.UnitBytes
			if err := size.DecodeMapstructure(text); err != nil || name != "size" {
				c.lacks(part + "." + option)
				continue
			}
			volume.Size = quantity(size)
		}
		c.mount(part, volume, api.VolumeMount{Volume: volume.Name, Path: target})
	}
}
