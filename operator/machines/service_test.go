package machines_test

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

func TestServicesComeUpAreUpdatedRepairedAndRemoved(t *testing.T) {
	w := newWorld(t, 2)
	w.start()
	w.want(w.machine(0), "Ready=True Connected: engine ")
	web := service("web", "app:1", 3)
	w.create(web)
	w.want(web, "Ready=True Deployed: all 3 containers work")
	w.wantContainers("web", "app:1 running, app:1 running", "app:1 running")
	if got := fmt.Sprint(web.Status.Containers, web.Status.Working, web.Status.UpToDate, len(web.Status.Machines)); got != "3 3 3 2" {
		t.Errorf("the status counts %s", got)
	}
	if ports := web.Status.Machines[0].Containers[0].Ports; len(ports) != 1 || ports[0].PublishedPort == 0 {
		t.Errorf("the status does not say at which port of the machine a container is reached: %v", ports)
	}

	change(w, web, func(s *v1alpha1.MachineService) { s.Spec.Container.Image = "app:2" })
	w.want(web, "Ready=True")
	w.wantContainers("web", "app:2 running, app:2 running", "app:2 running")

	// What somebody takes away is made again, because the engine tells of it.
	cli := w.client(w.engines[1])
	defer func() { _ = cli.Close() }()
	victim := web.Status.Machines[1].Containers[0].Name
	if err := cli.RemoveContainer(ofServices(t.Context()), w.engines[1].Name(), victim); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "there is another container", func() error {
		if got := w.containers(w.engines[1], "web"); len(got) != 1 || got[0] != "app:2 running" {
			return fmt.Errorf("there is %q", got)
		}
		return nil
	})
	w.want(web, "Ready=True")

	if err := w.user.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	w.wantGone(web)
	w.wantContainers("web", "", "")
}

func TestVersionsThatFailAreGivenUpUntilTheyAreAskedForAgain(t *testing.T) {
	w := newWorld(t, 2)
	stop := w.start()
	web := service("web", "app:1", 2)
	web.Spec.Update.FailureAction = api.FailureRollback
	w.create(web)
	w.want(web, "Ready=True")

	change(w, web, func(s *v1alpha1.MachineService) { s.Spec.Container.Image = "app:bad" })
	w.want(web, "Blocked=True RolledBack: ")
	w.wantContainers("web", "app:1 running", "app:1 running")
	events := len(w.inventory(w.engines[0]).Containers)

	// A restart does not try it again either: the deletion of another service, which comes after it, shows that it was looked at.
	stop()
	w.start()
	w.want(web, "Blocked=True RolledBack: ")
	other := service("other", "app:1", 1)
	w.create(other)
	w.want(other, "Ready=True")
	if got := len(w.inventory(w.engines[0]).Containers); got > events+1 {
		t.Errorf("there are %d containers where %d were", got, events)
	}

	change(w, web, func(s *v1alpha1.MachineService) {
		s.Annotations = map[string]string{v1alpha1.RetryAnnotation: "once more"}
	})
	operatortest.Eventually(t, "it is tried again", func() error {
		w.want(web, "Blocked=True RolledBack: ")
		if web.Status.GivenUp.Retry != "once more" {
			return fmt.Errorf("it was given up as %v", web.Status.GivenUp)
		}
		return nil
	})
	change(w, web, func(s *v1alpha1.MachineService) { s.Spec.Container.Image = "app:2" })
	w.want(web, "Ready=True")
	w.wantContainers("web", "app:2 running", "app:2 running")
}

func TestVersionsAreGivenUpAlsoAfterARestartThatBeginsWithAnError(t *testing.T) {
	w := newWorld(t, 1)
	stop := w.start()
	web := service("web", "app:bad", 1)
	w.create(web)
	w.want(web, "Blocked=True Paused: ")
	ids := func() (ids []string) {
		for _, c := range w.inventory(w.engines[0]).Containers {
			ids = append(ids, c.ID)
		}
		return ids
	}
	tried := ids()
	stop()

	if err := w.engines[0].Hang(); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.want(w.machine(0), "Ready=Unknown Unreachable: ")
	w.want(web, "Blocked=True Unschedulable: ")
	if err := w.engines[0].Continue(); err != nil {
		t.Fatal(err)
	}
	w.want(web, "Blocked=True Paused: ")
	if now := ids(); len(tried) == 0 || !slices.Equal(now, tried) {
		t.Errorf("the containers are %v, want %v: it was tried again", now, tried)
	}
}

// neverReady is a service whose containers never become healthy by themselves, and are waited for.
func neverReady(name string, replicas int32) *v1alpha1.MachineService {
	svc := service(name, "app:slow", replicas)
	svc.Spec.Container.HealthCheck = &api.HealthCheck{StartPeriod: metav1.Duration{Duration: 5 * time.Minute}}
	return svc
}

