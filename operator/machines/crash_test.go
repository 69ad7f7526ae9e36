package machines_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/machines"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

// atOnce is how many runs of a sweep go on at once, each with an engine of its own.
const atOnce = 6

// crashes are runs, and their engines.
type crashes struct {
	*world
	free chan *dockertest.Engine
	mu   sync.Mutex
	of   map[string]*dockertest.Engine
}

func TestContainersAreAsTheyShouldBeWhateverWriteTheOperatorCrashesAt(t *testing.T) {
	life := lifeOfContainers(t)
	deploy := &life.Phases[0]
	deploy.Until = operatortest.All(deploy.Until, isUsedByTwo)
	operatortest.BreakAtEveryWrite(t, life)
}

// isClaimed is a condition: somebody has the service and the machine.
func isClaimed(ctx context.Context, user client.Client, namespace string) error {
	for name, o := range map[string]client.Object{"web": &v1alpha1.MachineService{}, "m": &v1alpha1.Machine{}} {
		if err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o); err != nil {
			return err
		}
		if o.GetAnnotations()[claimAnnotation] == "" {
			return fmt.Errorf("nobody has %s", name)
		}
	}
	return nil
}

// isUsedByTwo is a condition: two operators may have containers on the machine.
func isUsedByTwo(ctx context.Context, user client.Client, namespace string) error {
	m := &v1alpha1.Machine{}
	err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "m"}, m)
	if err == nil && len(m.Finalizers) != 2 {
		err = fmt.Errorf("the machine has the finalizers %q", m.Finalizers)
	}
	return err
}

func TestContainersAreAsTheyShouldBeWhenTheServerLags(t *testing.T) {
	life := lifeOfContainers(t)
	life.Neighbour = nil
	operatortest.LagAtEveryWrite(t, life)
}

func TestTheOperatorOfMachinesIsQuietWhenItHasNothingToDo(t *testing.T) {
	life := lifeOfContainers(t)
	life.Neighbour = nil
	operatortest.Quiet(t, life)
}

// lifeOfContainers is the life of a machine and of a service on it.
func lifeOfContainers(t *testing.T) operatortest.Scenario {
	t.Helper()
	c := &crashes{world: newWorld(t, atOnce), free: make(chan *dockertest.Engine, atOnce), of: map[string]*dockertest.Engine{}}
	for _, e := range c.engines {
		c.free <- e
	}
	web := &v1alpha1.MachineService{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	beside := *c.world
	beside.operator = "second"
	return operatortest.Scenario{
		Name: "a life of containers", Scheme: c.scheme, Config: c.kube.RESTConfig(), Parallel: atOnce, Timeout: 2 * time.Minute,
		Start: c.operate, Neighbour: beside.operate, NeighbourAfter: isClaimed, Cleanup: c.release, Normalize: hideWhatDiffers, List: c.containersAndObjects,
		Phases: []operatortest.Phase{
			{Name: "deploy", Do: c.deploy, Until: isDeployed("web")},
			{Name: "update", Do: c.update, Until: isDeployed("web")},
			{Name: "remove", Do: operatortest.Delete(web, machine), Until: operatortest.Gone(web, machine)},
		},
	}
}

// unchecked is a service without checks, which start a program several times a second for each container. Where many run at once, that
// is most of what there is to do.
func unchecked(name string, replicas int32) *v1alpha1.MachineService {
	svc := service(name, "app:1", replicas)
	svc.Spec.Container.HealthCheck = &api.HealthCheck{Disable: true}
	svc.Spec.Update.Monitor = &metav1.Duration{Duration: 100 * time.Millisecond}
	return svc
}

// operate runs an operator of a configuration.
func (w *world) operate(ctx context.Context, config *rest.Config, namespace string) error {
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		return err
	}
	deps, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: w.operator, RESTConfig: config, Scheme: w.scheme, Logger: logger, Namespaces: []string{namespace},
	})
	if err != nil {
		return err
	}
	defer deps.Close()
	operatortest.CountReconciliations(ctx, deps.Registry)
	frameworks, err := machines.New(deps, machines.Config{BackOffFactory: func() backoff.BackOff { return backoff.NewConstantBackOff(100 * time.Millisecond) }})
	if err != nil {
		return err
	}
	o, err := operator.New(operator.Config{Name: deps.Name, Logger: logger, RESTConfig: config, Frameworks: frameworks})
	if err != nil {
		return err
	}
	return o.Run(ctx)
}

