package servicesets

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/internal/cut"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// maxForeignConditions is how many conditions of a state manager a service keeps in the status of its cluster: there is room
// for 16, and three are ours.
const maxForeignConditions = 13

// maxStates is how many services there is room for.
const maxStates = 2000

// verdict says how the services of an owner are on a cluster, all together.
func (r *report) verdict() statuses.Verdict {
	v := statuses.Verdict{ReadyWhy: v1alpha1.ReasonDeployed}
	if r.fault != nil {
		v.Block(r.fault.reason, r.fault.message)
	}
	disabled, overridden := 0, 0
	for i := range r.services {
		s := &r.services[i]
		switch {
		case s.reason == v1alpha1.ReasonDisabled:
			disabled++
		case s.reason == v1alpha1.ReasonOverridden:
			overridden++
		case s.blocked && r.fault == nil:
			v.Block(s.reason, s.String())
		case s.progressing:
			v.Progress(s.reason, s.String())
		case s.reason == v1alpha1.ReasonWaiting, s.reason == v1alpha1.ReasonRemoving:
			v.Waiting = append(v.Waiting, s.String())
		}
	}
	desired, deployed := r.counts()
	v.Ready = desired == deployed && r.fault == nil
	switch {
	case r.trouble != nil:
		v.Block(r.trouble.reason, r.trouble.message)
	case r.unsure != nil && v.Ready && desired > 0:
		v.Ready = false
		v.Progress(v1alpha1.ReasonSetNotReady, fmt.Sprintf("ServiceSet %s is not ready: %s", r.key.Name, r.unsure.Message))
	}
	v.AllWell = allWell(int(desired), disabled, overridden)
	return v
}

// allWell says that all services are as they should be.
func allWell(desired, disabled, overridden int) string {
	text := "no services are desired"
	switch {
	case desired == 1:
		text = "the service is deployed"
	case desired > 1:
		text = fmt.Sprintf("all %d services are deployed", desired)
	}
	switch {
	case disabled == 1:
		text += ", and a disabled one is left as it is"
	case disabled > 1:
		text += fmt.Sprintf(", and %d disabled ones are left as they are", disabled)
	}
	switch {
	case overridden == 1:
		text += ", and one is overridden by another owner"
	case overridden > 1:
		text += fmt.Sprintf(", and %d are overridden by other owners", overridden)
	}
	return text
}

// counts returns how many services are desired, and how many of them run in the desired version.
func (r *report) counts() (desired, deployed int32) {
	for i := range r.services {
		if !r.services[i].desired {
			continue
		}
		desired++
		if r.services[i].ready {
			deployed++
		}
	}
	return desired, deployed
}

// summary sums the report up for the status of the cluster.
func (r *report) summary(generation int64) v1alpha1.ServiceSetSummary {
	v := r.verdict()
	s := v1alpha1.ServiceSetSummary{
		Name: r.key.Name, ObservedGeneration: generation, Progressing: v.Progressing, Blocked: v.Blocked, Reason: v.Why(),
		Message: statuses.Bounded(slices.Concat(v.Stuck, v.Moving, v.Waiting)),
	}
	if r.owner.Kind == v1alpha1.MultiClusterServiceKind {
		s.MultiClusterService = r.owner.Key.Name
	}
	s.Desired, s.Deployed = r.counts()
	return s
}

// setStatus makes the status of a cluster. The times of conditions are those of the status that there is.
func (c *clusters) setStatus(ctx context.Context, cd *v1alpha1.ClusterDeployment, known *clusterState) (err error) {
	own := &report{owner: serviceset.ClusterDeploymentOwner(cd, nil), key: client.ObjectKeyFromObject(cd)}
	status := &cd.Status
	status.ObservedGeneration = cd.Generation
	status.ServiceSets = nil
	for _, r := range known.reports {
		generation := cd.Generation
		if r.owner.Kind == v1alpha1.ClusterDeploymentKind {
			own = r
		} else {
			generation = known.generations[r.owner.Key.Name]
		}
		status.ServiceSets = append(status.ServiceSets, r.summary(generation))
	}
	slices.SortFunc(status.ServiceSets, func(a, b v1alpha1.ServiceSetSummary) int { return strings.Compare(a.Name, b.Name) })

	desired, deployed := own.counts()
	status.ServicesDeployed = fmt.Sprintf("%d/%d", deployed, desired)
	status.Services = serviceStates(own, cd.Status.Services)
	v := own.verdict()
	if cd.DeletionTimestamp != nil {
		v = deletionOf(known.reports)
	}
	status.Conditions = c.planned.Keep(cd, statuses.SetConditions(status.Conditions, v.Conditions(cd.Generation)))
	status.ServicesUpgradePaths, err = c.upgradePaths(ctx, own, cd.Namespace)
	return err
}

