package objectresource

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Normalize makes the objects of two runs of one scenario comparable, which differ in OwnerLabel: its value is made of the
// primary's namespace, too. It is for the field of this name in operatortest.Scenario.
func Normalize(u *unstructured.Unstructured) {
	labels := u.GetLabels()
	if _, ok := labels[OwnerLabel]; !ok {
		return
	}
	labels[OwnerLabel] = "primary"
	u.SetLabels(labels)
}
