// Package v1alpha1 holds the API of the service provider example: a Postgres, which users order in the onboarding cluster, and
// the PostgresConfig, by which the owner of the provider configures it in the platform cluster.
//
// +kubebuilder:object:generate=true
// +groupName=databases.examples.operatorkit.io
package v1alpha1
