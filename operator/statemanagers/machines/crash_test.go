package machines_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator"
	operatormachines "github.com/operatorkit/operatorkit/operator/machines"
	machinesv1alpha1 "github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/statemanagers"
	"github.com/operatorkit/operatorkit/operator/statemanagers/machines"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
)

func TestServicesAreAsTheyShouldBeWhateverWriteTheOperatorCrashesAt(t *testing.T) {
	operatortest.Survives(t, lifeOfASet)
}

// lifeOfASet is the life of a set, from its first service to its end, as the operator of state managers sees it. The operator of
// MachineServices is real, and has no containers to run.
func lifeOfASet(t *testing.T) operatortest.Scenario {
	t.Helper()
	w := newWorld(t)
	provider := &v1alpha1.StateManagementProvider{ObjectMeta: metav1.ObjectMeta{Name: "machines"}}
	provider.Spec.Selector.MatchLabels = map[string]string{statemanagers.ProviderLabel: "machines"}
	if err := w.user.Create(t.Context(), provider); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.user.Delete(context.Background(), provider) })
	cache, phases := t.TempDir(), phasesOfASet()
	beginMachines, endMachines := w.runMachines(t)
	phases[0].Do = operatortest.All(beginMachines, phases[0].Do)
	return operatortest.Scenario{
		Name: "a life of a set on machines", Scheme: w.scheme, Config: w.kube.RESTConfig(), Parallel: 4, Timeout: 2 * time.Minute,
		Start: func(ctx context.Context, config *rest.Config, namespace string) error {
			return w.operate(ctx, config, "platform", namespace, cache)
		},
		Neighbour: func(ctx context.Context, config *rest.Config, namespace string) error {
			return w.operate(ctx, config, "second", namespace, cache)
		},
		// All runs have one provider, which the operators of the same name have had since the first one.
		NeighbourAfter: isHeld,
		Normalize:      normalize, Objects: []client.Object{&v1alpha1.ServiceSet{}, &machinesv1alpha1.MachineService{}},
		Phases: phases, Cleanup: endMachines,
	}
}

// phasesOfASet are what users do with a set, of the provider "machines".
func phasesOfASet() []operatortest.Phase {
	return []operatortest.Phase{
		{Name: "install", Do: begin, Until: runs("db db", "web web-1")},
		{Name: "upgrade", Do: patchSet(`[{"op": "replace", "path": "/spec/services/1/template", "value": "web-2"}]`), Until: runs("db db", "web web-2")},
		{Name: "delete the set", Do: operatortest.Delete(&v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}), Until: gone},
	}
}

// runMachines returns what begins and ends the operator of MachineServices in the namespace of a run. It looks at no other one, where operators
// of other tests have theirs.
func (w *world) runMachines(t *testing.T) (begin, end operatortest.Step) {
	t.Helper()
	var mu sync.Mutex
	running := map[string]func() error{}
	stop := func(namespace string) error {
		mu.Lock()
		defer mu.Unlock()
		if running[namespace] == nil {
			return nil
		}
		defer delete(running, namespace)
		return running[namespace]()
	}
	t.Cleanup(func() {
		for namespace := range maps.Clone(running) {
			if err := stop(namespace); err != nil {
				t.Error(err)
			}
		}
	})
	begin = func(_ context.Context, _ client.Client, namespace string) error {
		logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
		if err != nil {
			return err
		}
		deps, err := operator.NewDependencies(operator.DependenciesConfig{
			Name: "machines", RESTConfig: w.kube.RESTConfig(), Scheme: w.scheme, Logger: logger, Namespaces: []string{namespace},
		})
		if err != nil {
			return err
		}
		frameworks, err := operatormachines.New(deps, operatormachines.Config{})
		if err != nil {
			return err
		}
		o, err := operator.New(operator.Config{Name: deps.Name, Logger: logger, RESTConfig: deps.RESTConfig, Frameworks: frameworks})
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- o.Run(ctx) }()
		mu.Lock()
		defer mu.Unlock()
		running[namespace] = func() error {
			defer deps.Close()
			cancel()
			return <-ended
		}
		return nil
	}
	end = func(_ context.Context, _ client.Client, namespace string) error { return stop(namespace) }
	return begin, end
}

