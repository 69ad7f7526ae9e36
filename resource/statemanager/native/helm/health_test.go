package helm_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

const serverTemplate = `apiVersion: apps/v1
kind: Deployment
metadata: {name: server}
spec:
  selector: {matchLabels: {app: server}}
  template:
    metadata: {labels: {app: server}}
    spec:
      containers:
      - {name: server, image: "server:{{ .Chart.Version }}", resources: {limits: {cpu: 1000m}}}
`

func serverChart(version string) files {
	return chartOf("server", version, files{"server.yaml": serverTemplate})
}

// rolledOut is what the controller of Deployments says when all pods are there.
func (k *kit) rolledOut() {
	k.t.Helper()
	server := &appsv1.Deployment{}
	if err := k.user.Get(k.t.Context(), client.ObjectKey{Namespace: k.namespace, Name: "server"}, server); err != nil {
		k.t.Fatal(err)
	}
	server.Status = appsv1.DeploymentStatus{
		ObservedGeneration: server.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	if err := k.user.Status().Update(k.t.Context(), server); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kit) image() string {
	k.t.Helper()
	server := &appsv1.Deployment{}
	if err := k.user.Get(k.t.Context(), client.ObjectKey{Namespace: k.namespace, Name: "server"}, server); err != nil {
		return err.Error()
	}
	return server.Spec.Template.Spec.Containers[0].Image
}

func TestAServiceIsDeployedWhenItsObjectsAreHealthyAndFailedAfterTheTimeout(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	k := newKit(t, helm.Config{Clock: clock, Timeout: time.Hour})
	service := k.service(serverChart("1.0.0"))
	result := k.settle(service)
	if result.Health.Phase != v1alpha1.ServiceStateProvisioning || !strings.Contains(result.Health.Message, "Deployment "+k.namespace+"/server") {
		t.Errorf("it is %+v", result.Health)
	}
	if result.Requeue <= 0 || result.Requeue > 2*time.Hour {
		t.Errorf("it is looked at again after %s", result.Requeue)
	}
	clock.SetTime(time.Now().Add(2 * time.Hour))
	result = k.compute(service)
	if result.Health.Phase != v1alpha1.ServiceStateFailed || !strings.Contains(result.Health.Message, "not healthy within 1h0m0s: Deployment") {
		t.Errorf("after the time-out it is %+v", result.Health)
	}
	k.rolledOut()
	if result = k.compute(service); result.Health.Phase != v1alpha1.ServiceStateDeployed || len(result.Changes) > 0 {
		t.Errorf("when it is there it is %+v", result.Health)
	}
}

func TestWithoutWaitHealthDoesNotCount(t *testing.T) {
	k := newKit(t, helm.Config{})
	result := k.settle(k.service(serverChart("1.0.0"), options(v1alpha1.ServiceHelmOptions{Wait: pointer(false)})))
	equal(t, "health", result.Health, carrier.Health{Phase: v1alpha1.ServiceStateDeployed})
}

const jobTemplate = `apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: ANNOTATIONS
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: migrate, image: migrate}]
`

func jobChart(annotations string) files {
	return pageChart("1.0.0").with("templates/job.yaml", strings.ReplaceAll(jobTemplate, "ANNOTATIONS", annotations))
}

// ends says of the job what its controller says at its end.
func (k *kit) ends(condition batchv1.JobConditionType, message string) {
	k.t.Helper()
	k.endsNamed("migrate", condition, message)
}

func (k *kit) endsNamed(name string, condition batchv1.JobConditionType, message string) {
	k.t.Helper()
	operatortest.Eventually(k.t, "the job is there", func() error {
		job := &batchv1.Job{}
		if err := k.user.Get(k.t.Context(), client.ObjectKey{Namespace: k.namespace, Name: name}, job); err != nil {
			return err
		}
		now := metav1.Now()
		job.Status.StartTime = &now
		first := batchv1.JobSuccessCriteriaMet
		if condition == batchv1.JobFailed {
			first = batchv1.JobFailureTarget
		} else {
			job.Status.CompletionTime = &now
		}
		job.Status.Conditions = []batchv1.JobCondition{
			{Type: first, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: condition, Status: corev1.ConditionTrue, Reason: "Because", Message: message, LastTransitionTime: now},
		}
		return k.user.Status().Update(k.t.Context(), job)
	})
}

func TestJobsCountWhereAskedFor(t *testing.T) {
	k := newKit(t, helm.Config{})
	service := k.service(jobChart("{}"), options(v1alpha1.ServiceHelmOptions{WaitForJobs: pointer(true)}))
	if result := k.settle(service); result.Health.Phase != v1alpha1.ServiceStateProvisioning || !strings.Contains(result.Health.Message, "migrate") {
		t.Errorf("it is %+v", result.Health)
	}
	k.ends(batchv1.JobComplete, "")
	if result := k.compute(service); result.Health.Phase != v1alpha1.ServiceStateDeployed {
		t.Errorf("at the end it is %+v", result.Health)
	}
}

// begins carries out what begins a hook, and returns what Compute says of it then.
func (k *kit) begins(service *carrier.Service) *carrier.Result {
	k.t.Helper()
	k.carryOut(service, k.compute(service))
	result := k.compute(service)
	if len(result.Changes) > 0 || !strings.Contains(result.Health.Message, "waits for the hook") || result.Requeue <= 0 {
		k.t.Fatalf("no hook is waited for: %+v", result)
	}
	return result
}

// goesOn carries out what is left after a hook, once.
func (k *kit) goesOn(service *carrier.Service) error {
	k.t.Helper()
	result := k.compute(service)
	if len(result.Changes) == 0 {
		k.t.Fatalf("it does not go on: %+v", result)
	}
	return k.carrier.CarryOut(k.t.Context(), k.cluster, service, result)
}

func TestAHookIsBegunAndGoneOnWithWhenItHasEnded(t *testing.T) {
	k := newKit(t, helm.Config{Timeout: time.Hour})
	service := k.service(jobChart(`{"helm.sh/hook": "pre-install,post-install"}`))
	equal(t, "notes", k.compute(service).Notes, []string{"runs the hook pre-install: Job migrate", "runs the hook post-install: Job migrate"})
	result := k.begins(service)
	equal(t, "health", result.Health, carrier.Health{
		Phase: v1alpha1.ServiceStateProvisioning, Message: "waits for the hook pre-install: Job " + k.namespace + "/migrate",
	})
	equal(t, "helm list", k.listed(), []string{"web 1 pending-install page-1.0.0"})
	equal(t, "the phase of the hook", string(k.list()[0].Hooks[0].LastRun.Phase), "Running")
	if k.configMap("web-page") != nil {
		t.Error("what comes after the hook is there")
	}
	if kinds := result.Found.Kinds; !slices.ContainsFunc(kinds, func(kind schema.GroupVersionKind) bool { return kind.Kind == "Job" }) {
		t.Errorf("nothing tells when the job has ended: %v", kinds)
	}
	k.ends(batchv1.JobComplete, "")
	result = k.compute(service)
	equal(t, "the plan of the rest", summary(result.Changes), []string{"update HelmRelease web", "create ConfigMap web-page"})
	equal(t, "that it is under way", result.UnderWay, true)
	k.carryOut(service, result)
	if k.configMap("web-page") == nil {
		t.Error("it has not gone on")
	}
	equal(t, "health", k.compute(service).Health.Message, "waits for the hook post-install: Job "+k.namespace+"/migrate")
	k.ends(batchv1.JobComplete, "")
	if result := k.settle(service); result.Found.Fingerprint != service.Fingerprint || result.Health.Phase != v1alpha1.ServiceStateDeployed {
		t.Errorf("at the end it is %+v of %+v", result.Health, result.Found)
	}
	equal(t, "helm list", k.listed(), []string{"web 1 deployed page-1.0.0"})
	equal(t, "the phase of the hook", string(k.list()[0].Hooks[0].LastRun.Phase), "Succeeded")
	removal := k.service(nil, gone)
	k.eventually(removal, "everything is gone", func(r *carrier.Result) bool { return r.Found == nil })
	operatortest.Eventually(t, "what the hook left is gone", func() bool {
		jobs := &batchv1.JobList{}
		return k.user.List(t.Context(), jobs, client.InNamespace(k.namespace)) == nil &&
			(len(jobs.Items) == 0 || jobs.Items[0].DeletionTimestamp != nil)
	})
}

func TestHooksRunInHelmsOrderWithHelmsPolicies(t *testing.T) {
	k := newKit(t, helm.Config{})
	chart := pageChart("1.0.0")
	for name, annotations := range map[string]string{
		"last":   `"helm.sh/hook-weight": "5", "helm.sh/hook-delete-policy": hook-succeeded`,
		"second": `"helm.sh/hook-weight": "-1", "helm.sh/hook-delete-policy": hook-succeeded`,
		"first":  `"helm.sh/hook-weight": "-5"`,
	} {
		job := strings.ReplaceAll(jobTemplate, "ANNOTATIONS", `{"helm.sh/hook": pre-install, `+annotations+`}`)
		chart = chart.with("templates/"+name+".yaml", strings.ReplaceAll(job, "name: migrate\n", "name: "+name+"\n"))
	}
	service := k.service(chart)
	jobs := func() []string {
		list := &batchv1.JobList{}
		if err := k.user.List(t.Context(), list, client.InNamespace(k.namespace)); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, job := range list.Items {
			names = append(names, job.Name)
		}
		return names
	}
	for i, name := range []string{"first", "second", "last"} {
		k.carryOut(service, k.compute(service))
		if got := jobs(); len(got) != i+1 || !slices.Contains(got, name) {
			t.Fatalf("step %d: the jobs are %v", i, got)
		}
		k.endsNamed(name, batchv1.JobComplete, "")
	}
	k.settle(service)
	equal(t, "what is left", jobs(), []string{"first"})
}

func TestAHookThatFailsIsNamed(t *testing.T) {
	k := newKit(t, helm.Config{})
	service := k.service(jobChart(`{"helm.sh/hook": pre-install}`))
	k.begins(service)
	k.ends(batchv1.JobFailed, "the pod gave up")
	equal(t, "the plan of the end", summary(k.compute(service).Changes), []string{"update HelmRelease web"})
	says(t, k.goesOn(service), "release "+k.namespace+"/web", "pre-install", "hook Job "+k.namespace+"/migrate", "the pod gave up")
	equal(t, "helm list", k.listed(), []string{"web 1 failed page-1.0.0"})
	result := k.compute(service)
	if result.Found == nil || result.Found.Fingerprint != "" || len(result.Changes) == 0 {
		t.Errorf("it is not tried again: %+v", result)
	}
}

func TestTheTimeoutOfAHookCountsFromItsBeginAlsoInAnotherProcess(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	k := newKit(t, helm.Config{Clock: clock})
	service := k.service(jobChart(`{"helm.sh/hook": pre-install}`), options(v1alpha1.ServiceHelmOptions{Timeout: &metav1.Duration{Duration: time.Hour}}))
	k.begins(service)
	clock.SetTime(clock.Now().Add(50 * time.Minute))
	var err error
	if k.carrier, err = helm.New(helm.Config{Clock: clock}); err != nil {
		t.Fatal(err)
	}
	if result := k.compute(service); len(result.Changes) > 0 || result.Requeue > 10*time.Minute {
		t.Errorf("after 50 minutes: %+v", result)
	}
	clock.SetTime(clock.Now().Add(11 * time.Minute))
	says(t, k.goesOn(service), "hook Job "+k.namespace+"/migrate did not end within 1h")
	equal(t, "helm list", k.listed(), []string{"web 1 failed page-1.0.0"})
}

func TestAServiceThatChangesWhileAHookRunsIsUpgradedWhenItHasEnded(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.begins(k.service(jobChart(`{"helm.sh/hook": pre-install}`)))
	next := k.service(pageChart("1.1.0"))
	if result := k.compute(next); len(result.Changes) > 0 || !strings.Contains(result.Health.Message, "waits for the hook") {
		t.Errorf("the hook is not waited for: %+v", result)
	}
	k.ends(batchv1.JobComplete, "")
	k.settle(next)
	equal(t, "the revisions", k.statuses("web"), []string{"1 superseded", "2 deployed"})
}

func TestAServiceIsTakenAwayWhileItsHookRuns(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.begins(k.service(jobChart(`{"helm.sh/hook": pre-install}`)))
	k.eventually(k.service(nil, gone), "everything is gone", func(r *carrier.Result) bool { return r.Found == nil })
	equal(t, "the revisions", k.statuses("web"), nil)
}

func TestAHookThatSomebodyDeletesHasFailed(t *testing.T) {
	k := newKit(t, helm.Config{})
	service := k.service(jobChart(`{"helm.sh/hook": pre-install}`))
	k.begins(service)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "migrate"}}
	if err := k.user.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	says(t, k.goesOn(service), "hook Job "+k.namespace+"/migrate was deleted before it completed")
}

