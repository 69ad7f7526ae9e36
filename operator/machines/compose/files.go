package compose

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// files converts configs and secrets: the contents of the former are in the service, those of the latter in Secrets.
func (c *converter) files() {
	for i := range c.in.Configs {
		ref := takeFile((*types.FileReferenceConfig)(&c.in.Configs[i]))
		config, at := c.config(ref.Source), "configs."+ref.Source
		name := "config-" + ref.Source
		if config.External {
			key := v1alpha1.KeyReference{Name: c.objectName(at, cmp.Or(config.Name, ref.Source)), Key: ref.Source}
			c.from(v1alpha1.ConfigFrom{Name: name, ConfigMapKeyRef: &key})
			c.remark(at, fmt.Sprintf("it is key %s of ConfigMap %s, which has to be there", key.Key, key.Name))
		} else if !slices.ContainsFunc(c.svc.Spec.Configs, func(o api.ConfigSpec) bool { return o.Name == name }) {
			content, err := c.contentOf(config)
			if err != nil {
				c.fail(at, "%w", err)
				continue
			}
			if !utf8.ValidString(content) {
				c.fail(at, "%s is no text, and would not arrive as it is: make a ConfigMap of it (kubectl create configmap "+
					"NAME --from-file=%s=FILE), and let the config be external", cmp.Or(config.File, "its content"), quote(ref.Source))
				continue
			}
			c.svc.Spec.Configs = append(c.svc.Spec.Configs, api.ConfigSpec{Name: name, Content: api.Hidden(content)})
		}
		c.mountFile(at, name, ref, "/")
	}
	for i := range c.in.Secrets {
		ref := takeFile((*types.FileReferenceConfig)(&c.in.Secrets[i]))
		config, at := c.secret(ref.Source), "secrets."+ref.Source
		name := "secret-" + ref.Source
		key := v1alpha1.KeyReference{Name: c.objectName(at, cmp.Or(config.Name, ref.Source)), Key: ref.Source}
		c.from(v1alpha1.ConfigFrom{Name: name, SecretKeyRef: &key})
		c.remark(at, fmt.Sprintf("it is key %s of Secret %s; %s", key.Key, key.Name, howToMake(key, config)))
		c.mountFile(at, name, ref, "/run/secrets/")
	}
}

// takeFile takes out what is said about a file.
func takeFile(file *types.FileReferenceConfig) types.FileReferenceConfig {
	value := *file
	*file = types.FileReferenceConfig{Extensions: value.Extensions}
	return value
}

// config returns a config of the project, and takes out of it what is converted.
func (c *converter) config(name string) types.FileObjectConfig {
	if left, ok := c.left.Configs[name]; ok {
		if left.External || left.Name == c.project.Name+"_"+name {
			// The content of others is in the service, and has no name of its own.
			left.Name = ""
		}
		takeSource((*types.FileObjectConfig)(&left))
		c.left.Configs[name] = left
	}
	c.used["configs."+name] = true
	return types.FileObjectConfig(c.project.Configs[name])
}

// secret returns a secret of the project, and takes out of it what is converted.
func (c *converter) secret(name string) types.FileObjectConfig {
	if left, ok := c.left.Secrets[name]; ok {
		left.Name = ""
		takeSource((*types.FileObjectConfig)(&left))
		c.left.Secrets[name] = left
	}
	c.used["secrets."+name] = true
	return types.FileObjectConfig(c.project.Secrets[name])
}

// takeSource takes out where a content is from: of several the first one counts.
func takeSource(f *types.FileObjectConfig) {
	switch {
	case bool(f.External):
		f.External = false
	case f.File != "":
		f.File = ""
	default:
		// The library adds the content of a variable.
		f.Environment, f.Content = "", ""
	}
}

// shellVariable is a name of a variable that shells know.
var shellVariable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// howToMake says how to make the Secret of a secret, on a command line that can be pasted as it is.
func howToMake(key v1alpha1.KeyReference, config types.FileObjectConfig) string {
	const create = "make it: kubectl create secret generic "
	switch {
	case bool(config.External):
		return "which has to be there"
	case strings.Contains(config.File, "="):
		// kubectl would take it for another separator.
		return create + key.Name + " --from-file=" + quote(key.Key) + "=/dev/stdin <" + quote(config.File)
	case config.File != "":
		return create + key.Name + " --from-file=" + quote(key.Key+"="+config.File)
	case shellVariable.MatchString(config.Environment):
		// The variable may be one of the file .env alone.
		return create + key.Name + " --from-literal=" + quote(key.Key) + `="${` + config.Environment + `?}"`
	default:
		return fmt.Sprintf("make it with the value of the variable %q", config.Environment)
	}
}

// from adds what is in an object, once.
func (c *converter) from(from v1alpha1.ConfigFrom) {
	if !slices.ContainsFunc(c.svc.Spec.ConfigsFrom, func(o v1alpha1.ConfigFrom) bool { return o.Name == from.Name }) {
		c.svc.Spec.ConfigsFrom = append(c.svc.Spec.ConfigsFrom, from)
	}
}

// contentOf returns the content of a config.
func (c *converter) contentOf(config types.FileObjectConfig) (string, error) {
	switch value, set := c.project.Environment[config.Environment]; {
	case config.File != "":
		content, err := os.ReadFile(config.File)
		return string(content), err
	case config.Environment == "":
		return config.Content, nil
	case !set:
		return "", fmt.Errorf("the variable %s is not set", config.Environment)
	default:
		return value, nil
	}
}

// mountFile makes a file of a config in the container.
func (c *converter) mountFile(part, config string, ref types.FileReferenceConfig, directory string) {
	mount := api.ConfigMount{Config: config, Path: cmp.Or(ref.Target, ref.Source)}
	if !path.IsAbs(mount.Path) {
		mount.Path = directory + mount.Path
	}
	id := func(name, text string) int64 {
		n, err := strconv.ParseInt(cmp.Or(text, "0"), 10, 32)
		if err != nil {
			c.fail(part+"."+name, "%q is not a number", text)
		}
		return n
	}
	mount.UID, mount.GID = id("uid", ref.UID), id("gid", ref.GID)
	if ref.Mode != nil {
		mount.Mode = int32(min(*ref.Mode, math.MaxInt32)) //nolint:gosec // Validate knows what a mode is
		if mount.Mode == 0 {
			c.lacks(part + ".mode")
		}
	}
	c.svc.Spec.Container.ConfigMounts = append(c.svc.Spec.Container.ConfigMounts, mount)
}