// operate runs the operator of state managers, with machines only.
func (w *world) operate(ctx context.Context, config *rest.Config, name, namespace, cache string) error {
	logger, err := micrologger.New(micrologger.Config{IOWriter: io.Discard})
	if err != nil {
		return err
	}
	deps, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: name, RESTConfig: config, Scheme: w.scheme, Logger: logger, Namespaces: []string{namespace},
	})
	if err != nil {
		return err
	}
	defer deps.Close()
	operatortest.CountReconciliations(ctx, deps.Registry)
	fetcher, err := fetch.New(fetch.Config{Folder: cache})
	if err != nil {
		return err
	}
	manager, err := machines.New(machines.Config{Client: deps.Client, Namespaces: deps.Namespaces, Logger: logger, Fetcher: fetcher})
	if err != nil {
		return err
	}
	frameworks, err := statemanagers.New(deps, statemanagers.Config{
		SystemNamespace: namespace, LeaveProviders: true,
		Managers: []statemanagers.Manager{{Provider: "machines", StateManager: manager, Watches: manager.Watches()}},
	})
	if err != nil {
		return err
	}
	// The provider is shared by all runs: its status is none of one run's business.
	o, err := operator.New(operator.Config{Name: deps.Name, Logger: logger, RESTConfig: config, Frameworks: frameworks[1:]})
	if err != nil {
		return err
	}
	return o.Run(ctx)
}

// begin creates a cluster with a set of two services that have no containers.
func begin(ctx context.Context, user client.Client, namespace string) error {
	set := &v1alpha1.ServiceSet{
		ObjectMeta: metav1.ObjectMeta{Name: "prod", Labels: map[string]string{statemanagers.ProviderLabel: "machines"}},
		Spec: v1alpha1.ServiceSetSpec{
			Cluster: "prod", Provider: v1alpha1.StateManagementProviderConfig{Name: "machines"},
			Services: []v1alpha1.ServiceWithValues{
				{Namespace: "apps", Name: "db", Template: "db", Values: "replicas: 0"},
				{Namespace: "apps", Name: "web", Template: "web-1", Values: "replicas: 0", DependsOn: []v1alpha1.ServiceDependsOn{{Namespace: "apps", Name: "db"}}},
			},
		},
	}
	objects := []client.Object{&v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}}
	for _, name := range []string{"db", "web-1", "web-2"} {
		objects = append(objects, files(name, manifest(name)), template(name))
	}
	for _, o := range append(objects, set) {
		o.SetNamespace(namespace)
		if err := user.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// isHeld is a condition: an operator has begun with the set, and so has the provider.
func isHeld(ctx context.Context, user client.Client, namespace string) error {
	set := &v1alpha1.ServiceSet{}
	err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "prod"}, set)
	if err == nil && len(set.Finalizers) == 0 {
		err = errors.New("nobody has the set")
	}
	return err
}

func patchSet(document string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		set := &v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "prod"}}
		return user.Patch(ctx, set, client.RawPatch(types.JSONPatchType, []byte(document)))
	}
}

// runs is a condition: the set is ready, its status is about what it lists now, and these services are Deployed, as "name template".
func runs(want ...string) operatortest.Step {
	return func(ctx context.Context, user client.Client, namespace string) error {
		set := &v1alpha1.ServiceSet{}
		if err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "prod"}, set); err != nil {
			return err
		}
		var got []string
		for _, s := range set.Status.Services {
			if s.State == v1alpha1.ServiceStateDeployed {
				got = append(got, s.Name+" "+s.Template)
			}
		}
		if strings.Join(got, ", ") != strings.Join(want, ", ") || set.Status.ObservedGeneration != set.Generation ||
			!meta.IsStatusConditionTrue(set.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("the status of generation %d of %d is %+v", set.Status.ObservedGeneration, set.Generation, set.Status)
		}
		return nil
	}
}

// gone is a condition: neither the set nor a MachineService is there.
func gone(ctx context.Context, user client.Client, namespace string) error {
	for name, o := range map[string]client.Object{
		"prod": &v1alpha1.ServiceSet{}, "db": &machinesv1alpha1.MachineService{}, "web": &machinesv1alpha1.MachineService{},
	} {
		if err := user.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o); !apierrors.IsNotFound(err) {
			return errors.Join(fmt.Errorf("%T %s is still there", o, name), err)
		}
	}
	return nil
}

// made are texts that are made from the UID of a set.
var made = regexp.MustCompile(`\b[0-9a-f]{32,48}\b|\b[0-9a-f]{24}\b`)

// normalize hides what is made from the UID of a set or from the name of a namespace.
func normalize(u *unstructured.Unstructured) {
	text, err := json.Marshal(u.Object)
	if err != nil {
		return
	}
	_ = json.Unmarshal([]byte(made.ReplaceAllString(strings.ReplaceAll(string(text), u.GetNamespace(), "NAMESPACE"), "HASH")), &u.Object)
}
