package statemanagers

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// ConditionSuspended is the type of the condition that stands on a ServiceSet while nothing is done for it.
const ConditionSuspended = v1alpha1.ConditionSuspended

// Reasons of the condition Suspended, and of the condition Ready of a StateManagementProvider that is False.
const (
	// ReasonSuspended says that the StateManagementProvider has suspend set.
	ReasonSuspended = v1alpha1.ReasonProviderSuspended
	// ReasonNotSelected says that the labels of the ServiceSet are not those by which the provider selects.
	ReasonNotSelected = "NotSelected"
	// ReasonMisplaced says that the ServiceSet is for the management cluster, and not in the system namespace.
	ReasonMisplaced = "Misplaced"
)

// ReasonRunning is the reason of the condition Ready of a StateManagementProvider that is True.
const ReasonRunning = "Running"

// hold says why nothing is done for a set.
type hold struct{ reason, message string }

// standing is how a provider is.
type standing struct {
	provider *v1alpha1.StateManagementProvider
	selector labels.Selector
	// hold is why nothing is done for any of its sets, nil if something is.
	hold *hold
}

// standing returns how the provider is.
func (s *sources) standing(ctx context.Context, name string) (*standing, error) {
	provider, err := s.provider(ctx, name)
	if err != nil {
		return nil, err
	}
	is := &standing{provider: provider, selector: labels.Nothing()}
	if provider == nil {
		is.hold = &hold{v1alpha1.ReasonProviderMissing, fmt.Sprintf("there is no StateManagementProvider %s: all stays as it is until there is one", name)}
		return is, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(&provider.Spec.Selector)
	switch {
	case err != nil:
		is.hold = &hold{v1alpha1.ReasonSelectorInvalid, fmt.Sprintf("the selector of StateManagementProvider %s can't be read: %s", name, err)}
		return is, nil
	case provider.Spec.Suspend:
		is.hold = &hold{ReasonSuspended, fmt.Sprintf("StateManagementProvider %s is suspended: all stays as it is until spec.suspend is taken away", name)}
	}
	is.selector = selector
	return is, nil
}

// holdOf returns why nothing is done for a set. A set that is being deleted waits for nobody but for one who has suspended the
// provider: else it would stay for ever.
func (is *standing) holdOf(set *v1alpha1.ServiceSet) *hold {
	suspended := is.hold != nil && is.hold.reason == ReasonSuspended
	switch {
	case set.DeletionTimestamp != nil && !suspended:
		return nil
	case is.hold != nil:
		return is.hold
	case !is.selector.Matches(labels.Set(set.Labels)):
		return &hold{ReasonNotSelected, fmt.Sprintf("the labels of the set are not those by which StateManagementProvider %s selects: %s", is.provider.Name, is.selector)}
	}
	return nil
}

// isMisplaced tells whether a set is for the management cluster from another namespace than the system namespace. What is there is carried
// out with the operator's rights, which who may write ServiceSets elsewhere must not get.
func (s *sources) isMisplaced(set *v1alpha1.ServiceSet) bool {
	return set.Spec.Cluster == "" && set.Namespace != s.system
}

// misplaced returns why nothing is done for a set that is misplaced. One that was carried out before can be deleted.
func (s *sources) misplaced(set *v1alpha1.ServiceSet) *hold {
	if !s.isMisplaced(set) || set.DeletionTimestamp != nil {
		return nil
	}
	return &hold{ReasonMisplaced, fmt.Sprintf("the set names no cluster, and those of the management cluster are in the namespace %s: "+
		"create one with spec.cluster, or create it there", s.system)}
}

// handles tells whether a set is one of a provider. One that has the finalizer stays so.
func (m *managed) handles(obj any) bool {
	set := obj.(*v1alpha1.ServiceSet)
	if !m.has(set) {
		return false
	}
	if slices.ContainsFunc(set.Finalizers, func(f string) bool { return slices.Contains(m.finalizers, f) }) {
		return true
	}
	is, err := m.standing(context.Background(), providerOf(set))
	return err == nil && is.selector.Matches(labels.Set(set.Labels))
}
