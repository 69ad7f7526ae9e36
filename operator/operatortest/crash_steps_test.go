package operatortest_test

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
)

func TestReadyWantsTheConditionOfTheNewestGeneration(t *testing.T) {
	kube := operatortest.Start(t)
	namespace, user := kube.Namespace(t), operatortest.NewClient(t, kube.RESTConfig(), nil)
	labels := map[string]string{"app": "web"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
		},
	}}
	is := func(generation int64, conditions ...appsv1.DeploymentCondition) operatortest.Step {
		return func(ctx context.Context, user client.Client, namespace string) error {
			now := d.DeepCopy()
			now.Namespace = namespace
			if err := user.Get(ctx, client.ObjectKeyFromObject(now), now); err != nil {
				return err
			}
			now.Status.ObservedGeneration, now.Status.Conditions = generation, conditions
			return user.Status().Update(ctx, now)
		}
	}
	yes := appsv1.DeploymentCondition{Type: "Ready", Status: corev1.ConditionTrue}
	no := appsv1.DeploymentCondition{Type: "Ready", Status: corev1.ConditionFalse, Reason: "Waiting", Message: "for an image"}
	for _, tc := range []struct {
		what string
		do   operatortest.Step
		want string
	}{
		{"it is not there", operatortest.All(), "not found"},
		{"nobody has said anything", operatortest.Create(d), "Deployment web does not say whether it is ready"},
		{"it is not ready", is(1, no), "Deployment web is not ready: Waiting: for an image"},
		{"it is ready", is(1, yes), ""},
		{"it is another one now", operatortest.Patch(d, `{"spec":{"paused":true}}`), "Deployment web is at generation 2, and its status at 1"},
		{"that is ready, too", is(2, yes), ""},
	} {
		if err := tc.do(t.Context(), user, namespace); err != nil {
			t.Fatalf("%s: %v", tc.what, err)
		}
		switch err := operatortest.Ready(d)(t.Context(), user, namespace); {
		case (err == nil) != (tc.want == ""), err != nil && !strings.Contains(err.Error(), tc.want):
			t.Errorf("%s: got %v, want %q", tc.what, err, tc.want)
		}
	}
}
