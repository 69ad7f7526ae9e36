package statuses

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statusresource"
)

// Planned tells which objects are only planned for.
type Planned struct {
	// All says that all are.
	All bool
}

// Keep takes the condition Planned away from objects that are not only planned for any more.
func (p Planned) Keep(obj client.Object, conditions []metav1.Condition) []metav1.Condition {
	if !p.All && obj.GetAnnotations()[framework.PlanAnnotation] != "true" {
		meta.RemoveStatusCondition(&conditions, v1alpha1.ConditionPlanned)
	}
	return conditions
}

// NewPlanReporter returns a reporter that says in the condition Planned what would be done. Writing the status is not counted.
func NewPlanReporter[O client.Object](c client.Client, conditions func(O) *[]metav1.Condition) framework.PlanReporter {
	return func(ctx context.Context, obj any, p *plan.Plan) error {
		o := obj.(O)
		changed := o.DeepCopyObject().(O)
		if !meta.SetStatusCondition(conditions(changed), plannedCondition(p, o.GetGeneration())) {
			return nil
		}
		return Write(ctx, c, o, changed)
	}
}

func plannedCondition(p *plan.Plan, generation int64) metav1.Condition {
	rest := *p
	rest.Resources = nil
	for _, r := range p.Resources {
		if r.Name != statusresource.DefaultName {
			rest.Resources = append(rest.Resources, r)
		}
	}
	c := metav1.Condition{
		Type: v1alpha1.ConditionPlanned, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNothingPlanned, ObservedGeneration: generation,
		Message: "there is nothing to do",
	}
	if counts := rest.Counts(); counts.Any() {
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonChangesPlanned
		c.Message = fmt.Sprint(counts)
	}
	return c
}
