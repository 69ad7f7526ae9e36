package machines

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statusresource"
)

// maxPlan is how many lines of a plan are in a status.
const maxPlan = 200

// report writes into the status of a service that is only planned for what would be done. Writing the status is not counted.
func (f *serviceFramework) report(ctx context.Context, obj any, p *plan.Plan) error {
	svc := obj.(*v1alpha1.MachineService)
	planned := svc.DeepCopy()
	status := &planned.Status
	var changes []plan.Change
	var notes []string
	for _, r := range p.Resources {
		if r.Name != statusresource.DefaultName {
			changes, notes = append(changes, r.Changes...), append(notes, r.Notes...)
		}
	}
	counts := (&plan.Plan{Resources: []plan.Resource{{Changes: changes}}}).Counts()
	condition := metav1.Condition{
		Type: ConditionPlanned, Status: metav1.ConditionFalse, Reason: ReasonNothingPlanned, Message: "there is nothing to do", ObservedGeneration: svc.Generation,
	}
	if counts.Any() {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, ReasonChangesPlanned, counts.String()
	}
	lines, err := linesOf(changes, notes)
	if err != nil {
		return err
	}
	changed := meta.SetStatusCondition(&status.Conditions, condition)
	if !changed && slices.Equal(lines, status.Plan) {
		return nil
	}
	status.Plan = lines
	return statuses.Write(ctx, f.d.Client, svc, planned)
}

// linesOf returns changes and notes as lines for people.
func linesOf(changes []plan.Change, notes []string) ([]string, error) {
	var text bytes.Buffer
	if err := plan.WriteChangesText(&text, changes, plan.TextOptions{}); err != nil {
		return nil, err
	}
	var lines []string
	for line := range strings.Lines(text.String()) {
		lines = append(lines, strings.TrimPrefix(strings.TrimRight(line, "\n"), "    "))
	}
	for _, note := range notes {
		lines = append(lines, "· "+note)
	}
	if len(lines) > maxPlan {
		lines = append(lines[:maxPlan-1], "…")
	}
	return lines, nil
}
