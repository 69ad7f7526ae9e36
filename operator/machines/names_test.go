package machines_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/events"
	moby "github.com/moby/moby/client"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

// takeAway removes the one container of an engine that has a label.
func (w *world) takeAway(e *dockertest.Engine, label string) {
	w.t.Helper()
	engine, err := e.Client()
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = engine.Close() }()
	found, err := engine.ContainerList(w.t.Context(), moby.ContainerListOptions{Filters: moby.Filters{}.Add("label", label)})
	if err != nil || len(found.Items) != 1 {
		w.t.Fatalf("%d containers have label %s, want 1: %v", len(found.Items), label, err)
	}
	if _, err := engine.ContainerRemove(w.t.Context(), found.Items[0].ID, moby.ContainerRemoveOptions{Force: true}); err != nil {
		w.t.Fatal(err)
	}
}

func TestServicesReachEachOtherByNameAlsoWhenTheServerOfNamesWasTakenAway(t *testing.T) {
	w := newWorld(t, 1)
	w.names = &docker.Names{Image: "names:1"}
	w.start()
	web, backend := service("web", "app:1", 1), service("backend", "app:2", 2)
	backend.Spec.Ports = nil
	w.create(web, backend)
	ask := func() error {
		if err := w.user.Get(t.Context(), client.ObjectKeyFromObject(web), web); err != nil {
			return err
		}
		if len(web.Status.Machines) == 0 || len(web.Status.Machines[0].Containers) == 0 || len(web.Status.Machines[0].Containers[0].Ports) == 0 {
			return errors.New("web has no container with a port")
		}
		at := web.Status.Machines[0].Containers[0].Ports[0]
		response, err := http.Get(fmt.Sprintf("http://%s:%d/fetch?url=%s", w.engines[0].Address(), at.PublishedPort, url.QueryEscape("http://backend:8080/")))
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err == nil && !strings.HasPrefix(string(body), "version 2 ") {
			err = fmt.Errorf("backend says %s: %q", response.Status, body)
		}
		return err
	}
	operatortest.Eventually(t, "web reaches backend by its name", ask)
	w.takeAway(w.engines[0], docker.LabelNames)
	operatortest.Eventually(t, "web reaches backend again", ask)
}

func TestVersionsAreNotGivenUpBecauseTheImageOfTheServerOfNamesCantBePulled(t *testing.T) {
	w := newWorld(t, 1)
	// Nobody answers there, and no engine has it from an earlier test.
	image := "127.0.0.1:1/names:" + w.namespace
	w.names = &docker.Names{Image: image}
	w.start()
	web := service("web", "app:1", 1)
	w.create(web)
	w.wantHolding(web, "Ready=False Retrying: ", "make the network for names: pull image "+image+": ")
	if err := w.engines[0].Load(t.Context(), dockertest.Names(image)); err != nil {
		t.Fatal(err)
	}
	w.want(web, "Ready=True Deployed")
}

// pauses are the times between the removal of a container of a service on an engine and the creation of the next one, from now on.
func (w *world) pauses(e *dockertest.Engine, service string) func(n int) []time.Duration {
	w.t.Helper()
	engine, err := e.Client()
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = engine.Close() })
	info, err := engine.Info(w.t.Context(), moby.InfoOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	found := engine.Events(w.t.Context(), moby.EventsListOptions{
		Since: info.Info.SystemTime, Filters: moby.Filters{}.Add("event", "create", "destroy").Add("label", docker.LabelService+"="+service),
	})
	return func(n int) (pauses []time.Duration) {
		w.t.Helper()
		var removed int64
		late := time.After(5 * time.Minute) // so that it does not wait for ever
		for len(pauses) < n {
			select {
			case <-late:
				w.t.Fatalf("gave up waiting for %d pauses: there were %s", n, pauses)
			case message := <-found.Messages:
				switch {
				case message.Action == events.ActionDestroy:
					removed = message.TimeNano
				case removed != 0:
					pauses = append(pauses, time.Duration(message.TimeNano-removed))
				}
			case err := <-found.Err:
				w.t.Fatal(err)
			}
		}
		return pauses
	}
}

func TestWhatIsUndoneForWantOfTheServerOfNamesIsNotDoneAgainWithoutAPause(t *testing.T) {
	w := newWorld(t, 2)
	// The first engine has it, and the other one can't get it.
	image := "127.0.0.1:1/names:" + w.namespace
	if err := w.engines[0].Load(t.Context(), dockertest.Names(image)); err != nil {
		t.Fatal(err)
	}
	w.names = &docker.Names{Image: image}
	pauses := w.pauses(w.engines[0], "web")
	w.start()
	for _, e := range w.engines { // a plan for the first one alone would succeed
		m := machineOf(e)
		m.Namespace = w.namespace
		w.want(m, "Ready=True Connected")
	}
	web := service("web", "app:1", 0)
	web.Spec.Mode, web.Spec.Replicas, web.Spec.Strategy.Type = api.ServiceModeGlobal, nil, v1alpha1.StrategyBlueGreen
	w.create(web)
	for i, pause := range pauses(3) {
		if want := time.Second << i; pause < want {
			t.Errorf("the container that was put away on the first engine was made again after %s, want %s", pause, want)
		}
	}
	w.wantHolding(web, "Ready=False Retrying: ", "make the network for names: pull image "+image+": ")
	if err := w.engines[1].Load(t.Context(), dockertest.Names(image)); err != nil {
		t.Fatal(err)
	}
	w.want(web, "Ready=True Deployed")
}
