package servicesets

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/internal/cut"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/internal/claims"
	"github.com/operatorkit/operatorkit/operator/internal/statuses"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

// newChains makes the framework that tells whether ServiceTemplateChains can be used. It has nothing to clean up, so that chains get no
// finalizer.
func newChains(d *operator.Dependencies, s *sources) (*framework.Framework, error) {
	status, err := statuses.New(d, setChainStatus, func(ctx context.Context, before, after *v1alpha1.ServiceTemplateChain) {
		was, is := statuses.Find(before.Status.Conditions, v1alpha1.ConditionValid), statuses.Find(after.Status.Conditions, v1alpha1.ConditionValid)
		if is.Status == metav1.ConditionFalse && (was.Status != is.Status || was.Message != is.Message) {
			framework.Recorder(ctx, d.Recorder).Event(after, corev1.EventTypeWarning, is.Reason, is.Message)
		}
	})
	if err != nil {
		return nil, err
	}
	claimed := &claims.Claims{Client: d.Client, Kind: v1alpha1.ServiceTemplateChainKind}
	claimed.Owner, err = d.NewFramework(framework.Config{
		Source: s.chains, DisableFinalizer: true, Resources: []framework.Resource{claimed.Resource(), status},
	})
	return claimed.Owner, err
}

// setChainStatus makes the status of a chain.
func setChainStatus(_ context.Context, chain *v1alpha1.ServiceTemplateChain) error {
	if chain.DeletionTimestamp != nil {
		return nil
	}
	valid := metav1.Condition{
		Type: v1alpha1.ConditionValid, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonValid, ObservedGeneration: chain.Generation,
		Message: "the chain can be used",
	}
	if err := serviceset.CheckChain(&chain.Spec); err != nil {
		valid.Status, valid.Reason, valid.Message = metav1.ConditionFalse, v1alpha1.ReasonChainInvalid, cut.Text("the chain "+err.Error(), statuses.MaxMessage)
	}
	chain.Status.ObservedGeneration = chain.Generation
	chain.Status.Conditions = statuses.SetConditions(chain.Status.Conditions, []metav1.Condition{valid})
	return nil
}
