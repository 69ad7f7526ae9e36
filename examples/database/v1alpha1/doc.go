// Package v1alpha1 holds the API of the database example: a Database.
//
// +kubebuilder:object:generate=true
// +groupName=databases.operatorkit.io
package v1alpha1
