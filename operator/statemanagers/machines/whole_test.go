package machines_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/logging"
	operatormachines "github.com/operatorkit/operatorkit/operator/machines"
	machinesv1alpha1 "github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/servicesets"
	"github.com/operatorkit/operatorkit/operator/statemanagers"
	"github.com/operatorkit/operatorkit/operator/statemanagers/machines"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
)

// ownLabel is the label of what is the business of one test only.
const ownLabel = "test.operatorkit.io/world"

// platform runs all three operators in one process: of service sets, of state managers, and of machines.
func (w *world) platform() (stop func()) {
	w.t.Helper()
	logger, err := logging.New(logging.Config{Writer: w.t.Output(), Format: logging.FormatText})
	if err != nil {
		w.t.Fatal(err)
	}
	d, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: "platform", RESTConfig: w.kube.RESTConfig(), Scheme: w.scheme, Logger: logger, Namespaces: []string{w.namespace},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	sources, err := servicesets.NewSources(d, w.namespace)
	if err != nil {
		w.t.Fatal(err)
	}
	fetcher, err := fetch.New(fetch.Config{Folder: w.t.TempDir()})
	if err != nil {
		w.t.Fatal(err)
	}
	manager, err := machines.New(machines.Config{Client: d.Client, Namespaces: d.Namespaces, Logger: logger, Fetcher: fetcher})
	if err != nil {
		w.t.Fatal(err)
	}
	own := labels.SelectorFromSet(labels.Set{ownLabel: w.namespace})
	sets, err1 := servicesets.New(d, servicesets.Config{SystemNamespace: w.namespace, Sources: sources, MultiClusterServices: own})
	managers, err2 := statemanagers.New(d, statemanagers.Config{
		SystemNamespace: w.namespace, Sources: sources,
		Managers: []statemanagers.Manager{{Provider: "on-machines", StateManager: manager, Watches: manager.Watches()}},
	})
	services, err3 := operatormachines.New(d, operatormachines.Config{
		Heartbeat: time.Second, BackOffFactory: func() backoff.BackOff { return backoff.NewConstantBackOff(100 * time.Millisecond) },
	})
	if err := errors.Join(err1, err2, err3); err != nil {
		w.t.Fatal(err)
	}
	o, err := operator.New(operator.Config{
		Name: d.Name, Logger: logger, RESTConfig: d.RESTConfig, Registry: d.Registry, Frameworks: append(append(sets, managers...), services...),
	})
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
		d.Close()
	})
	w.t.Cleanup(stop)
	return stop
}

// mutate changes an object as its user would, and again if somebody else does at the same moment.
func mutate[O client.Object](w *world, o O, change func(O)) {
	w.t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		change(o)
		return w.user.Update(w.t.Context(), o)
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// wantRunning waits until the engine has just these containers of the namespace, as "service image state".
func (w *world) wantRunning(e *dockertest.Engine, want ...string) {
	w.t.Helper()
	cli, err := docker.New(docker.Config{Cluster: w.namespace, Machines: dockertest.Machines([]*dockertest.Engine{e})})
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = cli.Close() }()
	operatortest.Eventually(w.t, fmt.Sprintf("there are %q", want), func() error {
		inventory, err := cli.InspectMachine(w.t.Context(), e.Name())
		if err != nil {
			return err
		}
		count := map[string]int{}
		var all []string
		for _, c := range inventory.Containers {
			count[fmt.Sprintf("%s %s %s", c.ServiceName, c.Spec.Container.Image, c.State)]++
			all = append(all, fmt.Sprintf("%s %s %s", c.Name, c.State, c.Health))
		}
		for _, text := range want {
			count[text]--
		}
		for text, n := range count {
			if n != 0 {
				return fmt.Errorf("there are %d more of %q, all in all %v", n, text, all)
			}
		}
		return nil
	})
}

// wantReady waits until the condition Ready of a MultiClusterService has a status for its newest spec, and a message with some text.
func (w *world) wantReady(mcs *v1alpha1.MultiClusterService, status metav1.ConditionStatus, text string) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("%s has Ready=%s", mcs.Name, status), func() error {
		if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(mcs), mcs); err != nil {
			return err
		}
		c := meta.FindStatusCondition(mcs.Status.Conditions, "Ready")
		if c == nil || c.ObservedGeneration != mcs.Generation || c.Status != status || !strings.Contains(c.Message, text) {
			return fmt.Errorf("generation %d, condition %+v", mcs.Generation, c)
		}
		return nil
	})
}

func (w *world) wantGone(o client.Object) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("%T %s is gone", o, o.GetName()), func() bool {
		return apierrors.IsNotFound(w.user.Get(w.t.Context(), client.ObjectKeyFromObject(o), o))
	})
}

