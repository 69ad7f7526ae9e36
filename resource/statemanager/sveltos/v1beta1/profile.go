package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PausedAnnotation makes Sveltos leave a profile and its clusters as they are while it is "true".
const PausedAnnotation = "profile.projectsveltos.io/paused"

// Profile says what Sveltos deploys on clusters of its namespace.
//
// +kubebuilder:object:root=true
type Profile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec Spec `json:"spec,omitempty"`
}

// ProfileList is a list of Profiles.
//
// +kubebuilder:object:root=true
type ProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Profile `json:"items"`
}

// ClusterProfile says what Sveltos deploys on clusters of any namespace.
//
// +kubebuilder:object:root=true
type ClusterProfile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec Spec `json:"spec,omitempty"`
}

// ClusterProfileList is a list of ClusterProfiles.
//
// +kubebuilder:object:root=true
type ClusterProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterProfile `json:"items"`
}

// Spec is what both kinds of profiles say.
type Spec struct {
	// ClusterRefs are the clusters: of kind SveltosCluster, or Cluster of Cluster API.
	ClusterRefs []corev1.ObjectReference `json:"clusterRefs,omitempty"`
	// SyncMode has the same values, and the same meanings, as that of a ServiceSpec.
	SyncMode string `json:"syncMode,omitempty"`
	// Tier decides between profiles that want the same thing on a cluster: the lower one wins. It is at least 1.
	Tier int32 `json:"tier,omitempty"`
	// ContinueOnConflict goes on behind what another profile has.
	ContinueOnConflict bool `json:"continueOnConflict,omitempty"`
	// ContinueOnError goes on behind what failed.
	ContinueOnError bool `json:"continueOnError,omitempty"`
	// Reloader restarts workloads whose ConfigMaps or Secrets change.
	Reloader bool `json:"reloader,omitempty"`
	// StopMatchingBehavior is what happens when the profile goes: WithdrawPolicies or LeavePolicies.
	StopMatchingBehavior string `json:"stopMatchingBehavior,omitempty"`
	// HelmCharts, PolicyRefs and KustomizationRefs are what is deployed.
	HelmCharts        []HelmChart        `json:"helmCharts,omitempty"`
	PolicyRefs        []PolicyRef        `json:"policyRefs,omitempty"`
	KustomizationRefs []KustomizationRef `json:"kustomizationRefs,omitempty"`
}

// HelmChart is a release.
type HelmChart struct {
	RepositoryURL             string                     `json:"repositoryURL"`
	RepositoryName            string                     `json:"repositoryName,omitempty"`
	ChartName                 string                     `json:"chartName,omitempty"`
	ChartVersion              string                     `json:"chartVersion,omitempty"`
	ReleaseName               string                     `json:"releaseName"`
	ReleaseNamespace          string                     `json:"releaseNamespace"`
	HelmChartAction           string                     `json:"helmChartAction,omitempty"`
	Values                    string                     `json:"values,omitempty"`
	ValuesFrom                []ValueFrom                `json:"valuesFrom,omitempty"`
	Options                   *HelmOptions               `json:"options,omitempty"`
	RegistryCredentialsConfig *RegistryCredentialsConfig `json:"registryCredentialsConfig,omitempty"`
}

// HelmOptions are the options of a release.
type HelmOptions struct {
	Wait                     *bool               `json:"wait,omitempty"`
	WaitForJobs              *bool               `json:"waitForJobs,omitempty"`
	Timeout                  *metav1.Duration    `json:"timeout,omitempty"`
	Atomic                   *bool               `json:"atomic,omitempty"`
	SkipCRDs                 *bool               `json:"skipCRDs,omitempty"`
	DisableHooks             *bool               `json:"disableHooks,omitempty"`
	DisableOpenAPIValidation *bool               `json:"disableOpenAPIValidation,omitempty"`
	SkipSchemaValidation     *bool               `json:"skipSchemaValidation,omitempty"`
	DependencyUpdate         *bool               `json:"dependencyUpdate,omitempty"`
	Labels                   map[string]string   `json:"labels,omitempty"`
	Description              string              `json:"description,omitempty"`
	InstallOptions           *HelmInstallOptions `json:"installOptions,omitempty"`
}

// HelmInstallOptions are the options of an installation.
type HelmInstallOptions struct {
	CreateNamespace *bool `json:"createNamespace,omitempty"`
	DisableHooks    *bool `json:"disableHooks,omitempty"`
	Replace         *bool `json:"replace,omitempty"`
}

// RegistryCredentialsConfig is how a repository is talked to.
type RegistryCredentialsConfig struct {
	Credentials *corev1.SecretReference `json:"credentials,omitempty"`
	PlainHTTP   bool                    `json:"plainHTTP,omitempty"`
}

// ValueFrom names a ConfigMap or a Secret, all entries of which are values.
type ValueFrom struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	// Optional leaves out what does not exist.
	Optional bool `json:"optional,omitempty"`
}

// PolicyRef is a source of manifests.
type PolicyRef struct {
	Kind           string     `json:"kind,omitempty"`
	Name           string     `json:"name,omitempty"`
	Namespace      string     `json:"namespace,omitempty"`
	Path           string     `json:"path,omitempty"`
	RemoteURL      *RemoteURL `json:"remoteURL,omitempty"`
	DeploymentType string     `json:"deploymentType,omitempty"`
}

// KustomizationRef is a source of a kustomization.
type KustomizationRef struct {
	Kind            string            `json:"kind,omitempty"`
	Name            string            `json:"name,omitempty"`
	Namespace       string            `json:"namespace,omitempty"`
	Path            string            `json:"path,omitempty"`
	RemoteURL       *RemoteURL        `json:"remoteURL,omitempty"`
	TargetNamespace string            `json:"targetNamespace,omitempty"`
	Values          map[string]string `json:"values,omitempty"`
	ValuesFrom      []ValueFrom       `json:"valuesFrom,omitempty"`
	DeploymentType  string            `json:"deploymentType,omitempty"`
}

// RemoteURL is an archive that Sveltos fetches.
type RemoteURL struct {
	URL       string                  `json:"url"`
	SecretRef *corev1.SecretReference `json:"secretRef,omitempty"`
	PlainHTTP bool                    `json:"plainHTTP,omitempty"`
}
