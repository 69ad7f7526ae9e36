package api

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// volumeName is what engines take.
var volumeName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]+$`)

func (s *ServiceSpec) validateVolumes() field.ErrorList {
	var errs field.ErrorList
	p := field.NewPath("volumes")
	names := make([]string, len(s.Volumes))
	for i := range s.Volumes {
		v := &s.Volumes[i]
		names[i] = v.Name
		if slices.Contains(names[:i], v.Name) {
			errs = append(errs, field.Duplicate(p.Index(i).Child("name"), v.Name))
		}
		errs = append(errs, v.validate(p.Index(i))...)
	}
	for i, m := range s.Container.VolumeMounts {
		at := field.NewPath("container", "volumeMounts").Index(i)
		if !slices.Contains(names, m.Volume) {
			errs = append(errs, field.NotFound(at.Child("volume"), m.Volume))
		}
		errs = append(errs, absolute(at.Child("path"), m.Path)...)
		j := slices.Index(names, m.Volume)
		if m.NoCopy && j >= 0 && s.Volumes[j].Type != VolumeTypeVolume && s.Volumes[j].Type != "" {
			errs = append(errs, field.Forbidden(at.Child("noCopy"), "only with type "+string(VolumeTypeVolume)))
		}
		if m.SubPath == "" {
			continue
		}
		// On machines the separator is a slash, whatever it is here.
		if path.IsAbs(m.SubPath) || slices.Contains(strings.Split(m.SubPath, "/"), "..") {
			errs = append(errs, field.Invalid(at.Child("subPath"), m.SubPath, "must be a folder within the volume: relative, and without .."))
		}
		if j >= 0 && s.Volumes[j].Type == VolumeTypeTmpfs {
			errs = append(errs, field.Forbidden(at.Child("subPath"), "memory has no folders"))
		}
	}
	return errs
}

func (v *VolumeSpec) validate(p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if v.Name == "" {
		errs = append(errs, field.Required(p.Child("name"), ""))
	}
	errs = append(errs, oneOf(p.Child("type"), v.Type, VolumeTypeVolume, VolumeTypeBind, VolumeTypeTmpfs)...)
	only := func(set bool, child string, t VolumeType) {
		is := v.Type == t || v.Type == "" && t == VolumeTypeVolume
		if set && !is {
			errs = append(errs, field.Forbidden(p.Child(child), "only with type "+string(t)))
		}
	}
	only(v.External, "external", VolumeTypeVolume)
	only(v.Driver != nil, "driver", VolumeTypeVolume)
	only(len(v.Labels) > 0, "labels", VolumeTypeVolume)
	only(v.HostPath != "", "hostPath", VolumeTypeBind)
	only(v.CreateHostPath, "createHostPath", VolumeTypeBind)
	only(v.Propagation != "", "propagation", VolumeTypeBind)
	only(v.Size != nil, "size", VolumeTypeTmpfs)
	errs = append(errs, oneOf(p.Child("propagation"), v.Propagation, PropagationPrivate, PropagationRPrivate,
		PropagationShared, PropagationRShared, PropagationSlave, PropagationRSlave)...)
	switch v.Type {
	case VolumeTypeVolume, "":
		if v.Name != "" && !volumeName.MatchString(v.Name) {
			errs = append(errs, field.Invalid(p.Child("name"), v.Name, "must match "+volumeName.String()))
		}
		if v.External && (v.Driver != nil && len(v.Driver.Options) > 0 || len(v.Labels) > 0) {
			errs = append(errs, field.Forbidden(p.Child("external"), "together with labels and driver options, which are for creating it"))
		}
	case VolumeTypeBind:
		errs = append(errs, absolute(p.Child("hostPath"), v.HostPath)...)
	case VolumeTypeTmpfs:
		errs = append(errs, positiveQuantity(p.Child("size"), v.Size, 0)...)
	}
	return errs
}
