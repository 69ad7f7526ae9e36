// Package v1alpha1 holds the API of the quickstart example: a Website.
//
// +kubebuilder:object:generate=true
// +groupName=examples.operatorkit.io
package v1alpha1