func TestHooksCanBeDisabled(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.settle(k.service(jobChart(`{"helm.sh/hook": pre-install}`), options(v1alpha1.ServiceHelmOptions{DisableHooks: pointer(true)})))
	jobs := &batchv1.JobList{}
	if err := k.user.List(t.Context(), jobs, client.InNamespace(k.namespace)); err != nil || len(jobs.Items) > 0 {
		t.Errorf("there are hooks: %v, %v", jobs.Items, err)
	}
}

func takenBack(timeout time.Duration) func(*carrier.Service) {
	return options(v1alpha1.ServiceHelmOptions{Atomic: pointer(true), Timeout: &metav1.Duration{Duration: timeout}})
}

func TestAnAtomicUpgradeThatIsNotHealthyInTimeIsRolledBackAndNotTriedAgain(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	k := newKit(t, helm.Config{Clock: clock})
	good, bad := k.service(serverChart("1.0.0"), takenBack(time.Hour)), k.service(serverChart("2.0.0"), takenBack(time.Hour))
	k.settle(good)
	k.rolledOut()
	if result := k.settle(good); result.Health.Phase != v1alpha1.ServiceStateDeployed {
		t.Fatalf("it is %+v", result.Health)
	}
	k.settle(bad)
	equal(t, "the image", k.image(), "server:2.0.0")
	clock.SetTime(time.Now().Add(2 * time.Hour))
	result := k.compute(bad)
	equal(t, "the plan", summary(result.Changes), []string{"update HelmRelease web", "update Deployment server"})
	result = k.settle(bad)
	equal(t, "the image", k.image(), "server:1.0.0")
	equal(t, "helm list", k.listed(), []string{"web 3 deployed server-1.0.0"})
	if result.Health.Phase != v1alpha1.ServiceStateFailed || !strings.Contains(result.Health.Message, "not healthy within 1h") {
		t.Errorf("it is %+v", result.Health)
	}
	if !carrier.IsSealOf(result.Found.Seal, good.Fingerprint) {
		t.Errorf("found %+v", result.Found)
	}
	clock.SetTime(time.Now())
	k.settle(k.service(serverChart("2.0.1"), takenBack(time.Hour)))
	equal(t, "the image of the next version", k.image(), "server:2.0.1")
}

