package native_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/manifest"
)

const hookText = `apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {"helm.sh/hook": "pre-install,pre-upgrade", "helm.sh/hook-delete-policy": before-hook-creation}
spec:
  backoffLimit: 0
  template:
    spec: {restartPolicy: Never, containers: [{name: migrate, image: migrate}]}
`

// end plays the controller of a Job until the function returned is called.
func (w *world) end(condition batchv1.JobConditionType) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		watch, err := w.east.Watch(w.t.Context(), &batchv1.JobList{}, client.InNamespace(w.namespace))
		if err != nil {
			w.t.Error(err)
			return
		}
		defer watch.Stop()
		for {
			select {
			case <-done:
				return
			case e := <-watch.ResultChan():
				job, ok := e.Object.(*batchv1.Job)
				if !ok || len(job.Status.Conditions) > 0 || job.DeletionTimestamp != nil {
					continue
				}
				now := metav1.Now()
				job.Status.StartTime = &now
				before := batchv1.JobFailureTarget
				if condition == batchv1.JobComplete {
					before, job.Status.CompletionTime, job.Status.Succeeded = batchv1.JobSuccessCriteriaMet, &now, 1
				}
				for _, is := range []batchv1.JobConditionType{before, condition} {
					job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
						Type: is, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "the migration gave up", LastTransitionTime: now,
					})
				}
				if err := w.east.Status().Update(w.t.Context(), job); client.IgnoreNotFound(err) != nil {
					w.t.Errorf("end the job: %v", err)
				}
			}
		}
	}()
	return func() { close(done); <-ended }
}

func TestAHookThatFailsIsTold(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	w.charts(map[string][]byte{
		"app-1.0.0.tgz":  chartOf(t, "app", "1.0.0", files{"templates/hook.yaml": hookText}),
		"fine-1.0.0.tgz": chartOf(t, "fine", "1.0.0", nil),
	})
	w.set("a", "east", w.service("app", "app-1.0.0"), w.service("fine", "fine-1.0.0"), w.service("after", "fine-1.0.0", "app"))
	stop := w.end(batchv1.JobFailed)
	w.settle("a", "after Pending, app Failed, fine Deployed")
	says(t, w.stateOf("a", "app").FailureMessage, "pre-install", "Job "+w.namespace+"/migrate", "the migration gave up")
	stop()
	defer w.end(batchv1.JobComplete)()
	w.settle("a", "after Deployed, app Deployed, fine Deployed")
	if got := w.stateOf("a", "app").FailureMessage; got != "" {
		t.Errorf("message: %q", got)
	}
}

func TestAHookThatHangsHoldsNobodyUp(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	w.charts(map[string][]byte{
		"app-1.0.0.tgz":  chartOf(t, "app", "1.0.0", files{"templates/hook.yaml": hookText}),
		"fine-1.0.0.tgz": chartOf(t, "fine", "1.0.0", nil),
	})
	w.set("a", "east", w.service("app", "app-1.0.0"), w.service("fine", "fine-1.0.0"), w.service("after", "fine-1.0.0", "app"))
	w.settle("a", "after Pending, app Provisioning, fine Deployed")
	says(t, w.condition("a", "app", native.ConditionHealthy).Message, "waits for the hook pre-install: Job "+w.namespace+"/migrate")
	w.settle("a", "after Pending, app Provisioning, fine Deployed")
	w.quiet("a")
	if work, err := w.compute("a"); err != nil || work.Requeue <= 0 {
		t.Errorf("it is not looked at again when the time of the hook is over: %+v, %v", work, err)
	}
	w.restart()
	w.settle("a", "after Pending, app Provisioning, fine Deployed")
	defer w.end(batchv1.JobComplete)()
	w.settle("a", "after Deployed, app Deployed, fine Deployed")
}

const definitionText = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.late.operatorkit.io}
spec:
  group: late.operatorkit.io
  scope: Namespaced
  names: {kind: Kind%[1]s, plural: %[1]ss, singular: %[1]s}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// TestADefinitionThatComesLate holds for charts and manifests: they wait while the cluster does not know a kind, and go on when it
// does.
func TestADefinitionThatComesLate(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	kind := strings.ReplaceAll(w.namespace, "-", "")
	object := fmt.Sprintf("apiVersion: late.operatorkit.io/v1\nkind: Kind%s\nmetadata: {name: %%s}\n", kind)
	w.manifests("definition", fmt.Sprintf(definitionText, kind))
	w.manifests("object", fmt.Sprintf(object, "of-manifests"))
	w.charts(map[string][]byte{"app-1.0.0.tgz": chartOf(t, "app", "1.0.0", files{"templates/object.yaml": fmt.Sprintf(object, "of-a-chart")})})
	w.set("a", "east", w.service("chart", "app-1.0.0"), w.service("object", "object"))
	w.settle("a", "chart Provisioning, object Provisioning")
	for _, service := range []string{"chart", "object"} {
		says(t, w.condition("a", service, native.ConditionHealthy).Message, "waits for the kind Kind"+kind)
	}
	w.set("b", "east", w.service("definition", "definition"))
	w.settle("b", "definition Deployed")
	w.settle("a", "chart Deployed, object Deployed")
	for _, name := range []string{"a", "b"} {
		if err := w.client.Delete(t.Context(), w.get(name)); err != nil {
			t.Fatal(err)
		}
		w.settle(name, "")
	}
}

