// Package v1beta1 holds those parts of Sveltos' API that the state manager reads and writes: Profile, ClusterProfile and
// ClusterSummary of config.projectsveltos.io, and SveltosCluster of lib.projectsveltos.io. Fields that are not here are neither read
// nor changed.
//
// +kubebuilder:object:generate=true
package v1beta1
