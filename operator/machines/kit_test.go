package machines_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/logging"
	"github.com/operatorkit/operatorkit/operator/machines"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

// world is a namespace of the real API server with real engines, an operator and their user.
type world struct {
	t         *testing.T
	kube      *operatortest.Instance
	user      client.WithWatch
	namespace string
	scheme    *runtime.Scheme
	engines   []*dockertest.Engine
	// registry has the metrics of the operator that was started last.
	registry *prometheus.Registry
	// inspector is that of the operator that was started last.
	inspector *inspector.Inspector
	// operator is the name of operators, former are those that they had before.
	operator string
	former   []string
	// names are the Names of operators, ingress is their Ingress.
	names   *docker.Names
	ingress *docker.Ingress
	// plan makes operators that only plan.
	plan bool
	// as is whom operators are.
	as rest.ImpersonationConfig
	// faults are between operators and the server, if there are some.
	faults *operatortest.Faults
	// lag is what the server lags by for operators, if it does.
	lag *operatortest.Lag
	// log is what operators log. It is for reading when none runs.
	log bytes.Buffer
	// frameworks are those of the operator that was started last, by name.
	frameworks map[string]*framework.Framework
}

// pool has the engines of all tests.
var pool = dockertest.Pool{Images: []dockertest.Image{
	dockertest.App("app:1", map[string]string{"VERSION": "1"}), dockertest.App("app:2", map[string]string{"VERSION": "2"}),
	dockertest.App("app:bad", map[string]string{"MODE": "unhealthy"}), dockertest.App("app:slow", map[string]string{"MODE": "slow"}),
	dockertest.Names("names:1"),
}}

// newWorld takes engines, which have the images app:1, app:2, app:bad and app:slow, and makes them Machines.
func newWorld(t *testing.T, engines int) *world {
	t.Helper()
	dockertest.Require(t, "TestServicesComeUpAreUpdatedRepairedAndRemoved", "TestEveryFaultOfASpecIsInTheCondition", "TestTheServerRefusesWhatOneObjectShowsToBeWrong")
	w := &world{t: t, kube: operatortest.Start(t), scheme: runtime.NewScheme(), operator: "machines"}
	if err := errors.Join(clientgoscheme.AddToScheme(w.scheme), v1alpha1.AddToScheme(w.scheme)); err != nil {
		t.Fatal(err)
	}
	crds, err := operator.ReadCRDs(v1alpha1.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	w.kube.InstallCRDs(t, crds...)
	w.namespace = w.kube.Namespace(t)
	w.user = operatortest.NewClient(t, w.kube.RESTConfig(), w.scheme)
	w.engines = pool.Take(t, engines)
	for _, e := range w.engines {
		w.create(machineOf(e))
	}
	return w
}

func machineOf(e *dockertest.Engine) *v1alpha1.Machine {
	return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: e.Name()}, Spec: v1alpha1.MachineSpec{Address: e.Host()}}
}

// start runs the operator until it is stopped, or the test ends.
func (w *world) start() (stop func()) {
	w.t.Helper()
	logger, err := logging.New(logging.Config{Writer: io.MultiWriter(w.t.Output(), &w.log), Format: logging.FormatText})
	if err != nil {
		w.t.Fatal(err)
	}
	restConfig := w.kube.RESTConfig()
	restConfig.Impersonate = w.as
	if w.faults != nil {
		restConfig = w.faults.Wrap(restConfig)
	}
	if w.lag != nil {
		restConfig = w.lag.Wrap(restConfig)
	}
	deps, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: w.operator, FormerNames: w.former, RESTConfig: restConfig, Scheme: w.scheme, Logger: logger, Namespaces: []string{w.namespace}, PlanOnly: w.plan,
		InspectorAddress: "127.0.0.1:0",
	})
	if err != nil {
		w.t.Fatal(err)
	}
	frameworks, err := machines.New(deps, machines.Config{
		Domain: "example.test", Names: w.names, Ingress: w.ingress, RegistryPeriod: time.Second, Heartbeat: time.Second, BackOffFactory: func() backoff.BackOff { return backoff.NewConstantBackOff(100 * time.Millisecond) },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.registry, w.inspector = deps.Registry, deps.Inspector
	w.frameworks = map[string]*framework.Framework{}
	for _, f := range frameworks {
		w.frameworks[f.Name()] = f
	}
	o, err := operator.New(operator.Config{Name: deps.Name, FormerNames: deps.FormerNames, Logger: logger, RESTConfig: deps.RESTConfig, Registry: deps.Registry, Frameworks: frameworks})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
		deps.Close()
	})
	w.t.Cleanup(stop)
	return stop
}