// deploy makes a machine of a free engine, and a service with a container.
func (c *crashes) deploy(ctx context.Context, user client.Client, namespace string) error {
	e := <-c.free
	c.mu.Lock()
	c.of[namespace] = e
	c.mu.Unlock()
	m := machineOf(e)
	m.Name = "m"
	web := unchecked("web", 1)
	web.Spec.Ports = nil // those that engines pick differ
	return operatortest.Create(m, web)(ctx, user, namespace)
}

func (c *crashes) update(ctx context.Context, user client.Client, namespace string) error {
	web := &v1alpha1.MachineService{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	return user.Patch(ctx, web, client.RawPatch(types.MergePatchType, []byte(`{"spec": {"container": {"image": "app:2"}, "replicas": 2, "update": {"parallelism": 2}}}`)))
}

// release gives the engine of a run to the next one, with nothing of this one on it.
func (c *crashes) release(ctx context.Context, _ client.Client, namespace string) error {
	c.mu.Lock()
	e := c.of[namespace]
	delete(c.of, namespace)
	c.mu.Unlock()
	if e == nil {
		return nil
	}
	defer func() { c.free <- e }()
	cli, err := docker.New(docker.Config{Cluster: namespace, Machines: dockertest.Machines([]*dockertest.Engine{e})})
	if err != nil {
		return err
	}
	defer func() { _ = cli.Close() }()
	inventory, err := cli.InspectMachine(ctx, e.Name())
	for _, left := range inventory.Containers {
		err = errors.Join(err, cli.RemoveContainer(ofServices(ctx), e.Name(), left.ID))
	}
	return err
}

// containersAndObjects returns the objects of a run, and its containers as ConfigMaps.
func (c *crashes) containersAndObjects(ctx context.Context, user client.Client, namespace string) ([]client.Object, error) {
	c.mu.Lock()
	e := c.of[namespace]
	c.mu.Unlock()
	if e == nil {
		return nil, nil
	}
	lines, err := e.Containers(ctx, namespace)
	if err != nil {
		return nil, err
	}
	objects := []client.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "containers"}, Data: map[string]string{"are": strings.Join(lines, ", ")},
	}}
	var all v1alpha1.MachineList
	var services v1alpha1.MachineServiceList
	if err := errors.Join(user.List(ctx, &all, client.InNamespace(namespace)), user.List(ctx, &services, client.InNamespace(namespace))); err != nil {
		return nil, err
	}
	for i := range all.Items {
		objects = append(objects, &all.Items[i])
	}
	for i := range services.Items {
		objects = append(objects, &services.Items[i])
	}
	return objects, nil
}

// hideWhatDiffers takes out which engine a run has, and what is random in names.
func hideWhatDiffers(u *unstructured.Unstructured) {
	unstructured.RemoveNestedField(u.Object, "spec", "address")
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "machines")
	for _, m := range list {
		containers, _, _ := unstructured.NestedSlice(m.(map[string]any), "containers")
		for _, is := range containers {
			delete(is.(map[string]any), "name")
		}
		m.(map[string]any)["containers"] = containers
	}
	if len(list) > 0 {
		_ = unstructured.SetNestedSlice(u.Object, list, "status", "machines")
	}
}

// isDeployed is a condition: a service is as its newest spec says, and works.
func isDeployed(name string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		svc := &v1alpha1.MachineService{}
		if err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, svc); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(svc.Status.Conditions, machines.ConditionReady)
		if ready == nil || ready.ObservedGeneration != svc.Generation || ready.Status != metav1.ConditionTrue {
			return fmt.Errorf("generation %d has the status %+v", svc.Generation, svc.Status)
		}
		return nil
	}
}