// deletionOf says what the deletion of a cluster waits for.
func deletionOf(reports []*report) statuses.Verdict {
	v := statuses.Verdict{}
	var left []string
	for _, r := range reports {
		left = append(left, r.key.Name)
		if r.fault != nil {
			v.Block(r.fault.reason, r.fault.message)
		}
	}
	slices.Sort(left)
	v.Progress(v1alpha1.ReasonDeleting, "waits until its service sets are gone: "+strings.Join(left, ", "))
	return v
}

// serviceStates returns the states of services, with what was decided about them as conditions. Those of the same status keep
// the times that they have in the list that there is.
func serviceStates(r *report, before []v1alpha1.ServiceState) []v1alpha1.ServiceState {
	known := make(map[client.ObjectKey]*v1alpha1.ServiceState, len(before))
	for i := range before {
		known[before[i].Key()] = &before[i]
	}
	var states []v1alpha1.ServiceState
	for i := range r.services {
		s := &r.services[i]
		state := s.state
		state.Conditions = s.conditions(known[s.key], r.trouble)
		states = append(states, state)
	}
	return states[:min(len(states), maxStates)]
}

// conditions returns the conditions of a state manager, and ours. With a trouble, nobody knows whether the service is ready.
func (s *serviceReport) conditions(before *v1alpha1.ServiceState, trouble *fault) []metav1.Condition {
	ours := []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: s.reason, Message: cut.Text(s.message, statuses.MaxMessage)}}
	switch {
	case !s.ready || s.blocked:
	case trouble != nil:
		ours[0].Status, ours[0].Reason, ours[0].Message = metav1.ConditionUnknown, trouble.reason, cut.Text(trouble.message, statuses.MaxMessage)
	default:
		ours[0].Status = metav1.ConditionTrue
	}
	if s.progressing {
		ours = append(ours, metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: s.reason, Message: cut.Text(s.message, statuses.MaxMessage)})
	}
	if s.blocked {
		ours = append(ours, metav1.Condition{Type: v1alpha1.ConditionBlocked, Status: metav1.ConditionTrue, Reason: s.reason, Message: cut.Text(s.message, statuses.MaxMessage)})
	}
	var list []metav1.Condition
	for _, c := range ours {
		if before == nil {
			break
		}
		if old := meta.FindStatusCondition(before.Conditions, c.Type); old != nil {
			list = append(list, *old)
		}
	}
	list = statuses.SetConditions(list, ours)
	foreign := slices.DeleteFunc(slices.Clone(s.state.Conditions), func(c metav1.Condition) bool {
		return meta.FindStatusCondition(ours, c.Type) != nil || c.Type == v1alpha1.ConditionProgressing || c.Type == v1alpha1.ConditionBlocked
	})
	return append(list, foreign[:min(len(foreign), maxForeignConditions)]...)
}

// upgradePaths returns where the services of a report can go. What is wrong with a chain stands in the decisions.
func (s *sources) upgradePaths(ctx context.Context, r *report, namespace string) ([]v1alpha1.ServiceUpgradePaths, error) {
	services := serviceset.ServicesWithDesiredChains(r.owner.Services, r.entries)
	paths, err := s.pathsOf(ctx, services, namespace)
	if err != nil {
		return nil, err
	}
	paths = slices.DeleteFunc(paths, func(p v1alpha1.ServiceUpgradePaths) bool { return len(p.AvailableUpgrades) == 0 })
	if len(paths) == 0 {
		return nil, nil
	}
	return boundedPaths(paths), nil
}