// TestAMultiClusterServiceRunsOnMachines is the whole way: what people write is running on a real engine, is updated, rolled back, put right
// and removed, in the order of dependencies.
func TestAMultiClusterServiceRunsOnMachines(t *testing.T) {
	dockertest.Require(t)
	w := newWorld(t)
	engine := dockertest.Start(t, 1)[0]
	err := engine.Load(t.Context(), dockertest.App("app:1", map[string]string{"VERSION": "1"}), dockertest.App("app:2", map[string]string{"VERSION": "2"}),
		dockertest.App("app:bad", map[string]string{"MODE": "unhealthy"}))
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"1", "2", "bad"} {
		w.create(files("app-"+version, manifest("app:"+version, "  update: {failureAction: rollback}")), template("app-"+version))
	}
	w.create(&machinesv1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: engine.Name()}, Spec: machinesv1alpha1.MachineSpec{Address: engine.Host()}})
	w.platform()

	provider := v1alpha1.StateManagementProviderConfig{
		Name: "on-machines", Config: &apiextensionsv1.JSON{Raw: []byte(`{"syncMode": "ContinuousWithDriftDetection"}`)},
	}
	prod := &v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Name: "prod", Labels: map[string]string{ownLabel: w.namespace}}}
	prod.Spec.ServiceSpec.Provider.Name, prod.Spec.ServiceSpec.Provider.Config = provider.Name, provider.Config
	never := "container: {pullPolicy: never}"
	mcs := &v1alpha1.MultiClusterService{ObjectMeta: metav1.ObjectMeta{Name: "web-" + w.namespace, Labels: map[string]string{ownLabel: w.namespace}}}
	mcs.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{ownLabel: w.namespace}}
	mcs.Spec.ServiceSpec = prod.Spec.ServiceSpec
	dependsOn := func(name string) []v1alpha1.ServiceDependsOn {
		return []v1alpha1.ServiceDependsOn{{Name: name, Namespace: "apps"}}
	}
	mcs.Spec.ServiceSpec.Services = []v1alpha1.Service{
		{Name: "web", Namespace: "apps", Template: "app-1", Values: "replicas: 2\n" + never, DependsOn: dependsOn("db")},
		{Name: "db", Namespace: "apps", Template: "app-1", Values: never},
	}
	prod.Spec.ServiceSpec.Services = []v1alpha1.Service{{Name: "edge", Namespace: "apps", Template: "app-1", Values: never}}
	w.create(prod)
	if err := w.user.Create(t.Context(), mcs); err != nil {
		t.Fatal(err)
	}
	w.wantReady(mcs, metav1.ConditionTrue, "")
	w.wantRunning(engine, "edge app:1 running", "db app:1 running", "web app:1 running", "web app:1 running")
	db, web := w.service("db"), w.service("web")
	if ready := meta.FindStatusCondition(db.Status.Conditions, "Ready"); web.CreationTimestamp.Before(&ready.LastTransitionTime) {
		t.Errorf("web is of %s, and db is ready since %s", web.CreationTimestamp, ready.LastTransitionTime)
	}

	use := func(template string) {
		t.Helper()
		mutate(w, mcs, func(m *v1alpha1.MultiClusterService) { m.Spec.ServiceSpec.Services[0].Template = template })
	}
	use("app-2")
	w.wantReady(mcs, metav1.ConditionTrue, "")
	w.wantRunning(engine, "edge app:1 running", "db app:1 running", "web app:2 running", "web app:2 running")
	use("app-bad")
	w.wantReady(mcs, metav1.ConditionFalse, "failed")
	operatortest.Eventually(t, "it is given up", func() error {
		if given := w.service("web").Status.GivenUp; given == nil || given.Reason != operatormachines.ReasonRolledBack {
			return fmt.Errorf("it was given up as %+v", given)
		}
		return nil
	})
	// What did not work is kept for its log until the next attempt.
	w.wantRunning(engine, "edge app:1 running", "db app:1 running", "web app:2 running", "web app:2 running", "web app:bad exited")
	use("app-2")
	w.wantReady(mcs, metav1.ConditionTrue, "")
	w.wantRunning(engine, "edge app:1 running", "db app:1 running", "web app:2 running", "web app:2 running")

	// What somebody changes is seen, and put right.
	mutate(w, web, func(s *machinesv1alpha1.MachineService) { s.Spec.Replicas = new(int32(1)) })
	operatortest.Eventually(t, "it is put right", func() bool { return *w.service("web").Spec.Replicas == 2 })
	w.wantRunning(engine, "edge app:1 running", "db app:1 running", "web app:2 running", "web app:2 running")
	if got := w.service("web").UID; got != web.UID {
		t.Error("it is another MachineService")
	}

	if err := w.user.Delete(t.Context(), mcs); err != nil {
		t.Fatal(err)
	}
	w.wantGone(mcs)
	w.wantRunning(engine, "edge app:1 running")
	w.wantGone(db)
	if err := w.user.Delete(t.Context(), prod); err != nil {
		t.Fatal(err)
	}
	w.wantGone(prod)
	w.wantRunning(engine)
}
