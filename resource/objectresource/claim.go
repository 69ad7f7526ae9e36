package objectresource

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// claim is whose an object is.
type claim uint8

const (
	// ours was applied by this resource for this primary.
	ours claim = iota
	// free belongs to nobody who left a mark. It can be adopted.
	free
	// foreign belongs to somebody else. It is never touched.
	foreign
)

// claimOn tells whose the object is, and the reason when it is not ours.
func claimOn(u *unstructured.Unstructured, owner Owner, resource string) (claim, string) {
	controller := metav1.GetControllerOf(u)
	if controller != nil && !owner.isController(controller, u.GetNamespace()) {
		return foreign, fmt.Sprintf("it is controlled by %s %s", controller.Kind, controller.Name)
	}
	annotations := u.GetAnnotations()
	label := u.GetLabels()[OwnerLabel]
	switch {
	case label == owner.label(resource):
		if place, ok := appliedTo(annotations); ok && place != keyOf(u.GroupVersionKind(), u).place() {
			return free, fmt.Sprintf("it is a copy of %s", place)
		}
		return ours, ""
	case label != "":
		return foreign, fmt.Sprintf("it belongs to %q by the resource %q", annotations[OwnerAnnotation], annotations[ResourceAnnotation])
	case controller == nil:
		return free, "it exists already and has no owner"
	}
	if by := annotations[ResourceAnnotation]; by != "" && by != resource {
		return foreign, fmt.Sprintf("it belongs to the resource %q of the same primary", by)
	}
	return ours, ""
}

// appliedTo returns the namespace and name of the object that AppliedAnnotation was made for.
func appliedTo(annotations map[string]string) (place string, ok bool) {
	applied := annotations[AppliedAnnotation]
	i := strings.LastIndexByte(applied, '#')
	if i < 0 {
		return "", false
	}
	return applied[:i], true
}

// RefusedError says that an object is desired that exists and is not the resource's own.
type RefusedError struct {
	// Object is what should have been created or updated.
	Object Key
	// Reason says whose it is.
	Reason string
	// Adoptable is true when Config.Adopt would have allowed it.
	Adoptable bool
}

// Error implements error.
func (e *RefusedError) Error() string {
	mend := "delete it or choose another name"
	if e.Adoptable {
		mend += ", or set Adopt to take it over"
	}
	return fmt.Sprintf("refusing to take over %s: %s: %s", e.Object, e.Reason, mend)
}
