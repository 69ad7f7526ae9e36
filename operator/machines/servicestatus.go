package machines

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/context/requeuecontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/deployment"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/scheduler"
	"github.com/operatorkit/operatorkit/resource/deploymentresource"
)

// Reasons of the events on MachineServices.
const (
	// EventDeployed says that a service is as its spec says, and works.
	EventDeployed = "Deployed"
	// EventCompleted says that a job has ended with 0.
	EventCompleted = "Completed"
	// EventGivenUp says that a version failed, and is not tried again.
	EventGivenUp = "GivenUp"
)

// setStatus makes the status of a service, as it is before anything is carried out. See follow for what comes then.
func (f *serviceFramework) setStatus(ctx context.Context, svc *v1alpha1.MachineService) error {
	state, err := f.memo.Get(ctx)
	if err != nil || svc.DeletionTimestamp != nil && len(state.work.Left) == 0 {
		return err
	}
	if f.claims.Refusal(svc) != nil {
		return nil
	}
	status := &svc.Status
	status.ObservedGeneration = svc.Generation
	// While the version can't be worked out, nobody knows whether it is the one that was given up: that stays for when it can.
	if state.err == nil || status.GivenUp != nil && status.GivenUp.Generation != svc.Generation {
		status.GivenUp = state.givenUp
	}
	status.Conditions = f.planned.Keep(svc, status.Conditions)
	if statuses.Find(status.Conditions, ConditionPlanned).Type == "" {
		status.Plan = nil
	}
	if state.work != nil {
		f.count(svc, status, state.work)
		unseen := func(on v1alpha1.MachineContainers) bool { return on.State == api.MachineUnknown }
		if !slices.ContainsFunc(status.Machines, unseen) {
			f.doubts.end(state.key)
		}
	}
	v := verdictOf(svc, status, state)
	if v.ready {
		if svc.Spec.Mode == api.ServiceModeJob && !completed(svc, state.version) {
			// Its container may go from a machine that is drained once this is written.
			requeuecontext.SetAfter(ctx, recordPause)
		}
		status.Deployed = &state.version
	}
	status.Conditions = statuses.SetConditions(status.Conditions, v.conditions(svc.Generation))
	return nil
}

// count says what there is of the service.
func (f *serviceFramework) count(svc *v1alpha1.MachineService, status *v1alpha1.MachineServiceStatus, work *deploymentresource.Work) {
	before := svc.DeepCopy()
	status.Containers, status.Working, status.UpToDate, status.Machines = 0, 0, 0, nil
	var planned []string
	if work.Hold == "" && !f.d.PlanOnly {
		planned = work.Plan.Machines()
	}
	for _, m := range slices.SortedFunc(slices.Values(work.State.Machines), func(a, b *scheduler.Machine) int { return cmp.Compare(a.Name, b.Name) }) {
		inventory := &m.Inventory
		if m.Unknown() && m.LastSeen != nil {
			inventory = m.LastSeen
		}
		on := v1alpha1.MachineContainers{Name: m.Name, State: api.MachineAvailable}
		if m.Unknown() {
			on.State = api.MachineUnknown
		}
		for i := range inventory.Containers {
			c := &inventory.Containers[i]
			if !work.State.Owns(svc.Name, c) || c.Hook && !c.Failed() {
				continue
			}
			is := v1alpha1.ContainerStatus{
				Name: c.Name, State: c.State, Health: c.Health, Image: c.Spec.Container.Image, Ports: c.Ports, Failed: c.Failed(),
				ExitCode: int32(c.ExitCode), //nolint:gosec // engines have 8 or 32 bits of it
				UpToDate: svc.DeletionTimestamp == nil && !c.Failed() && deployment.EvalContainerSpecChange(c.Spec, work.Spec) == deployment.ContainerUpToDate,
			}
			if is.State == "" {
				// Only that it was there is known of the machine; what it did then is what was said then.
				is = said(before, m.Name, c.Name)
			}
			on.Containers = append(on.Containers, is)
			if !m.Available() || c.Failed() {
				continue
			}
			status.Containers++
			if c.Ready() {
				status.Working++
			}
			if c.Ready() && is.UpToDate {
				status.UpToDate++
			}
		}
		// What is planned is written before it is done. What was planned for a machine that can't be seen may have been done.
		on.Planned = slices.Contains(planned, m.ID)
		if was := statusOn(before, m.Name); was != nil && m.Unknown() {
			on.Planned = on.Planned || was.Planned
		}
		if len(on.Containers) > 0 || on.Planned || m.Blind() && !m.Untouched {
			slices.SortFunc(on.Containers, func(a, b v1alpha1.ContainerStatus) int { return cmp.Compare(a.Name, b.Name) })
			status.Machines = append(status.Machines, on)
		}
	}
}

