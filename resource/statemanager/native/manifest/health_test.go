package manifest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/manifest"
)

// deployment is the manifest of a deployment. Nothing runs its pods here.
func deployment(name, image string) string {
	return fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: %[1]s\nspec:\n  replicas: 1\n"+
		"  selector: {matchLabels: {app: %[1]s}}\n  template:\n    metadata: {labels: {app: %[1]s}}\n"+
		"    spec:\n      containers:\n      - {name: main, image: %[2]q, resources: {requests: {cpu: 1000m}}}\n", name, image)
}

func ingressOf(k *kit, name string) *networkingv1.Ingress {
	return fetchAs(k, name, &networkingv1.Ingress{})
}

// ready writes the status of a deployment whose pods run.
func (k *kit) ready(name string) {
	k.t.Helper()
	d := fetchAs(k, name, &appsv1.Deployment{})
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	if err := k.user.Status().Update(k.t.Context(), d); err != nil {
		k.t.Fatal(err)
	}
}

func TestHealthIsThatOfTheObjects(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	k := newKitWith(t, manifest.Config{Clock: clock, HealthTimeout: time.Minute})
	s := k.service(files{"a.yaml": deployment("web", "registry.example.com/web:1"), "b.yaml": configMap("b", "1")})
	result := k.settle(s)
	k.wantsPhase(result, v1alpha1.ServiceStateProvisioning)
	if !strings.HasPrefix(result.Health.Message, "Deployment.apps "+k.namespace+"/web: ") || result.Requeue <= 0 || result.Requeue > time.Minute {
		t.Errorf("the message is %q, and it is looked at again after %s", result.Health.Message, result.Requeue)
	}
	k.ready("web")
	k.wantsPhase(k.compute(s), v1alpha1.ServiceStateDeployed)

	s = k.service(files{"a.yaml": deployment("web", "registry.example.com/web:2"), "b.yaml": configMap("b", "1")})
	k.wantsPhase(k.settle(s), v1alpha1.ServiceStateProvisioning)
	clock.SetTime(clock.Now().Add(time.Minute))
	result = k.compute(s)
	k.wantsPhase(result, v1alpha1.ServiceStateFailed)
	if !strings.Contains(result.Health.Message, "not ready 1m0s after it was applied: Deployment.apps ") {
		t.Errorf("the message is %q", result.Health.Message)
	}
	k.ready("web")
	k.wantsPhase(k.compute(s), v1alpha1.ServiceStateDeployed)
}

func TestDriftIsToldAndPutRightWhereAsked(t *testing.T) {
	k := newKit(t)
	content := files{"a.yaml": configMap("a", "1"), "b.yaml": configMap("b", "1"), "d.yaml": deployment("web", "registry.example.com/web:1")}
	s := k.service(content)
	k.settle(s)
	k.patch(k.configMap("a"), `{"data":{"text":"theirs","more":"1"}}`)
	if err := k.user.Delete(t.Context(), k.configMap("b")); err != nil {
		t.Fatal(err)
	}
	for _, silent := range []v1alpha1.SyncMode{v1alpha1.SyncModeContinuous, v1alpha1.SyncModeOneTime, v1alpha1.SyncModeDryRun} {
		result := k.compute(k.service(content, mode(silent)))
		k.wants(result.Drift, "update ConfigMap a", "create ConfigMap b")
		k.wants(result.Changes)
		k.wantsPhase(result, v1alpha1.ServiceStateProvisioning)
	}
	s = k.service(content, mode(v1alpha1.SyncModeContinuousWithDriftDetection))
	err := k.refused(k.service(content, mode(v1alpha1.SyncModeContinuousWithDriftDetection), stopOnConflict))
	var conflict *manifest.ConflictError
	if !errors.As(err, &conflict) {
		t.Errorf("with StopOnConflict the error is %v", err)
	}
	result := k.compute(s)
	k.wants(result.Changes, "update ConfigMap a", "create ConfigMap b")
	if fields := result.Changes[0].Fields; len(fields) != 1 || fields[0].String() != `data.text: "theirs" -> "1"` {
		t.Errorf("the fields are %v", fields)
	}
	k.carryOut(s, result)
	result = k.compute(s)
	k.wants(result.Drift)
	if data := k.configMap("a").Data; data["text"] != "1" || data["more"] != "1" {
		t.Errorf("the data is %v", data)
	}
	if s.Source.(*source).calls > 0 {
		t.Error("it was rendered to put drift right")
	}
}

