package machines_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	example "github.com/operatorkit/operatorkit/examples/machines"
	"github.com/operatorkit/operatorkit/examples/machines/shop"
	"github.com/operatorkit/operatorkit/operator/command/commandtest"
	"github.com/operatorkit/operatorkit/operator/machines"
	"github.com/operatorkit/operatorkit/operator/machines/compose"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

// street is three machines with a shop, and its customers.
type street struct {
	*testing.T
	engines   []*dockertest.Engine
	user      client.Client
	namespace string
	services  map[string]*v1alpha1.MachineService
	customers *http.Client
}

// newStreet runs the operator for three machines, of which the first one is marked, and makes services of the Compose file.
func newStreet(t *testing.T) *street {
	t.Helper()
	dockertest.RequireCaddy(t)
	dockertest.RequirePostgreSQL(t)
	config := example.Config(machines.Config{
		Names: &docker.Names{Image: "names:1"}, Ingress: &docker.Ingress{Image: "caddy:1", Internal: true},
		BackOffFactory: func() backoff.BackOff { return backoff.NewConstantBackOff(time.Second) },
	})
	life, kube := commandtest.Scenario(t, config), operatortest.Start(t)
	s := &street{
		T: t, engines: dockertest.Start(t, 3), namespace: kube.Namespace(t), services: map[string]*v1alpha1.MachineService{},
		user: operatortest.NewClient(t, kube.RESTConfig(), life.Scheme),
	}
	s.customers = &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(s.engines[0].Address(), "80"))
	}}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- commandtest.Start(config)(ctx, kube.RESTConfig(), s.namespace) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the operator has ended: %v", err)
		}
	})
	images := slices.Concat(example.ShopImages(), example.Images(), []dockertest.Image{dockertest.Names("names:1"), dockertest.Caddy("caddy:1")})
	for i, e := range s.engines {
		s.must(e.Load(t.Context(), images...))
		machine := example.NewMachine(s.namespace, e)
		machine.Spec.MeshAddress = e.MeshAddress()
		if i == 0 {
			machine.Spec.Ingress = &v1alpha1.MachineIngress{}
		}
		s.must(s.user.Create(t.Context(), machine))
	}
	last := s.engines[len(s.engines)-1]
	project, err := compose.Load(t.Context(), compose.Source{
		Files: []string{"compose.yaml"}, Environment: []string{"DATABASE=" + last.MeshAddress(), "MACHINE=" + last.Name(), "PASSWORD=not-so-secret"},
	})
	s.must(err)
	converted, err := compose.Convert(project)
	s.must(err)
	for _, remark := range converted.Remarks {
		t.Errorf("%s: %s", remark.Path, remark.Text)
	}
	for _, service := range converted.Services {
		service.Namespace = s.namespace
		s.services[service.Name] = service
		s.must(s.user.Create(t.Context(), service))
	}
	return s
}

func (s *street) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// wantDeployed waits until a service is deployed, on these machines or, without any, somewhere.
func (s *street) wantDeployed(name string, on ...*dockertest.Engine) {
	s.Helper()
	operatortest.Eventually(s.T, name+" is deployed", func() error {
		service := s.services[name]
		if err := s.user.Get(s.Context(), client.ObjectKeyFromObject(service), service); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(service.Status.Conditions, machines.ConditionReady)
		if ready == nil || ready.Status != metav1.ConditionTrue || ready.Reason != machines.ReasonDeployed || ready.ObservedGeneration != service.Generation {
			return fmt.Errorf("generation %d has the status %+v", service.Generation, service.Status)
		}
		for _, m := range service.Status.Machines {
			found := len(on) == 0
			for _, e := range on {
				found = found || e.Name() == m.Name
			}
			if !found {
				return fmt.Errorf("there is a container on %s", m.Name)
			}
		}
		return nil
	})
}

// patch changes a service.
func (s *street) patch(name, document string) {
	s.Helper()
	s.must(s.user.Patch(s.Context(), s.services[name], client.RawPatch("application/merge-patch+json", []byte(document))))
}

// ask has a customer look at the shop, or order something.
func (s *street) ask(method string) (string, error) {
	return shop.Ask(s.Context(), s.customers, method, "http://www.shop.test/")
}

func (s *street) wantShop(method, want string) {
	s.Helper()
	if got, err := s.ask(method); err != nil || got != want {
		s.Errorf("%s: %q, %v, want %q", method, got, err, want)
	}
}

// TestAComposeFileRunsOnThreeMachines is a page, an API and a PostgreSQL, which reach each other by their names whatever machines they are on.
func TestAComposeFileRunsOnThreeMachines(t *testing.T) {
	s := newStreet(t)
	for name := range s.services {
		s.wantDeployed(name)
	}
	s.wantShop(http.MethodPost, "orders 1, api 1, web 1")
	s.wantShop(http.MethodPost, "orders 2, api 1, web 1")

	// Updates lose no request.
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asked := 0
	asking.Go(func() {
		for ; ctx.Err() == nil; asked++ {
			if got, err := s.ask(http.MethodGet); err != nil || !strings.HasPrefix(got, "orders 2, ") {
				t.Errorf("in the update the shop says %q, %v", got, err)
			}
		}
	})
	for _, name := range []string{"api", "web"} {
		s.patch(name, `{"spec":{"container":{"image":"`+name+`:2"}}}`)
		s.wantDeployed(name)
	}
	// Nor does a version that does not work: it is rolled back.
	s.patch("web", `{"spec":{"container":{"image":"shop:bad","command":null},"update":{"failureAction":"rollback"}}}`)
	operatortest.Eventually(t, "the version that does not work is rolled back", func() error {
		web := s.services["web"]
		if err := s.user.Get(t.Context(), client.ObjectKeyFromObject(web), web); err != nil {
			return err
		}
		blocked := meta.FindStatusCondition(web.Status.Conditions, machines.ConditionBlocked)
		if blocked == nil || blocked.Reason != machines.ReasonRolledBack || blocked.ObservedGeneration != web.Generation {
			return fmt.Errorf("generation %d has the status %+v", web.Generation, web.Status)
		}
		return nil
	})
	s.patch("web", `{"spec":{"container":{"image":"web:2","command":["web"]}}}`)
	s.wantDeployed("web")
	cancel()
	asking.Wait()
	t.Logf("%d requests in the updates", asked)
	s.wantShop(http.MethodGet, "orders 2, api 2, web 2")

	// The data are there after the container of the database is another one,
	was := s.services["database"].Status.Machines[0].Containers[0].Name
	s.patch("database", `{"spec":{"container":{"env":{"ANOTHER":"one"}}}}`)
	s.wantDeployed("database")
	if now := s.services["database"].Status.Machines[0].Containers[0].Name; now == was {
		t.Errorf("the database has its container %s still", now)
	}
	s.wantShop(http.MethodPost, "orders 3, api 2, web 2")

	// and when a machine is drained.
	drained := example.NewMachine(s.namespace, s.engines[1])
	s.must(s.user.Delete(t.Context(), drained))
	operatortest.Eventually(t, drained.Name+" has gone", func() error {
		err := s.user.Get(t.Context(), client.ObjectKeyFromObject(drained), drained)
		if client.IgnoreNotFound(err) == nil && err != nil {
			return nil
		}
		return errors.Join(err, fmt.Errorf("it is there: %+v", drained.Status.Conditions))
	})
	for name := range s.services {
		s.wantDeployed(name, s.engines[0], s.engines[2])
	}
	s.wantShop(http.MethodPost, "orders 4, api 2, web 2")
}
