package operatortest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// podOf is a template of pods that are restarted as the policy says.
func podOf(policy corev1.RestartPolicy) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{RestartPolicy: policy, Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
	}
}

func TestWorkloadsRunOnANode(t *testing.T) {
	kube := operatortest.Start(t, operatortest.WithConfig(operatortest.Config{Controllers: operatortest.WorkloadControllers()}))
	user := operatortest.NewClient(t, kube.RESTConfig(), nil)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- operatortest.RunNode(ctx, kube.RESTConfig(), operatortest.NodeConfig{Phase: func(pod *corev1.Pod) corev1.PodPhase {
			if pod.Name == "broken" {
				return corev1.PodFailed
			}
			return operatortest.PhaseOf(pod)
		}})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})

	namespace := kube.Namespace(t)
	replicas, soon := int32(2), int32(0)
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	web := &appsv1.Deployment{ObjectMeta: named("web"), Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: podOf("")}}
	agent := &appsv1.DaemonSet{ObjectMeta: named("agent"), Spec: appsv1.DaemonSetSpec{Selector: selector, Template: podOf("")}}
	done := &batchv1.Job{ObjectMeta: named("done"), Spec: batchv1.JobSpec{Template: podOf(corev1.RestartPolicyNever)}}
	vanishing := &batchv1.Job{ObjectMeta: named("vanishing"), Spec: batchv1.JobSpec{Template: podOf(corev1.RestartPolicyNever), TTLSecondsAfterFinished: &soon}}
	broken := &corev1.Pod{ObjectMeta: named("broken"), Spec: podOf(corev1.RestartPolicyNever).Spec}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: named("data"), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	all := []client.Object{web, agent, done, vanishing, broken, claim}
	for _, object := range all {
		if err := user.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	look := func(object client.Object, is func() bool) func() error {
		return func() error {
			if err := user.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
			if !is() {
				return fmt.Errorf("it is %+v", object)
			}
			return nil
		}
	}
	operatortest.Eventually(t, "the Deployment is available", look(web, func() bool { return web.Status.AvailableReplicas == 2 }))
	operatortest.Eventually(t, "the DaemonSet is ready", look(agent, func() bool { return agent.Status.NumberReady == 1 }))
	operatortest.Eventually(t, "the Job is done", look(done, func() bool { return done.Status.Succeeded == 1 && done.Status.CompletionTime != nil }))
	operatortest.Eventually(t, "the Job with a time to live vanishes", func() bool {
		return apierrors.IsNotFound(user.Get(t.Context(), client.ObjectKeyFromObject(vanishing), vanishing))
	})
	operatortest.Eventually(t, "the pod fails that was said to", look(broken, func() bool { return broken.Status.Phase == corev1.PodFailed }))
	operatortest.Eventually(t, "the claim is bound", look(claim, func() bool { return claim.Status.Phase == corev1.ClaimBound }))

	for _, object := range all {
		err := user.Delete(t.Context(), object, client.PropagationPolicy(metav1.DeletePropagationForeground))
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	operatortest.Eventually(t, "everything goes", func() error {
		pods := &corev1.PodList{}
		if err := user.List(t.Context(), pods, client.InNamespace(namespace)); err != nil {
			return err
		}
		var left []error
		for _, pod := range pods.Items {
			left = append(left, fmt.Errorf("pod %s is there", pod.Name))
		}
		for _, object := range all {
			if err := user.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
				left = append(left, fmt.Errorf("%T %s: %w", object, object.GetName(), errors.Join(err, errors.New("it is there"))))
			}
		}
		return errors.Join(left...)
	})
}
