package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Labels of ClusterSummaries: the profile that one is made for, and the cluster.
const (
	ProfileLabel        = "projectsveltos.io/profile-name"
	ClusterProfileLabel = "projectsveltos.io/cluster-profile-name"
	ClusterNameLabel    = "projectsveltos.io/cluster-name"
	ClusterTypeLabel    = "projectsveltos.io/cluster-type"
)

// ClusterSummary is what Sveltos does for a profile on one cluster. Sveltos makes it, in the namespace of the cluster.
//
// +kubebuilder:object:root=true
type ClusterSummary struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterSummarySpec   `json:"spec,omitempty"`
	Status ClusterSummaryStatus `json:"status,omitempty"`
}

// ClusterSummaryList is a list of ClusterSummaries.
//
// +kubebuilder:object:root=true
type ClusterSummaryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterSummary `json:"items"`
}

// ClusterSummarySpec has a copy of the profile's spec.
type ClusterSummarySpec struct {
	ClusterNamespace   string `json:"clusterNamespace"`
	ClusterName        string `json:"clusterName"`
	ClusterType        string `json:"clusterType"`
	ClusterProfileSpec Spec   `json:"clusterProfileSpec,omitempty"`
}

// ClusterSummaryStatus is how far Sveltos is.
type ClusterSummaryStatus struct {
	// FailureMessage says why nothing is done at all.
	FailureMessage *string `json:"failureMessage,omitempty"`
	// Dependencies says which other profiles are waited for.
	Dependencies            *string              `json:"dependencies,omitempty"`
	FeatureSummaries        []FeatureSummary     `json:"featureSummaries,omitempty"`
	HelmReleaseSummaries    []HelmReleaseSummary `json:"helmReleaseSummaries,omitempty"`
	ReconciliationSuspended bool                 `json:"reconciliationSuspended,omitempty"`
	SuspensionReason        *string              `json:"suspensionReason,omitempty"`
}

// FeatureID is a part of a profile.
type FeatureID string

// The features.
const (
	FeatureHelm      FeatureID = "Helm"
	FeatureKustomize FeatureID = "Kustomize"
	FeatureResources FeatureID = "Resources"
)

// FeatureStatus is how far a feature is.
type FeatureStatus string

// The states of a feature.
const (
	FeatureProvisioning       FeatureStatus = "Provisioning"
	FeatureProvisioned        FeatureStatus = "Provisioned"
	FeatureFailed             FeatureStatus = "Failed"
	FeatureFailedNonRetriable FeatureStatus = "FailedNonRetriable"
	FeatureRemoving           FeatureStatus = "Removing"
	FeatureAgentRemoving      FeatureStatus = "AgentRemoving"
	FeatureRemoved            FeatureStatus = "Removed"
)

// FeatureSummary is how far a part of a profile is. Hash stands for the configuration that it is about.
type FeatureSummary struct {
	FeatureID       FeatureID     `json:"featureID"`
	Status          FeatureStatus `json:"status,omitempty"`
	Hash            []byte        `json:"hash,omitempty"`
	FailureMessage  *string       `json:"failureMessage,omitempty"`
	LastAppliedTime *metav1.Time  `json:"lastAppliedTime,omitempty"`
}

// ReleaseStatus tells whether Sveltos takes care of a release.
type ReleaseStatus string

// The states of a release.
const (
	ReleaseManaging ReleaseStatus = "Managing"
	ReleaseConflict ReleaseStatus = "Conflict"
)

// HelmReleaseSummary is how a release is.
type HelmReleaseSummary struct {
	ReleaseName      string        `json:"releaseName"`
	ReleaseNamespace string        `json:"releaseNamespace"`
	Status           ReleaseStatus `json:"status"`
	ConflictMessage  string        `json:"conflictMessage,omitempty"`
	FailureMessage   *string       `json:"failureMessage,omitempty"`
	ChartVersion     string        `json:"chartVersion,omitempty"`
	// ValuesHash stands for the values with which it was deployed last.
	ValuesHash []byte `json:"valuesHash,omitempty"`
}