func TestAnAtomicInstallationThatIsNotHealthyInTimeIsUninstalledAndNotTriedAgain(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Now())
	k := newKit(t, helm.Config{Clock: clock})
	bad := k.service(serverChart("1.0.0"), takenBack(time.Hour))
	k.settle(bad)
	clock.SetTime(time.Now().Add(2 * time.Hour))
	result := k.settle(bad)
	if result.Health.Phase != v1alpha1.ServiceStateFailed || !strings.Contains(result.Health.Message, "not healthy within") {
		t.Errorf("it is %+v", result.Health)
	}
	equal(t, "helm list", k.listed(), []string{"web 1 uninstalled server-1.0.0"})
	if said := k.image(); !strings.Contains(said, "not found") {
		t.Errorf("it is there still: %s", said)
	}
	clock.SetTime(time.Now())
	k.settle(k.service(serverChart("1.0.1"), takenBack(time.Hour)))
	equal(t, "helm list", k.listed(), []string{"web 2 deployed server-1.0.1"})
	k.eventually(k.service(nil, gone), "everything is gone", func(r *carrier.Result) bool { return r.Found == nil })
	equal(t, "the revisions", k.statuses("web"), nil)
}

func TestAnAtomicUpgradeWhoseHookFailsIsRolledBack(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.settle(k.service(pageChart("1.0.0"), takenBack(time.Hour)))
	bad := k.service(jobChart(`{"helm.sh/hook": post-upgrade}`).with("templates/extra.yaml", extraTemplate), takenBack(time.Hour))
	k.begins(bad)
	k.ends(batchv1.JobFailed, "the pod gave up")
	says(t, k.goesOn(bad), "post-upgrade", "the pod gave up")
	equal(t, "the revisions", k.statuses("web"), []string{"1 superseded", "2 failed", "3 deployed"})
	if k.configMap("web-extra") != nil {
		t.Error("an object of what was taken back is there still")
	}
	if result := k.settle(bad); result.Health.Phase != v1alpha1.ServiceStateFailed || !strings.Contains(result.Health.Message, "the pod gave up") {
		t.Errorf("it is %+v", result.Health)
	}
}

