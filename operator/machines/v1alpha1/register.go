package v1alpha1

import (
	"embed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the API.
var GroupVersion = schema.GroupVersion{Group: "deployment.operatorkit.io", Version: "v1alpha1"}

// The kinds of the API.
const (
	MachineKind        = "Machine"
	MachineServiceKind = "MachineService"
)

// AddToScheme registers the types of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Machine{}, &MachineList{}, &MachineService{}, &MachineServiceList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// CRDs holds the custom resource definitions that are generated from the types of this package.
//
//go:embed crd/*.yaml
var CRDs embed.FS
