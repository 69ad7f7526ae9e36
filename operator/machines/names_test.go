package machines_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	moby "github.com/moby/moby/client"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
)

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
	engine, err := w.engines[0].Client()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = engine.Close() }()
	servers, err := engine.ContainerList(t.Context(), moby.ContainerListOptions{Filters: moby.Filters{}.Add("label", docker.LabelNames)})
	if err != nil || len(servers.Items) != 1 {
		t.Fatalf("%d servers of names, want 1: %v", len(servers.Items), err)
	}
	if _, err := engine.ContainerRemove(t.Context(), servers.Items[0].ID, moby.ContainerRemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "web reaches backend again", ask)
}