// said is what the status says of a container on a machine that can't be seen.
func said(svc *v1alpha1.MachineService, machine, container string) v1alpha1.ContainerStatus {
	if on := statusOn(svc, machine); on != nil {
		if i := slices.IndexFunc(on.Containers, func(c v1alpha1.ContainerStatus) bool { return c.Name == container }); i >= 0 {
			return on.Containers[i]
		}
	}
	return v1alpha1.ContainerStatus{Name: container}
}

// verdictOf says how a service is, all in all.
func verdictOf(svc *v1alpha1.MachineService, status *v1alpha1.MachineServiceStatus, state *serviceState) verdict {
	if svc.DeletionTimestamp != nil {
		message := "its containers are being removed: " + strings.Join(state.work.Left, "; ")
		if state.progress != "" {
			message = "its containers are being removed: " + state.progress
		}
		return verdict{progressing: true, reason: ReasonDeleting, message: withFailure(message, state)}
	}
	if state.err != nil {
		reason, blocked := reasonOf(state.err)
		return verdict{reason: reason, blocked: blocked, progressing: !blocked, message: state.err.Error()}
	}
	work := state.work
	switch {
	case work.Plan.Completed:
		return verdict{ready: true, reason: ReasonCompleted, message: withNote("the job has completed", state.note)}
	case work.Plan.Empty() && len(work.Plan.Over) > 0:
		message := strings.Join(slices.Concat(work.Plan.Over, work.Plan.Notes), "; ")
		return verdict{blocked: true, reason: ReasonFailed, message: message + "; to run it again, change the annotation " + v1alpha1.RecreateAnnotation}
	case work.Plan.Empty() && len(work.Plan.Notes) > 0:
		return verdictOfNotes(work)
	case work.Plan.Empty():
		return verdict{
			ready: true, reason: ReasonDeployed, message: withNote(fmt.Sprintf("all %d containers work", status.UpToDate), state.note), stuck: strings.Join(work.Plan.Undrained, "; "),
		}
	case state.givenUp != nil:
		return verdict{blocked: true, reason: state.givenUp.Reason, message: state.givenUp.Message}
	case state.waits != "":
		return verdict{progressing: true, reason: ReasonWaiting, message: state.waits}
	}
	head, _, _ := strings.Cut(work.Plan.Format(nil), "\n")
	_, head, _ = strings.Cut(head, ", ")
	head = cmp.Or(state.progress, head)
	v := verdict{progressing: true, reason: ReasonDeploying, message: strings.Join(slices.Concat([]string{head}, work.Plan.Notes, work.Plan.Undrained), "; ")}
	if state.failure != "" {
		v.reason, v.message = ReasonRetrying, withFailure(v.message, state)
	}
	return v
}

// verdictOfNotes is for plans that leave something undone, and have nothing to do.
func verdictOfNotes(work *deploymentresource.Work) verdict {
	v := verdict{reason: ReasonMachineUnknown, message: strings.Join(slices.Concat(work.Plan.Notes, work.Plan.Undrained), "; ")}
	if !slices.ContainsFunc(work.State.Machines, (*scheduler.Machine).Unknown) {
		// It waits for a machine that has place, not for one to be seen again.
		v.blocked, v.reason = true, ReasonUnschedulable
	}
	return v
}

func withNote(message, note string) string {
	if note == "" {
		return message
	}
	return message + "; " + note
}

// withFailure adds why the last try failed.
func withFailure(message string, state *serviceState) string {
	if state.failure == "" {
		return message
	}
	return message + "; the last try failed: " + state.failure
}

// tell writes events on what has changed between two statuses.
func (f *serviceFramework) tell(ctx context.Context, old, now *v1alpha1.MachineService) {
	before, after := &old.Status, &now.Status
	record := func(kind, reason, message string) {
		framework.Recorder(ctx, f.d.Recorder).Event(now, kind, reason, message)
	}
	was, is := statuses.Find(before.Conditions, ConditionReady), statuses.Find(after.Conditions, ConditionReady)
	if is.Status == metav1.ConditionTrue && was.Status != is.Status {
		record(corev1.EventTypeNormal, is.Reason, is.Message)
	}
	if after.GivenUp != nil && (before.GivenUp == nil || *before.GivenUp != *after.GivenUp) {
		record(corev1.EventTypeWarning, EventGivenUp, after.GivenUp.Reason+": "+after.GivenUp.Message)
	}
}
