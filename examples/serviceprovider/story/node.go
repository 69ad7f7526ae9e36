package story

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// node stands for the nodes that a control plane lacks: every Pod of the workload cluster runs a moment after it was made.
func (w *world) node(ctx context.Context) error {
	for {
		if err := w.runPods(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (w *world) runPods(ctx context.Context) error {
	pods := &corev1.PodList{}
	if err := w.workload.List(ctx, pods); err != nil {
		return err
	}
	var errs []error
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase == corev1.PodRunning || pod.DeletionTimestamp != nil {
			continue
		}
		running := pod.DeepCopy()
		running.Status.Phase = corev1.PodRunning
		running.Status.Conditions = append(running.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
		errs = append(errs, client.IgnoreNotFound(w.workload.Status().Patch(ctx, running, client.MergeFrom(pod))))
	}
	return errors.Join(errs...)
}
