package machines_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	moby "github.com/moby/moby/client"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/machines"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// job is a job of the program of images.
func job(name string, arguments ...string) *v1alpha1.MachineService {
	svc := service(name, "app:1", 1)
	svc.Spec.Mode, svc.Spec.Replicas, svc.Spec.Ports, svc.Spec.Container.Command = api.ServiceModeJob, nil, nil, arguments
	return svc
}

// ids are those of the containers of a service on all engines.
func (w *world) ids(service string) []string {
	w.t.Helper()
	var ids []string
	for _, e := range w.engines {
		for _, c := range w.inventory(e).Containers {
			if c.ServiceName == service {
				ids = append(ids, c.ID)
			}
		}
	}
	return ids
}

// prune removes what does not run, as a person does.
func (w *world) prune() {
	w.t.Helper()
	for _, e := range w.engines {
		engine, err := e.Client()
		if err != nil {
			w.t.Fatal(err)
		}
		if _, err := engine.ContainerPrune(w.t.Context(), moby.ContainerPruneOptions{}); err != nil {
			w.t.Fatal(err)
		}
		_ = engine.Close()
	}
}

func TestAJobCompletesOnceAndOthersWaitForIt(t *testing.T) {
	w := newWorld(t, 2)
	stop := w.start()
	web := service("web", "app:1", 1)
	web.Spec.DependsOn = []string{"migrate"}
	w.create(web)
	w.want(web, "Ready=False Waiting: waits for service migrate, which does not exist")
	migrate := job("migrate", "hang")
	w.create(migrate)
	w.want(web, "Ready=False Waiting: waits for job migrate, which has not completed")
	operatortest.Eventually(t, "it runs", func() bool { return len(w.ids("migrate")) == 1 })
	change(w, migrate, func(s *v1alpha1.MachineService) { s.Spec.Container.Command = []string{"exit", "0"} })
	w.want(migrate, "Ready=True Completed: the job has completed")
	w.want(web, "Ready=True Deployed: ")
	if on := migrate.Status.Machines; len(on) != 1 || on[0].Containers[0].State != api.ContainerExited || !on[0].Containers[0].UpToDate {
		t.Errorf("the status says %+v", on)
	}
	ran := w.ids("migrate")

	// What is unchanged is not run again: after a restart, with other fields, and without its container.
	stop()
	stop = w.start()
	w.want(w.machine(0), "Ready=True")
	change(w, migrate, func(s *v1alpha1.MachineService) {
		s.Spec.Container.RestartPolicy = api.RestartPolicy{Name: api.RestartOnFailure, MaxRetries: 2}
	})
	w.want(migrate, "Ready=True Completed: ")
	if now := w.ids("migrate"); !slices.Equal(now, ran) {
		t.Errorf("it ran again: %v, was %v", now, ran)
	}
	w.prune()
	operatortest.Eventually(t, "the status says that its container is gone", func() error {
		w.want(migrate, "Ready=True Completed: ")
		if migrate.Status.Containers != 0 {
			return fmt.Errorf("it says %+v", migrate.Status)
		}
		return nil
	})
	stop()
	w.start()
	change(w, migrate, func(s *v1alpha1.MachineService) { s.Annotations = map[string]string{"any": "other"} })
	w.want(w.machine(0), "Ready=True")
	w.want(migrate, "Ready=True Completed: ")
	if now := w.ids("migrate"); len(now) > 0 {
		t.Errorf("it ran again: %v", now)
	}

	// Another specification is, and so is one that is asked for once more.
	change(w, migrate, func(s *v1alpha1.MachineService) { s.Spec.Container.Env = map[string]string{"TO": "2"} })
	w.want(migrate, "Ready=True Completed: ")
	ran = w.ids("migrate")
	change(w, migrate, func(s *v1alpha1.MachineService) {
		s.Annotations = map[string]string{v1alpha1.RecreateAnnotation: "once more"}
	})
	operatortest.Eventually(t, "it runs again", func() bool {
		now := w.ids("migrate")
		return len(now) == 1 && len(ran) == 1 && now[0] != ran[0]
	})
	w.want(migrate, "Ready=True Completed: ")
}