// create creates objects in the namespace of the world.
func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		o.SetNamespace(w.namespace)
		if err := w.user.Create(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
	}
}

// service is a service of an image that answers at a port that the engine picks.
func service(name, image string, replicas int32) *v1alpha1.MachineService {
	return &v1alpha1.MachineService{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.MachineServiceSpec{ServiceSpec: api.ServiceSpec{
			Replicas: &replicas, Container: api.ContainerSpec{Image: image, PullPolicy: api.PullNever},
			Ports: []api.PortSpec{{Mode: api.PortModeHost, ContainerPort: 8080}},
		}},
	}
}

// change changes an object as its user would, and again if somebody else does at the same moment.
func change[O client.Object](w *world, o O, mutate func(O)) {
	w.t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		mutate(o)
		return w.user.Update(w.t.Context(), o)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// want waits until a condition of an object reads "Type=Status Reason: message", as far as it is given, for its newest spec.
func (w *world) want(o client.Object, want string) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("%T %s has %s", o, o.GetName(), want), func() error {
		if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		conditions := []metav1.Condition(nil)
		switch o := o.(type) {
		case *v1alpha1.Machine:
			conditions = o.Status.Conditions
		case *v1alpha1.MachineService:
			conditions = o.Status.Conditions
		}
		kind, _, _ := strings.Cut(want, "=")
		c := meta.FindStatusCondition(conditions, kind)
		if c == nil || c.ObservedGeneration != o.GetGeneration() {
			return fmt.Errorf("there is no condition %s for generation %d among %v", kind, o.GetGeneration(), conditions)
		}
		if got := fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message); !strings.HasPrefix(got, want) {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	})
}

// wantGone waits until an object is gone.
func (w *world) wantGone(o client.Object) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("%T %s is gone", o, o.GetName()), func() bool {
		return apierrors.IsNotFound(w.user.Get(w.t.Context(), client.ObjectKeyFromObject(o), o))
	})
}

// containers returns the containers of a service on an engine, as another client sees them: "image state".
func (w *world) containers(e *dockertest.Engine, service string) []string {
	w.t.Helper()
	var all []string
	for _, c := range w.inventory(e).Containers {
		if c.ServiceName == service && !c.Failed() {
			all = append(all, fmt.Sprintf("%s %s", c.Spec.Container.Image, c.State))
		}
	}
	return all
}

// inventory is what is on an engine.
func (w *world) inventory(e *dockertest.Engine) api.Inventory {
	w.t.Helper()
	cli := w.client(e)
	defer func() { _ = cli.Close() }()
	inventory, err := cli.InspectMachine(w.t.Context(), e.Name())
	if err != nil {
		w.t.Fatal(err)
	}
	return inventory
}

// ofServices returns a context for work on the containers of the operator that is tested.
func ofServices(ctx context.Context) context.Context {
	return identity.NewContext(ctx, &identity.Scope{Identity: machines.ServicesOf("machines")})
}

func (w *world) client(engines ...*dockertest.Engine) *docker.Client {
	w.t.Helper()
	cli, err := docker.New(docker.Config{Cluster: w.namespace, Machines: dockertest.Machines(engines)})
	if err != nil {
		w.t.Fatal(err)
	}
	return cli
}

// wantContainers checks what is on all engines of a service, engine by engine.
func (w *world) wantContainers(service string, want ...string) {
	w.t.Helper()
	var got []string
	for _, e := range w.engines {
		got = append(got, strings.Join(w.containers(e, service), ", "))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.t.Errorf("on the engines is %q, want %q", got, want)
	}
}
