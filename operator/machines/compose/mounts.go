package compose

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// mounts converts volumes, paths of the machine and memory.
func (c *converter) mounts() {
	in := c.in.Volumes
	c.in.Volumes = nil
	for i, v := range in {
		part := fmt.Sprintf("volumes[%d]", i)
		mount := api.VolumeMount{Path: v.Target, ReadOnly: v.ReadOnly}
		var volume api.VolumeSpec
		switch v.Type {
		case types.VolumeTypeVolume:
			volume = c.volume(part, &v)
			if v.Volume != nil {
				mount.SubPath, mount.NoCopy, v.Volume = v.Volume.Subpath, v.Volume.NoCopy, &types.ServiceVolumeVolume{Labels: v.Volume.Labels}
			}
		case types.VolumeTypeBind:
			volume = api.VolumeSpec{Name: fmt.Sprintf("bind-%d", i), Type: api.VolumeTypeBind, HostPath: v.Source}
			if v.Bind != nil {
				volume.CreateHostPath = bool(v.Bind.CreateHostPath)
				volume.Propagation = api.Propagation(v.Bind.Propagation)
				left := *v.Bind
				left.CreateHostPath, left.Propagation = true, ""
				v.Bind = &left
			}
			c.remark(part, v.Source+" is a path of the machines: what it has here is not there by itself; use configs for files")
		case types.VolumeTypeTmpfs:
			volume = api.VolumeSpec{Name: fmt.Sprintf("tmpfs-%d", i), Type: api.VolumeTypeTmpfs}
			if v.Tmpfs != nil {
				volume.Size, v.Tmpfs = quantity(v.Tmpfs.Size), &types.ServiceVolumeTmpfs{Mode: v.Tmpfs.Mode}
			}
		default:
			c.lacks(part)
			continue
		}
		mount.Volume = volume.Name
		c.mount(volume, mount)
		v.Type, v.Source, v.Target, v.ReadOnly, v.Consistency = "", "", "", false, ""
		for _, left := range leftIn(v) {
			c.lacks(part + "." + left)
		}
	}
	c.memory()
}

// leftIn returns what is left of a mount, one step further in than leftOf.
func leftIn(v types.ServiceVolumeConfig) []string {
	var left []string
	add := func(of string, parts []string) {
		for _, part := range parts {
			left = append(left, of+"."+part)
		}
	}
	if v.Volume != nil {
		add("volume", leftOf(v.Volume))
	}
	if v.Bind != nil {
		add("bind", leftOf(v.Bind))
	}
	if v.Tmpfs != nil {
		add("tmpfs", leftOf(v.Tmpfs))
	}
	return left
}

// mount adds a mount, and its volume unless it is there.
func (c *converter) mount(volume api.VolumeSpec, mount api.VolumeMount) {
	spec := &c.svc.Spec
	if !slices.ContainsFunc(spec.Volumes, func(o api.VolumeSpec) bool { return o.Name == volume.Name }) {
		spec.Volumes = append(spec.Volumes, volume)
	}
	spec.Container.VolumeMounts = append(spec.Container.VolumeMounts, mount)
}

// volume returns a volume of the project. One without a name has one of its own for each container in Compose.
func (c *converter) volume(part string, mount *types.ServiceVolumeConfig) api.VolumeSpec {
	if mount.Source == "" {
		name := strings.Trim(objectName(c.project.Name+"-"+c.svc.Name+"-"+path.Clean(mount.Target)), "-")
		c.remark(part, "it has no name, and is called "+name)
		return api.VolumeSpec{Name: name}
	}
	config := c.project.Volumes[mount.Source]
	volume := api.VolumeSpec{Name: cmp.Or(config.Name, mount.Source), External: bool(config.External)}
	if volume.External {
		return volume
	}
	volume.Labels = emptyIsNil(config.Labels)
	if config.Driver != "" || len(config.DriverOpts) > 0 {
		volume.Driver = &api.VolumeDriver{Name: config.Driver, Options: emptyIsNil(config.DriverOpts)}
	}
	return volume
}

// memory converts tmpfs at the service itself: a path, and maybe options.
func (c *converter) memory() {
	in := c.in.Tmpfs
	c.in.Tmpfs = nil
	for i, text := range in {
		target, options, _ := strings.Cut(text, ":")
		volume := api.VolumeSpec{Name: fmt.Sprintf("memory-%d", i), Type: api.VolumeTypeTmpfs}
		for _, option := range strings.FieldsFunc(options, func(r rune) bool { return r == ',' }) {
			name, text, _ := strings.Cut(option, "=")
			var size types.UnitBytes
			if err := size.DecodeMapstructure(text); err != nil || name != "size" {
				c.lacks(fmt.Sprintf("tmpfs[%d].%s", i, option))
				continue
			}
			volume.Size = quantity(size)
		}
		c.mount(volume, api.VolumeMount{Volume: volume.Name, Path: target})
	}
}

