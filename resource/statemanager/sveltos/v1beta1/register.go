package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The groups and versions of the API.
var (
	ConfigGroupVersion = schema.GroupVersion{Group: "config.projectsveltos.io", Version: "v1beta1"}
	LibGroupVersion    = schema.GroupVersion{Group: "lib.projectsveltos.io", Version: "v1beta1"}
)

// The kinds of the API.
const (
	ProfileKind        = "Profile"
	ClusterProfileKind = "ClusterProfile"
	ClusterSummaryKind = "ClusterSummary"
	SveltosClusterKind = "SveltosCluster"
)

// AddToScheme registers the types of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(ConfigGroupVersion,
		&Profile{}, &ProfileList{}, &ClusterProfile{}, &ClusterProfileList{}, &ClusterSummary{}, &ClusterSummaryList{})
	metav1.AddToGroupVersion(scheme, ConfigGroupVersion)
	scheme.AddKnownTypes(LibGroupVersion, &SveltosCluster{}, &SveltosClusterList{})
	metav1.AddToGroupVersion(scheme, LibGroupVersion)
	return nil
}
