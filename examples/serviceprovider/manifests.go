package postgres

import (
	"embed"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/examples/internal/manifests"
)

// The files of Manifests.
const (
	// ProviderConfig configures the provider: for the platform cluster.
	ProviderConfig = "config.yaml"
	// Clusters lists clusters: for the platform cluster.
	Clusters = "clusters.yaml"
	// PlatformPermissions are those of the provider in the platform cluster.
	PlatformPermissions = "permissions/platform.yaml"
	// OnboardingPermissions are those of the provider in the onboarding cluster.
	OnboardingPermissions = "permissions/onboarding.yaml"
	// Users are two users of the onboarding cluster.
	Users = "permissions/users.yaml"
)

//go:embed *.yaml permissions/*.yaml
var files embed.FS

// Manifests returns the objects of a file.
func Manifests(file string) ([]client.Object, error) {
	data, err := files.ReadFile(file)
	if err != nil {
		return nil, err
	}
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	return manifests.Decode(scheme, file, data)
}