// files converts configs and secrets: the contents of the former are in the service, those of the latter in Secrets.
func (c *converter) files() {
	configs, secrets := c.in.Configs, c.in.Secrets
	c.in.Configs, c.in.Secrets = nil, nil
	for _, ref := range configs {
		config := types.FileObjectConfig(c.project.Configs[ref.Source])
		name := "config-" + ref.Source
		if config.External {
			key := v1alpha1.KeyReference{Name: objectName(cmp.Or(config.Name, ref.Source)), Key: ref.Source}
			c.from(v1alpha1.ConfigFrom{Name: name, ConfigMapKeyRef: &key})
			c.remark("configs."+ref.Source, fmt.Sprintf("it is key %s of ConfigMap %s, which has to be there", key.Key, key.Name))
		} else if !slices.ContainsFunc(c.svc.Spec.Configs, func(o api.ConfigSpec) bool { return o.Name == name }) {
			content, err := contentOf(config)
			if err != nil {
				c.fail("configs."+ref.Source, "%w", err)
				continue
			}
			if !utf8.ValidString(content) {
				c.fail("configs."+ref.Source, "%s is no text, and would not arrive as it is: make a ConfigMap of it (kubectl create configmap "+
					"NAME --from-file=%s=FILE), and let the config be external", cmp.Or(config.File, "its content"), ref.Source)
				continue
			}
			c.svc.Spec.Configs = append(c.svc.Spec.Configs, api.ConfigSpec{Name: name, Content: api.Hidden(content)})
		}
		c.mountFile(name, types.FileReferenceConfig(ref), "/")
	}
	for _, ref := range secrets {
		config := types.FileObjectConfig(c.project.Secrets[ref.Source])
		name := "secret-" + ref.Source
		key := v1alpha1.KeyReference{Name: objectName(cmp.Or(config.Name, ref.Source)), Key: ref.Source}
		c.from(v1alpha1.ConfigFrom{Name: name, SecretKeyRef: &key})
		how := "which has to be there"
		switch {
		case config.File != "":
			how = fmt.Sprintf("make it: kubectl create secret generic %s --from-file=%s=%s", key.Name, key.Key, config.File)
		case config.Environment != "":
			how = fmt.Sprintf(`make it: kubectl create secret generic %s --from-literal=%s="$%s"`, key.Name, key.Key, config.Environment)
		}
		c.remark("secrets."+ref.Source, fmt.Sprintf("it is key %s of Secret %s; %s", key.Key, key.Name, how))
		c.mountFile(name, types.FileReferenceConfig(ref), "/run/secrets/")
	}
}

// from adds what is in an object, once.
func (c *converter) from(from v1alpha1.ConfigFrom) {
	if !slices.ContainsFunc(c.svc.Spec.ConfigsFrom, func(o v1alpha1.ConfigFrom) bool { return o.Name == from.Name }) {
		c.svc.Spec.ConfigsFrom = append(c.svc.Spec.ConfigsFrom, from)
	}
}

// contentOf returns the content of a config. What comes from the environment was read with the files.
func contentOf(config types.FileObjectConfig) (string, error) {
	if config.File != "" {
		return read(config.File)
	}
	return config.Content, nil
}

// mountFile makes a file of a config in the container.
func (c *converter) mountFile(config string, ref types.FileReferenceConfig, directory string) {
	mount := api.ConfigMount{Config: config, Path: cmp.Or(ref.Target, ref.Source)}
	if !path.IsAbs(mount.Path) {
		mount.Path = directory + mount.Path
	}
	for part, id := range map[string]struct {
		text string
		to   *int64
	}{"uid": {ref.UID, &mount.UID}, "gid": {ref.GID, &mount.GID}} {
		n, err := strconv.ParseInt(cmp.Or(id.text, "0"), 10, 32)
		if err != nil {
			c.fail(part, "%q of %s is not a number", id.text, ref.Source)
		}
		*id.to = n
	}
	if ref.Mode != nil {
		mount.Mode = int32(*ref.Mode) //nolint:gosec // Validate knows what a mode is
	}
	c.svc.Spec.Container.ConfigMounts = append(c.svc.Spec.Container.ConfigMounts, mount)
}
