package objectresource

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/resource/internal/keyed"
)

// claimOn tells whose an object is.
func (o ownership) claimOn(u *unstructured.Unstructured) keyed.Claim {
	own := o.markOn(u)
	known := own >= 0
	controller := metav1.GetControllerOf(u)
	primary := controller != nil && o.owner.isController(controller, u.GetNamespace())
	switch {
	case !known && marked(u):
		return keyed.Claim{Holder: keyed.Foreign, Reason: o.whose(u)}
	case controller != nil && !primary:
		return keyed.Claim{Holder: keyed.Foreign, Reason: fmt.Sprintf("it is controlled by %s %s", controller.Kind, controller.Name)}
	case !known && primary:
		return keyed.Claim{Holder: keyed.Free, Reason: "it exists already, and although its controller is the primary, it is of no resource"}
	case !known:
		return keyed.Claim{Holder: keyed.Free, Reason: "it exists already and has no owner"}
	}
	if place, ok := appliedTo(u.GetAnnotations()); ok && place != keyOf(u.GroupVersionKind(), u).place() {
		return keyed.Claim{Holder: keyed.Free, Reason: fmt.Sprintf("it is a copy of %s", place)}
	}
	return keyed.ClaimOf(o.marks, own)
}

// markOn returns which of the resource's marks for the primary an object has, or -1: by the label, or where somebody took that off, by
// the annotations, which say the same.
func (o ownership) markOn(u *unstructured.Unstructured) int {
	label, annotations := u.GetLabels()[OwnerLabel], u.GetAnnotations()
	if label == "" && annotations[OwnerAnnotation] == o.owner.String() {
		label = o.label(markIn(annotations))
	}
	return slices.IndexFunc(o.marks, func(m identity.Mark) bool { return o.label(m) == label })
}

// markIn returns the mark that annotations tell.
func markIn(annotations map[string]string) identity.Mark {
	return identity.Mark{
		Operator: annotations[OperatorAnnotation], Framework: annotations[FrameworkAnnotation], Resource: annotations[ResourceAnnotation],
	}
}

// marked tells whether an object has a mark of anybody's, or what is left of one.
func marked(u *unstructured.Unstructured) bool {
	annotations := u.GetAnnotations()
	return u.GetLabels()[OwnerLabel] != "" || annotations[OwnerAnnotation] != "" || markIn(annotations) != identity.Mark{}
}

// whose says whose an object is that has somebody else's mark.
func (o ownership) whose(u *unstructured.Unstructured) string {
	label, annotations := u.GetLabels()[OwnerLabel], u.GetAnnotations()
	mark, primary := markIn(annotations), annotations[OwnerAnnotation]
	told := fmt.Sprintf("it is of %s, for %s", mark, primary)
	switch {
	case label != "" && !strings.HasPrefix(label, identity.Form+"-"):
		return fmt.Sprintf("its mark %q has a form that this version does not know; its annotations say: %s", label, told)
	case label != "" && label != mark.Hash(primary):
		return fmt.Sprintf("its mark %q is another's, and its annotations don't say whose", label)
	case primary == o.owner.String() && mark.Operator == o.mark().Operator && mark.Framework == o.mark().Framework:
		return told + fmt.Sprintf("; with %q among its FormerNames, the resource would take it over", mark.Resource)
	}
	return told
}

// claim returns whose an object is that the resource may write; the error says why it may not.
func (r *resource[O]) claim(own ownership, key Key, u *unstructured.Unstructured) (keyed.Claim, error) {
	c := own.claimOn(u)
	if c.Writable(r.config.Adopt) {
		return c, nil
	}
	return c, &RefusedError{Object: key, Reason: c.Reason, Adoptable: c.Holder == keyed.Free}
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
func (e *RefusedError) Error() string { return keyed.Refusal(e.Object, e.Reason, e.Adoptable) }
