package serviceset

import (
	"github.com/Masterminds/semver/v3"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// parseVersion returns a semantic version, nil for what is none. Forms like "v1.2" and "2024.01.15" are taken too.
func parseVersion(text string) *semver.Version {
	v, err := semver.NewVersion(text)
	if err != nil {
		return nil
	}
	return v
}

// equalVersions tells whether two texts mean the same version: v1.2 is 1.2.0, but builds of one version are different
// versions, although none comes before the other. Texts that are no semantic versions are equal if they are the same.
func equalVersions(a, b string) bool {
	if a == b {
		return true
	}
	x, y := parseVersion(a), parseVersion(b)
	return x != nil && y != nil && x.Equal(y) && x.Metadata() == y.Metadata()
}

// equalServiceVersions tells whether a and b are the same template in the same version. A version that is not known is
// that of its template.
func equalServiceVersions(a, b v1alpha1.ServiceVersion) bool {
	if a.Template != b.Template {
		return false
	}
	return a.Version == "" || b.Version == "" || equalVersions(a.Version, b.Version)
}

// templateVersion returns the version that a template stands for.
func templateVersion(t *v1alpha1.ServiceTemplate) string {
	switch {
	case t.Spec.Version != "":
		return t.Spec.Version
	case t.Spec.Helm != nil && t.Spec.Helm.Version != "":
		return t.Spec.Helm.Version
	}
	return t.Name
}
