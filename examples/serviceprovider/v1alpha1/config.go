package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PostgresConfig is the configuration of the provider.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="Pull Secret",type=string,JSONPath=`.spec.pullSecret`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PostgresConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PostgresConfigSpec `json:"spec"`
}

// PostgresConfigSpec is what the owner of the provider decides.
type PostgresConfigSpec struct {
	// Images are the images of the versions that are offered.
	//
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Images []Image `json:"images"`
	// PullSecret is the name of a Secret of the type kubernetes.io/dockerconfigjson, in the provider's namespace of the platform
	// cluster, with which the images are pulled.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	PullSecret string `json:"pullSecret"`
	// Poll is how often databases are looked at although nothing has changed, to mend what others did to them.
	//
	// +optional
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="choose 1s or more"
	Poll metav1.Duration `json:"poll,omitempty"`
}

// Image is the image of a version.
type Image struct {
	// Version is the major version, as in the spec of a Postgres.
	//
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]*$`
	Version string `json:"version"`
	// Image is where it comes from.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image"`
}

// PollInterval implements serviceprovider.Config.
func (c *PostgresConfig) PollInterval() time.Duration { return c.Spec.Poll.Duration }

// ImageOf returns the image of a version, and false for one that is not offered.
func (c *PostgresConfig) ImageOf(version string) (string, bool) {
	for _, i := range c.Spec.Images {
		if i.Version == version {
			return i.Image, true
		}
	}
	return "", false
}

// PostgresConfigList is a list of PostgresConfigs.
//
// +kubebuilder:object:root=true
type PostgresConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []PostgresConfig `json:"items"`
}