// takenAway deletes the job as the controller of finished ones does, and holds it until it is let go of.
func (k *kit) takenAway() {
	k.t.Helper()
	k.editJob(`{"metadata":{"finalizers":["example.com/hold"]}}`)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "migrate"}}
	if err := k.user.Delete(k.t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kit) editJob(patch string) {
	k.t.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "migrate"}}
	if err := k.user.Patch(k.t.Context(), job, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		k.t.Fatal(err)
	}
}

// vanishing is a chart with a job that is taken away a minute after it has finished.
func vanishing(version string) files {
	chart := jobChart("{}")
	chart["Chart.yaml"] = strings.ReplaceAll(chart["Chart.yaml"], "1.0.0", version)
	chart["templates/job.yaml"] = strings.Replace(chart["templates/job.yaml"], "spec:\n", "spec:\n  ttlSecondsAfterFinished: 60\n", 1)
	return chart
}

func TestAJobThatVanishesWhenItIsDoneIsDone(t *testing.T) {
	for _, m := range []v1alpha1.SyncMode{v1alpha1.SyncModeContinuous, v1alpha1.SyncModeContinuousWithDriftDetection} {
		t.Run(string(m), func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(time.Now())
			k := newKit(t, helm.Config{Clock: clock})
			service := k.service(vanishing("1.0.0"), mode(m), options(v1alpha1.ServiceHelmOptions{WaitForJobs: pointer(true)}))
			k.settle(service)
			k.ends(batchv1.JobComplete, "")
			k.takenAway()
			done := func(when string) {
				t.Helper()
				result := k.compute(service)
				equal(t, "what there is to do "+when, summary(result.Changes), nil)
				equal(t, "drift "+when, summary(result.Drift), nil)
				equal(t, "health "+when, result.Health, carrier.Health{Phase: v1alpha1.ServiceStateDeployed})
			}
			done("while it goes")
			k.editJob(`{"metadata":{"finalizers":null}}`)
			equal(t, "drift when it went too early", summary(k.compute(service).Drift), []string{"create Job migrate"})
			clock.SetTime(time.Now().Add(2 * time.Minute))
			done("when it is gone")
			next := k.service(vanishing("1.1.0"), mode(m))
			equal(t, "the upgrade", summary(k.compute(next).Changes), []string{"update HelmRelease web", "update ConfigMap web-page", "create Job migrate"})
		})
	}
}
