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
func (r *objects[O]) claimOn(u *unstructured.Unstructured) keyed.Claim {
	own := r.markOn(u)
	known := own >= 0
	controller := metav1.GetControllerOf(u)
	primary := controller != nil && r.owner.isController(controller, u.GetNamespace())
	switch {
	case !known && marked(u):
		return keyed.ForeignClaim(r.whose(u))
	case controller != nil && !primary:
		return keyed.ForeignClaim(fmt.Sprintf("it is controlled by %s %s", controller.Kind, controller.Name))
	case !known && primary:
		return keyed.FreeClaim("it exists already, and although its controller is the primary, it is of no resource")
	case !known:
		return keyed.FreeClaim("it exists already and has no owner")
	}
	if place, ok := appliedTo(u.GetAnnotations()); ok && place != keyOf(u.GroupVersionKind(), u).place() {
		return keyed.FreeClaim(fmt.Sprintf("it is a copy of %s", place))
	}
	return keyed.ClaimOf(r.marks, own)
}

// markOn returns which of the resource's marks for the primary an object has, or -1: by the label, or where somebody took that off, by
// the annotations, which say the same.
func (r *objects[O]) markOn(u *unstructured.Unstructured) int {
	label, annotations := u.GetLabels()[OwnerLabel], u.GetAnnotations()
	if label == "" && annotations[OwnerAnnotation] == r.owner.String() {
		label = r.label(markIn(annotations))
	}
	return slices.IndexFunc(r.marks, func(m identity.Mark) bool { return r.label(m) == label })
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
func (r *objects[O]) whose(u *unstructured.Unstructured) string {
	label, annotations := u.GetLabels()[OwnerLabel], u.GetAnnotations()
	mark, primary := markIn(annotations), annotations[OwnerAnnotation]
	told := fmt.Sprintf("it is of %s, for %s", mark, primary)
	switch {
	case label != "" && !strings.HasPrefix(label, identity.Form+"-"):
		return fmt.Sprintf("its mark %q has a form that this version does not know; its annotations say: %s", label, told)
	case label != "" && label != mark.Hash(primary):
		return fmt.Sprintf("its mark %q is another's, and its annotations don't say whose", label)
	case primary == r.owner.String() && mark.Operator == r.marks[0].Operator && mark.Framework == r.marks[0].Framework:
		return told + fmt.Sprintf("; with %q among its FormerNames, the resource would take it over", mark.Resource)
	}
	return told
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
type RefusedError = keyed.RefusedError[Key]
