package machines_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

	operatormachines "github.com/operatorkit/operatorkit/operator/machines"
	machinesv1alpha1 "github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/statemanagers/machines"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
)

func TestStatesFollowWhatTheMachineServiceSays(t *testing.T) {
	w := newWorld(t)
	w.templates(w.set, "web-1", "web-2")
	list(w.set, "web=web-1")
	w.want(w.set, "at first", "web Provisioning web-1")
	w.says("web", operatormachines.ConditionProgressing, "2 to create")
	work := w.want(w.set, "while it is deployed", "web Provisioning web-1")
	if got := condition(work, native.ConditionHealthy); got != "Unknown Provisioning: 2 to create" {
		t.Errorf("the condition Healthy is %q", got)
	}
	w.works("web")
	work = w.want(w.set, "when it is ready", "web Deployed web-1")
	last := work.Services[0].LastDeployed
	if last == nil || last.Template != "web-1" || last.Version != "v-web-1" || last.Fingerprint != w.service("web").Annotations[machines.FingerprintAnnotation] {
		t.Errorf("what was deployed last is %+v", last)
	}

	list(w.set, "web=web-2")
	w.want(w.set, "while its status is about the spec before", "web Provisioning web-2")
	w.says("web", operatormachines.ConditionBlocked, "rolled back: web-2 is unhealthy")
	w.want(w.set, "when it is blocked", "web Failed web-2: rolled back: web-2 is unhealthy")
	w.says("web", operatormachines.ConditionProgressing, "waits for a machine")
	service := w.service("web")
	service.Status.GivenUp = &machinesv1alpha1.GivenUp{
		Version: machinesv1alpha1.Version{Generation: service.Generation}, Reason: "Paused", Message: "too many failed",
	}
	if err := w.user.Status().Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	w.want(w.set, "when it is given up", "web Failed web-2: too many failed")
	w.works("web")
	w.want(w.set, "when it is ready after all", "web Deployed web-2")
}

func TestAJobIsDeployedWhenItHasCompleted(t *testing.T) {
	w := newWorld(t)
	w.create(files("migrate", strings.Replace(manifest("app"), "replicas: 1", "mode: job\n  dependsOn: [database]", 1)))
	w.templates(w.set, "migrate")
	list(w.set, "migrate=migrate")
	w.want(w.set, "at first", "migrate Provisioning migrate")
	w.says("migrate", operatormachines.ConditionProgressing, "the job to run")
	w.want(w.set, "while it runs", "migrate Provisioning migrate")
	w.says("migrate", operatormachines.ConditionReady, "the job has completed")
	w.want(w.set, "when it has completed", "migrate Deployed migrate")
	w.says("migrate", operatormachines.ConditionBlocked, "the job ended with exit code 3")
	w.want(w.set, "when it has failed", "migrate Failed migrate: the job ended with exit code 3")
}