// down registers an API that nobody serves, and returns what takes it away again.
func (w *world) down(group string) (remove func()) {
	w.t.Helper()
	api := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1." + group},
		"spec": map[string]any{
			"group": group, "version": "v1", "groupPriorityMinimum": int64(10), "versionPriority": int64(10), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": w.namespace, "name": "nowhere"},
		},
	}}
	if err := w.east.Create(w.t.Context(), api); err != nil {
		w.t.Fatal(err)
	}
	remove = sync.OnceFunc(func() {
		if err := w.east.Delete(context.Background(), api); err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(remove)
	operatortest.Eventually(w.t, "the API is down", func() error {
		if err := w.east.Get(w.t.Context(), client.ObjectKeyFromObject(api), api); err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(api.Object, "status", "conditions")
		if len(conditions) == 0 || conditions[0].(map[string]any)["status"] != "False" {
			return fmt.Errorf("its conditions are %v", conditions)
		}
		return nil
	})
	return remove
}

// TestAnAPIThatIsDownIsTheTroubleOfThoseWhoNeedIt registers an API on the cluster that does not answer, as that of a metrics server
// which is not there.
func TestAnAPIThatIsDownIsTheTroubleOfThoseWhoNeedIt(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	group := w.namespace + ".operatorkit.io"
	w.charts(map[string][]byte{"app-1.0.0.tgz": chartOf(t, "app", "1.0.0", nil)})
	w.manifests("files", configMapText("one", "1"))
	w.manifests("needy", "apiVersion: "+group+"/v1\nkind: Thing\nmetadata: {name: needy}\n")
	remove := w.down(group)
	w.set("a", "east", w.service("app", "app-1.0.0"), w.service("needy", "needy"), w.service("files", "files"))
	w.settle("a", "app Deployed, files Deployed, needy Failed")
	says(t, w.stateOf("a", "needy").FailureMessage, "Thing", group)
	t.Logf("needy: %s", w.stateOf("a", "needy").FailureMessage)

	// What runs is changed and taken away meanwhile.
	w.configMap("files", map[string]string{"all.yaml": configMapText("two", "2")})
	w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Services = s.Spec.Services[1:] })
	w.settle("a", "files Deployed, needy Failed")
	if got := w.onEast("two").Data["text"]; got != "2" {
		t.Errorf("the text is %q", got)
	}
	remove()
}

func TestANamespaceThatIsTerminating(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	w.charts(map[string][]byte{"app-1.0.0.tgz": chartOf(t, "app", "1.0.0", nil)})
	w.manifests("files", configMapText("one", "1"))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	holder := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "holder", Finalizers: []string{"test.operatorkit.io/hold"}}}
	for _, obj := range []client.Object{namespace, holder} {
		if err := w.east.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.east.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	w.set("a", "east", w.service("app", "app-1.0.0"), w.service("files", "files"))
	for range 3 {
		_, _ = w.step("a")
	}
	for _, name := range []string{"app", "files"} {
		s := w.stateOf("a", name)
		text := s.FailureMessage + w.condition("a", name, native.ConditionHealthy).Message
		t.Logf("%s is %s: %s", name, s.State, text)
		says(t, text, w.namespace, "delet")
		if s.State == v1alpha1.ServiceStateDeployed {
			t.Errorf("%s is %s", name, s.State)
		}
	}
	holder.ResourceVersion, holder.Finalizers = "", nil // the controller of namespaces may have deleted it meanwhile
	if err := w.east.Update(t.Context(), holder); err != nil {
		t.Fatal(err)
	}
	w.settle("a", "app Deployed, files Deployed")
}

func TestAnInventoryThatCanNotBeReadIsTheTroubleOfItsServiceAlone(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	w.manifests("one", configMapText("one", "1"))
	w.manifests("two", configMapText("two", "1"))
	w.set("a", "east", w.service("one", "one"), w.service("two", "two"))
	w.settle("a", "one Deployed, two Deployed")
	inventory := &corev1.Secret{}
	if err := w.east.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: manifest.InventoryPrefix + "two"}, inventory); err != nil {
		t.Fatal(err)
	}
	forged := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "forged", Labels: maps.Clone(inventory.Labels)}}
	forged.Labels[carrier.ServiceLabel] = "forged"
	if err := w.east.Create(t.Context(), forged); err != nil {
		t.Fatal(err)
	}
	inventory.Annotations = nil
	if err := w.east.Update(t.Context(), inventory); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.configMap("one", map[string]string{"all.yaml": configMapText("one", "2")})
	work, err := w.compute("a")
	if err != nil {
		t.Fatal(err)
	}
	says(t, strings.Join(work.Notes, "\n"), "service "+w.namespace+"/forged, which the cluster names, is left as it is", "Secret "+w.namespace+"/forged")
	w.settle("a", "one Deployed, two Deployed")
	if got := w.onEast("one").Data["text"]; got != "2" {
		t.Errorf("the text is %q", got)
	}
	says(t, w.condition("a", "two", native.ConditionResolved).Message, "Secret "+w.namespace+"/"+inventory.Name, "delete the Secret")

	// As it says. What nobody can read does not keep the set from going.
	if err := w.east.Delete(t.Context(), inventory); err != nil {
		t.Fatal(err)
	}
	w.settle("a", "one Deployed, two Deployed")
	if err := w.client.Delete(t.Context(), w.get("a")); err != nil {
		t.Fatal(err)
	}
	w.settle("a", "")
	if work := w.mustStep("a"); work.Left {
		t.Error("the set does not go")
	}
}