func TestVersionsAreNotGivenUpBecauseAMachineDoesNotAnswer(t *testing.T) {
	w := newWorld(t, 1)
	w.start()
	web := neverReady("web", 1)
	w.create(web)
	operatortest.Eventually(t, "the container is waited for", func() bool {
		return strings.Join(w.containers(w.engines[0], "web"), "") == "app:slow running"
	})
	first := w.inventory(w.engines[0]).Containers[0].ID
	if err := w.engines[0].Hang(); err != nil {
		t.Fatal(err)
	}
	w.want(w.machine(0), "Ready=Unknown Unreachable: ")
	if err := w.engines[0].Continue(); err != nil {
		t.Fatal(err)
	}
	w.want(w.machine(0), "Ready=True")
	// What the first try could not remove is waited for again; what it could is made anew.
	operatortest.Eventually(t, "it is tried again", func() error {
		w.want(web, "Progressing=True Retrying: 0 of 1 operations done; ")
		again := strings.Contains(web.Status.Conditions[0].Message, "; starting web-")
		if now := w.inventory(w.engines[0]).Containers; !again && (len(now) == 0 || now[0].ID == first) {
			return fmt.Errorf("the containers are %v", now)
		}
		return nil
	})
}

func TestVersionsThatHaveWorkedAreNotGivenUp(t *testing.T) {
	w := newWorld(t, 1)
	stop := w.start()
	held := listen(t, w.engines[0], 0)
	port := held.Addr().(*net.TCPAddr).Port
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	web := service("web", "app:1", 1)
	web.Spec.Ports[0].PublishedPort = uint16(port)
	w.create(web)
	w.want(web, "Ready=True")
	stop()

	// Somebody stops the container and takes its port, so that the engine can't start it.
	cli := w.client(w.engines...)
	defer func() { _ = cli.Close() }()
	if err := cli.StopContainer(ofServices(t.Context()), w.engines[0].Name(), web.Status.Machines[0].Containers[0].Name, 0); err != nil {
		t.Fatal(err)
	}
	held = listen(t, w.engines[0], port)
	w.start()
	operatortest.Eventually(t, "the failure is told", func() error {
		w.want(web, "Ready=False Retrying: ")
		if message := web.Status.Conditions[0].Message; !strings.Contains(message, "; the last try failed: ") {
			return errors.New(message)
		}
		return nil
	})
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	w.want(web, "Ready=True")
	w.wantContainers("web", "app:1 running")
}

// listen takes a port at the address where an engine publishes.
func listen(t *testing.T, e *dockertest.Engine, port int) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", e.Address(), port))
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

func TestAnotherSpecEndsThePlanOfTheOneBefore(t *testing.T) {
	w := newWorld(t, 1)
	w.start()
	web := neverReady("web", 1)
	w.create(web)
	operatortest.Eventually(t, "the container is waited for", func() bool {
		return strings.Join(w.containers(w.engines[0], "web"), "") == "app:slow running"
	})
	change(w, web, func(s *v1alpha1.MachineService) {
		s.Spec.Container.Image, s.Spec.Container.HealthCheck = "app:2", nil
	})
	w.want(web, "Ready=True")
	w.wantContainers("web", "app:2 running")
}

func TestEveryFaultOfASpecIsInTheCondition(t *testing.T) {
	w := newWorld(t, 1)
	w.start()
	web := service("web", "app:1", 1)
	web.Spec.Container.VolumeMounts = []api.VolumeMount{{Volume: "none", Path: "data"}}
	web.Spec.Container.HealthCheck = &api.HealthCheck{Interval: metav1.Duration{Duration: time.Microsecond}}
	web.Spec.Strategy = v1alpha1.Strategy{Type: v1alpha1.StrategyCanary, Steps: []v1alpha1.CanaryStep{{Percent: 20}, {Percent: 10}}}
	w.create(web)
	w.want(web, "Blocked=True Invalid: ")
	message := web.Status.Conditions[0].Message
	for _, want := range []string{"container.volumeMounts[0].volume", "container.volumeMounts[0].path", "container.healthCheck.interval", "strategy.steps[1].percent"} {
		if !strings.Contains(message, want) {
			t.Errorf("the message lacks %s: %s", want, message)
		}
	}

	change(w, web, func(s *v1alpha1.MachineService) {
		s.Spec.Container.VolumeMounts, s.Spec.Container.HealthCheck = nil, nil
		s.Spec.Strategy = v1alpha1.Strategy{}
		s.Spec.Container.Image = "app:none"
	})
	w.want(web, "Blocked=True Unschedulable: ")
	change(w, web, func(s *v1alpha1.MachineService) { s.Spec.Container.Image = "app:1" })
	w.want(web, "Ready=True")
}

func TestServicesAreOnlyPlannedForWithPlanOnly(t *testing.T) {
	w := newWorld(t, 1)
	w.plan = true
	w.start()
	web := service("web", "app:1", 1)
	web.Spec.Container.SecretEnv = map[string]api.Hidden{"TOKEN": "s3cr3t"}
	w.create(web)
	w.want(web, "Planned=True ChangesPlanned: 1 to create, 0 to update, 0 to delete")
	text := strings.Join(web.Status.Plan, "\n")
	for _, want := range []string{"+ Container engine-1/web-", `+ container.image: "app:1"`, "+ container.env.TOKEN: (sensitive)"} {
		if !strings.Contains(text, want) {
			t.Errorf("the plan lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "s3cr3t") {
		t.Error("the plan shows a secret")
	}
	w.wantContainers("web", "")
	if len(web.Finalizers) > 0 {
		t.Errorf("it has the finalizers %q", web.Finalizers)
	}
}