func TestAJobThatFailsIsNotRunAgainByItself(t *testing.T) {
	w := newWorld(t, 1)
	stop := w.start()
	migrate := job("migrate", "no-such-step")
	w.create(migrate)
	w.want(migrate, "Blocked=True Failed: ")
	if message := meta.FindStatusCondition(migrate.Status.Conditions, machines.ConditionBlocked).Message; !strings.Contains(message, "exit code 1") || !strings.Contains(message, "no-such-step") {
		t.Errorf("it says %s", message)
	}
	ran := w.ids("migrate")
	stop()

	// Not either when the operator has not written why before it crashed.
	if err := w.user.Get(t.Context(), client.ObjectKeyFromObject(migrate), migrate); err != nil {
		t.Fatal(err)
	}
	migrate.Status = v1alpha1.MachineServiceStatus{}
	if err := w.user.Status().Update(t.Context(), migrate); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.want(migrate, "Blocked=True Failed: ")
	if now := w.ids("migrate"); !slices.Equal(now, ran) {
		t.Errorf("it ran again: %v, was %v", now, ran)
	}
	change(w, migrate, func(s *v1alpha1.MachineService) { s.Annotations = map[string]string{v1alpha1.RetryAnnotation: "1"} })
	operatortest.Eventually(t, "it is tried again", func() bool {
		now := w.ids("migrate")
		return len(now) == 1 && now[0] != ran[0]
	})
	w.want(migrate, "Blocked=True Failed: ")
	change(w, migrate, func(s *v1alpha1.MachineService) { s.Spec.Container.Command = []string{"exit", "0"} })
	w.want(migrate, "Ready=True Completed: ")
}

func TestAMachineWithACompletedJobCanGo(t *testing.T) {
	w := newWorld(t, 2)
	w.start()
	migrate := job("migrate", "exit", "0")
	migrate.Spec.Placement.Machines = []string{w.engines[0].Name()}
	w.create(migrate)
	w.want(migrate, "Ready=True Completed: ")
	first := w.machine(0)
	if err := w.user.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	w.wantGone(first)
	w.want(migrate, "Ready=True Completed: ")
	if now := w.ids("migrate"); len(now) > 0 {
		t.Errorf("it ran elsewhere: %v", now)
	}
}

func TestAServiceThatHasFailedForGoodIsNotStartedAgain(t *testing.T) {
	w := newWorld(t, 1)
	w.start()
	web := service("web", "app:1", 1)
	web.Spec.Container.RestartPolicy.Name = api.RestartNo
	w.create(web)
	w.want(web, "Ready=True Deployed: ")
	engine, err := w.engines[0].Client()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = engine.Close() }()
	if _, err := engine.ContainerKill(t.Context(), w.ids("web")[0], moby.ContainerKillOptions{Signal: "SIGKILL"}); err != nil {
		t.Fatal(err)
	}
	w.want(web, "Blocked=True Failed: container web-")
	w.wantContainers("web", "app:1 exited")
	change(w, web, func(s *v1alpha1.MachineService) { s.Annotations = map[string]string{v1alpha1.RecreateAnnotation: "1"} })
	w.want(web, "Ready=True Deployed: ")
}

func TestAGlobalServiceComesWhereTheVolumeOfAnotherOneIs(t *testing.T) {
	w := newWorld(t, 2)
	data := func(s *v1alpha1.MachineService) *v1alpha1.MachineService {
		s.Spec.Volumes = []api.VolumeSpec{{Name: "data"}}
		s.Spec.Container.VolumeMounts = []api.VolumeMount{{Volume: "data", Path: "/data"}}
		return s
	}
	agent, web := data(service("agent", "app:1", 1)), data(service("web", "app:1", 1))
	agent.Spec.Mode, agent.Spec.Replicas = api.ServiceModeGlobal, nil
	w.create(agent, web)
	w.start()
	w.want(web, "Ready=True Deployed: ")
	w.want(agent, "Ready=True Deployed: ")
	copies := 0
	for _, e := range w.engines {
		copies += len(w.inventory(e).Volumes)
	}
	if copies != 1 || len(w.ids("agent")) != 1 {
		t.Errorf("there are %d volumes, and agent is %v", copies, w.ids("agent"))
	}
}
