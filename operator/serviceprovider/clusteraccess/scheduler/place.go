package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statusresource"
)

// place makes the status of a request.
func (s *scheduler) place(ctx context.Context, r *v1alpha1.ClusterRequest, _ *statusresource.Report) error {
	if s.claimed.Refusal(r) != nil {
		return nil
	}
	status := &r.Status
	status.ObservedGeneration = r.Generation
	switch {
	case r.DeletionTimestamp != nil:
		return s.leave(ctx, r)
	case status.ClusterRef != nil:
		s.grant(r)
		return nil
	case s.layout.Provider(r.Namespace) == "":
		set(r, v1alpha1.PhaseDenied, v1alpha1.ReasonNoProvider, fmt.Sprintf(
			"Namespace %s is no service provider's: ask for clusters in that of the provider.", r.Namespace))
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(r.Spec.Selector)
	if err != nil {
		set(r, v1alpha1.PhaseDenied, v1alpha1.ReasonSelectorInvalid, fmt.Sprintf("spec.selector can't be read: %s.", err))
		return nil
	}
	if r.Spec.Selector == nil { // which would be nothing
		selector = labels.Everything()
	}
	fitting, err := s.fitting(ctx, r, selector)
	if err != nil {
		return err
	}
	counts, err := s.counts(ctx)
	if err != nil {
		return err
	}
	chosen, reason, message := s.choose(r, fitting, counts)
	if chosen == nil {
		set(r, v1alpha1.PhasePending, reason, message)
		return nil
	}
	status.ClusterRef = &v1alpha1.LocalObjectReference{Name: chosen.Name}
	s.grant(r)
	return nil
}

func (s *scheduler) grant(r *v1alpha1.ClusterRequest) {
	set(r, v1alpha1.PhaseGranted, v1alpha1.ReasonGranted, fmt.Sprintf("The request has Cluster %s.", r.Status.ClusterRef.Name))
}

// leave says what holds up the deletion of a request.
func (s *scheduler) leave(ctx context.Context, r *v1alpha1.ClusterRequest) error {
	users, err := s.accessTo(ctx, r)
	if err != nil || len(users) == 0 {
		return err
	}
	set(r, r.Status.Phase, v1alpha1.ReasonInUse, fmt.Sprintf("The deletion waits for AccessRequests: %s.", some(users)))
	return nil
}

// set writes phase and condition.
func set(r *v1alpha1.ClusterRequest, phase v1alpha1.Phase, reason, message string) {
	r.Status.Phase = cmp.Or(phase, v1alpha1.PhasePending)
	granted := metav1.ConditionFalse
	if phase == v1alpha1.PhaseGranted {
		granted = metav1.ConditionTrue
	}
	apimeta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionGranted, Status: granted, Reason: reason, Message: message, ObservedGeneration: r.Generation,
	})
}

// fitting returns the Clusters that are for the purpose and have the labels.
func (s *scheduler) fitting(ctx context.Context, r *v1alpha1.ClusterRequest, selector labels.Selector) ([]*v1alpha1.Cluster, error) {
	list := &v1alpha1.ClusterList{}
	if err := s.reader.List(ctx, list, client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Clusters: %w", err)
	}
	var fitting []*v1alpha1.Cluster
	for i := range list.Items {
		if c := &list.Items[i]; slices.Contains(c.Spec.Purposes, r.Spec.Purpose) {
			fitting = append(fitting, c)
		}
	}
	return fitting, nil
}

// choose picks the Cluster with the fewest requests among those that take one more, and else says why there is none.
func (s *scheduler) choose(r *v1alpha1.ClusterRequest, fitting []*v1alpha1.Cluster, counts map[string]int) (chosen *v1alpha1.Cluster, reason, message string) {
	if len(fitting) == 0 {
		with := ""
		if r.Spec.Selector != nil {
			with = fmt.Sprintf(" with the labels %s", metav1.FormatLabelSelector(r.Spec.Selector))
		}
		return nil, v1alpha1.ReasonNoCluster, fmt.Sprintf("There is no Cluster for the purpose %s%s.", r.Spec.Purpose, with)
	}
	var open []*v1alpha1.Cluster
	var closed []string
	for _, c := range fitting {
		if why := s.whyClosed(c, counts[c.Name]); why != "" {
			closed = append(closed, c.Name+" "+why)
			continue
		}
		open = append(open, c)
	}
	if len(open) == 0 {
		slices.Sort(closed)
		return nil, v1alpha1.ReasonNoRoom, fmt.Sprintf("No Cluster for the purpose %s takes one more: %s.", r.Spec.Purpose, some(closed))
	}
	return slices.MinFunc(open, func(a, b *v1alpha1.Cluster) int {
		return cmp.Or(cmp.Compare(counts[a.Name], counts[b.Name]), strings.Compare(a.Name, b.Name))
	}), "", ""
}

// whyClosed says why a Cluster takes no more requests, empty for one that does.
func (s *scheduler) whyClosed(c *v1alpha1.Cluster, requests int) string {
	ready := apimeta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case c.DeletionTimestamp != nil:
		return "is being deleted"
	case s.used.HolderOf(c) != "":
		return "is given away by " + s.used.HolderOf(c)
	case c.Spec.Capacity != nil && requests >= int(*c.Spec.Capacity):
		return fmt.Sprintf("has %d of %d requests", requests, *c.Spec.Capacity)
	case ready != nil && ready.Status == metav1.ConditionFalse:
		return "is not ready"
	}
	return ""
}

// placed writes an event when the reason has changed.
func (s *scheduler) placed(ctx context.Context, before, after *v1alpha1.ClusterRequest) {
	was, is := v1alpha1.Granted(before.Status.Conditions), v1alpha1.Granted(after.Status.Conditions)
	if is.Reason == was.Reason {
		return
	}
	kind := corev1.EventTypeWarning
	if is.Reason == v1alpha1.ReasonGranted {
		kind = corev1.EventTypeNormal
	}
	framework.Recorder(ctx, s.recorder).Event(after, kind, is.Reason, is.Message)
}

// maxNamed is how many names a message has.
const maxNamed = 5

// some names the first few of many.
func some(names []string) string {
	if more := len(names) - maxNamed; more > 0 {
		return strings.Join(names[:maxNamed], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}