func TestWhatPassesLeavesDeployedWhatIsDeployed(t *testing.T) {
	w := newWorld(t)
	w.templates(w.set, "web")
	values := files("values", "")
	values.Data = map[string]string{"values.yaml": "replicas: 2"}
	w.create(values)
	entry := list(w.set, "web=web")
	entry.ValuesFrom = []v1alpha1.ValuesFrom{{Kind: statemanager.KindConfigMap, Name: "values"}}
	w.settle(w.set)
	w.works("web")
	w.want(w.set, "at first", "web Deployed web")

	// What it is made of can't be read, whichever part of it.
	for _, name := range []string{"values", "web"} {
		gone := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
		if err := w.user.Delete(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
		work := w.want(w.set, "without "+name, "web Deployed web")
		if got := condition(work, native.ConditionResolved); !strings.HasPrefix(got, "False Missing: read the ") {
			t.Errorf("without %s the condition Resolved is %q", name, got)
		}
		if len(work.Operations) != 1 || work.Operations[0].Err == nil {
			t.Errorf("without %s the operations are %+v", name, work.Operations)
		}
	}
	template := w.set.Templates["web"]
	delete(w.set.Templates, "web")
	w.want(w.set, "without the template", "web Deployed web")
	w.set.Templates["web"] = template

	// It does not hide that what runs is not well, and another desire is not Deployed.
	w.says("web", operatormachines.ConditionBlocked, "no machine")
	w.want(w.set, "when it is blocked", "web Failed web: read the values: ConfigMap "+w.namespace+"/values does not exist: create it")
	w.works("web")
	w.set.ServiceSet.Spec.Services[0].Values = "replicas: 3"
	w.want(w.set, "with other values", "web Failed web: read the values: ConfigMap "+w.namespace+"/values does not exist: create it")
	if got := *w.service("web").Spec.Replicas; got != 2 {
		t.Errorf("it has %d replicas", got)
	}
}

func TestServicesWaitForThoseThatTheyDependOn(t *testing.T) {
	w := newWorld(t)
	w.templates(w.set, "db", "web", "db-2", "web-2")
	list(w.set, "web=web", "db")
	list(w.set, "db=db")
	work := w.want(w.set, "at first", "db Provisioning db; web Pending web")
	if w.service("web") != nil {
		t.Error("it is there before what it depends on")
	}
	if notes := fmt.Sprint(work.Operations[0].Notes); notes != "[service apps/web waits until these services are Deployed: apps/db]" {
		t.Errorf("the notes are %s", notes)
	}
	w.works("db")
	w.want(w.set, "when db is there", "db Deployed db; web Provisioning web")
	w.works("web")
	w.want(w.set, "when both are there", "db Deployed db; web Deployed web")

	// An update waits too, and what runs stays.
	list(w.set, "web=web-2", "db")
	list(w.set, "db=db-2")
	w.want(w.set, "with other templates", "db Provisioning db-2; web Deployed web")
	if got := w.service("web").Spec.Container.Image; got != "web" {
		t.Errorf("the image is %s before db is there", got)
	}
	w.works("db")
	w.settle(w.set)
	w.works("web")
	w.want(w.set, "when all is updated", "db Deployed db-2; web Deployed web-2")

	// Something holds web while it is deleted.
	w.change("web", func(s *machinesv1alpha1.MachineService) { s.Finalizers = []string{"example.com/holds"} })
	drop(w.set, "db", "web")
	w.want(w.set, "while web is removed", "db Deleting db-2; web Deleting web-2")
	if w.service("db").DeletionTimestamp != nil {
		t.Error("db is deleted before what depends on it is gone")
	}
	w.change("web", func(s *machinesv1alpha1.MachineService) { s.Finalizers = nil })
	if work := w.want(w.set, "when all is gone", ""); work.Left || w.service("db") != nil {
		t.Errorf("something is left: %+v", work)
	}
}

func TestADeletedSetWaitsUntilItsServicesAreGone(t *testing.T) {
	w := newWorld(t)
	w.templates(w.set, "web")
	list(w.set, "web=web")
	w.settle(w.set)
	w.change("web", func(s *machinesv1alpha1.MachineService) { s.Finalizers = []string{"example.com/holds"} })
	service := w.service("web")
	service.Status.Machines = []machinesv1alpha1.MachineContainers{{Name: "one", State: api.MachineUnknown}}
	if err := w.user.Status().Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	w.says("web", operatormachines.ConditionProgressing, "its containers are being removed: machine one does not answer")
	w.set.ServiceSet.DeletionTimestamp = &metav1.Time{Time: service.CreationTimestamp.Time}
	work := w.want(w.set, "while a machine does not answer", "web Deleting web")
	note := "service apps/web is not gone: its containers are being removed: machine one does not answer"
	if !work.Left || len(work.Notes) != 1 || work.Notes[0] != note {
		t.Errorf("left: %v, notes: %q", work.Left, work.Notes)
	}
	w.set.ServiceSet.Annotations = map[string]string{statemanager.LetGoAnnotation: "true"}
	if work = w.want(w.set, "when it is let go of", ""); work.Left {
		t.Error("it waits still")
	}
	w.change("web", func(s *machinesv1alpha1.MachineService) { s.Finalizers = nil })
}
