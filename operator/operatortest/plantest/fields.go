package plantest

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/operatorkit/operatorkit/framework/plan"
)

// bookkeeping is where resources note what they applied. A plan need not show it beside other changes.
var bookkeeping = "metadata.annotations" + plan.Segment("operatorkit.io/applied")

// compareFields compares the fields of a change with those that did change. More of them may be in places that are filled
// with defaults.
func compareFields(t T, c plan.Change, changed []plan.FieldChange, defaulted []string) {
	t.Helper()
	left := slices.Clone(changed)
	for _, planned := range c.Fields {
		i := slices.IndexFunc(left, func(f plan.FieldChange) bool { return f.Path == planned.Path })
		if i < 0 && filled(planned, left) {
			continue
		}
		if i < 0 {
			t.Errorf("%s of %s: field %s is planned, and did not change", c.Action, c.Object, planned)
			continue
		}
		if !tells(planned, left[i]) {
			t.Errorf("%s of %s: field %s is planned, and this is what happened: %s", c.Action, c.Object, planned, left[i])
		}
		left = slices.Delete(left, i, i+1)
	}
	for _, f := range left {
		if f.Path != bookkeeping && !plan.Below(f.Path, defaulted...) {
			t.Errorf("%s of %s: a field is not in the plan: %s", c.Action, c.Object, f)
		}
	}
}

// filled tells whether an empty object is planned which the API server filled with defaults.
func filled(planned plan.FieldChange, changed []plan.FieldChange) bool {
	empty, ok := planned.New.(map[string]any)
	return ok && len(empty) == 0 && slices.ContainsFunc(changed, func(f plan.FieldChange) bool { return plan.Below(f.Path, planned.Path) })
}

// tells tells whether a planned change of a field is the one that was made. Of a sensitive one it is known only whether there
// are values.
func tells(planned, made plan.FieldChange) bool {
	if planned.Sensitive {
		return planned == made.Hidden()
	}
	return sameValue(planned.Old, made.Old) && sameValue(planned.New, made.New)
}

// sameValue compares values, and knows that the API server writes quantities in its own way when it creates an object.
func sameValue(planned, made any) bool {
	if plan.SameValue(planned, made) {
		return true
	}
	p, ok := planned.(string)
	if !ok {
		return false
	}
	m, ok := made.(string)
	if !ok {
		return false
	}
	x, errX := resource.ParseQuantity(p)
	y, errY := resource.ParseQuantity(m)
	return errX == nil && errY == nil && x.Cmp(y) == 0
}