func TestOtherNotationIsNoDriftAndAskedOnce(t *testing.T) {
	k := newKit(t)
	s := k.service(files{"d.yaml": deployment("web", "registry.example.com/web:1")}) // It asks for 1000m, which the server writes as 1.
	k.wants(k.settle(s).Drift)
	k.ready("web")
	k.compute(s)
	before := k.requests.Load()
	if _, err := k.carrier.Compute(t.Context(), k.cluster, k.user, s); err != nil {
		t.Fatal(err)
	}
	if n := k.requests.Load() - before; n > 3 {
		t.Errorf("%d requests where nothing changes", n)
	}
	before = k.requests.Load()
	if _, err := k.carrier.Compute(t.Context(), k.cluster, k.user, s); err != nil {
		t.Fatal(err)
	}
	if n := k.requests.Load() - before; n != 1 {
		t.Errorf("%d requests where nothing changes, and the answer is known", n)
	}
}

func TestOneTimeLeavesWhatWasPutThere(t *testing.T) {
	k := newKit(t)
	k.settle(k.service(files{"a.yaml": configMap("a", "1")}, mode(v1alpha1.SyncModeOneTime)))
	result := k.compute(k.service(files{"a.yaml": configMap("a", "2")}, mode(v1alpha1.SyncModeOneTime)))
	k.wants(result.Changes)
	k.wantsPhase(result, v1alpha1.ServiceStateDeployed)
	if len(result.Notes) != 1 {
		t.Errorf("notes: %q", result.Notes)
	}
}

func TestDryRunTellsWhatItWouldDo(t *testing.T) {
	k := newKit(t)
	k.wants(k.compute(k.service(files{"a.yaml": configMap("a", "1")}, mode(v1alpha1.SyncModeDryRun))).Changes, "create ConfigMap a")
}

func TestFaultsOfTheSourceLeaveWhatRuns(t *testing.T) {
	k := newKit(t)
	k.settle(k.service(files{"a.yaml": configMap("a", "1")}))
	s := k.service(files{"a.yaml": configMap("a", "2")})
	s.Source.(*source).err = errors.New("no answer")
	result, err := k.carrier.Compute(t.Context(), k.cluster, k.cluster.client, s)
	if err == nil || framework.IsPermanent(err) || result.Found == nil || result.Health.Phase != v1alpha1.ServiceStateDeployed {
		t.Errorf("the error is %v, and the result %v", err, result)
	}
}

// job is the manifest of a job that is taken away a minute after it has finished.
func job(image string) string {
	return fmt.Sprintf("apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate}\nspec:\n  ttlSecondsAfterFinished: 60\n"+
		"  template: {spec: {restartPolicy: Never, containers: [{name: main, image: %q}]}}\n", image)
}

func TestAJobThatVanishesWhenItIsDoneIsDone(t *testing.T) {
	for _, m := range []v1alpha1.SyncMode{v1alpha1.SyncModeContinuous, v1alpha1.SyncModeContinuousWithDriftDetection} {
		t.Run(string(m), func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Now())
			k := newKitWith(t, manifest.Config{Clock: clock})
			s := k.service(files{"a.yaml": job("migrate:1"), "b.yaml": configMap("b", "1")}, mode(m))
			k.settle(s)
			migrate := fetchAs(k, "migrate", &batchv1.Job{})
			now := metav1.Now()
			migrate.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Conditions: []batchv1.JobCondition{
				{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue}, {Type: batchv1.JobComplete, Status: corev1.ConditionTrue},
			}}
			if err := k.user.Status().Update(t.Context(), migrate); err != nil {
				t.Fatal(err)
			}
			k.patch(migrate, `{"metadata":{"finalizers":["example.com/hold"]}}`)
			if err := k.user.Delete(t.Context(), migrate, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
				t.Fatal(err)
			}
			done := func(s *carrier.Service) {
				t.Helper()
				result := k.compute(s)
				k.wants(result.Changes)
				k.wants(result.Drift)
				k.wantsPhase(result, v1alpha1.ServiceStateDeployed)
			}
			done(s)
			k.patch(migrate, `{"metadata":{"finalizers":null}}`)
			k.wants(k.compute(s).Drift, "create Job migrate")
			clock.SetTime(time.Now().Add(2 * time.Minute))
			done(s)

			heir := k.service(files{"a.yaml": job("migrate:1"), "b.yaml": configMap("b", "1")}, mode(m), ownedBy("heir", "2"))
			k.wants(k.compute(heir).Changes, "update ConfigMap b")
			next := k.service(files{"a.yaml": job("migrate:1"), "b.yaml": configMap("b", "2")}, mode(m))
			k.wants(k.compute(next).Changes, "update ConfigMap b")
			k.settle(next)
			done(next)
			if m == v1alpha1.SyncModeContinuousWithDriftDetection {
				k.patch(k.configMap("b"), `{"data":{"text":"theirs"}}`)
				k.wants(k.settle(next).Drift)
				done(next)
			}
			k.wants(k.compute(k.service(files{"a.yaml": job("migrate:2"), "b.yaml": configMap("b", "2")}, mode(m))).Changes, "create Job migrate")
		})
	}
}
