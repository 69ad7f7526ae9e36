package servicesets_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/logging"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/servicesets"
	"github.com/operatorkit/operatorkit/resource/serviceset"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

func TestMain(m *testing.M) { operatortest.VerifyTestMain(m) }

// world is a namespace of the real API server with an operator of its own, and its user.
type world struct {
	t         *testing.T
	user      client.Client
	faults    *operatortest.Faults
	kube      *operatortest.Instance
	namespace string
	scheme    *runtime.Scheme
	// as is whom operators are for the API server.
	as rest.ImpersonationConfig
	// operator is the name of operators, former are those that they had before.
	operator string
	former   []string
	// scenario is the label of the MultiClusterServices that operators know, the world's own by default.
	scenario string
	// plan makes operators that only plan.
	plan bool
	// lag has the API server lag for operators; nil is for none.
	lag *operatortest.Lag
	// system is the namespace of the services of the management cluster, the world's own by default.
	system string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	kube := operatortest.Start(t)
	crds, err := operator.ReadCRDs(v1alpha1.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	kube.InstallCRDs(t, crds...)
	w := &world{t: t, kube: kube, faults: operatortest.NewFaults(), namespace: kube.Namespace(t), scheme: runtime.NewScheme()}
	w.system, w.scenario, w.operator = w.namespace, w.namespace, "servicesets"
	if err := errors.Join(clientgoscheme.AddToScheme(w.scheme), v1alpha1.AddToScheme(w.scheme)); err != nil {
		t.Fatal(err)
	}
	w.user = operatortest.NewClient(t, kube.RESTConfig(), w.scheme)
	if err := ensureNativeProvider(t.Context(), w.user); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dropAll(context.Background(), w.user, w.namespace, w.namespace); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return w
}

// operator is a running operator.
type running struct {
	deps       *operator.Dependencies
	frameworks []*framework.Framework
	// stop ends the operator and waits for its end.
	stop func()
}

// start runs an operator until it is stopped, or the test ends.
func (w *world) start() *running {
	w.t.Helper()
	return w.run(func(ctx context.Context, f *framework.Framework) error { return f.Run(ctx) })
}

// watch runs the sources of an operator alone, and waits for them.
func (w *world) watch() *running {
	w.t.Helper()
	r := w.run(func(ctx context.Context, f *framework.Framework) error {
		var sources sync.WaitGroup
		defer sources.Wait()
		for _, s := range f.Sources() {
			sources.Go(func() { _ = s.Run(ctx) })
		}
		return nil
	})
	w.synced(r)
	return r
}

func (w *world) run(run func(context.Context, *framework.Framework) error) *running {
	w.t.Helper()
	logger, err := logging.New(logging.Config{Writer: w.t.Output(), Format: logging.FormatText})
	if err != nil {
		w.t.Fatal(err)
	}
	r := &running{}
	restConfig := w.kube.RESTConfig()
	if w.lag != nil {
		restConfig = w.lag.Wrap(restConfig)
	}
	restConfig = w.faults.Wrap(restConfig)
	restConfig.Impersonate = w.as
	r.deps, err = operator.NewDependencies(operator.DependenciesConfig{
		Name: w.operator, FormerNames: w.former, RESTConfig: restConfig, Scheme: w.scheme, Logger: logger,
		Namespaces: []string{w.namespace}, PlanOnly: w.plan,
		InspectorAddress: "127.0.0.1:0",
	})
	if err != nil {
		w.t.Fatal(err)
	}
	config := servicesets.Config{
		SystemNamespace: w.system, MultiClusterServices: labels.SelectorFromSet(labels.Set{scenarioLabel: w.scenario}),
	}
	r.frameworks, err = servicesets.New(r.deps, config)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var parts sync.WaitGroup
	for _, f := range r.frameworks {
		parts.Go(func() {
			if err := run(ctx, f); err != nil {
				w.t.Error(err)
			}
		})
	}
	r.stop = sync.OnceFunc(func() {
		cancel()
		parts.Wait()
		r.deps.Close()
	})
	w.t.Cleanup(r.stop)
	return r
}

// create creates objects, those with a namespace in that of the world.
func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		if _, cluster := o.(*v1alpha1.StateManagementProvider); !cluster && o.GetNamespace() == "" {
			if _, cluster := o.(*v1alpha1.MultiClusterService); !cluster {
				o.SetNamespace(w.namespace)
			}
		}
		if err := w.user.Create(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
	}
}

// templates makes templates named name-version.
func (w *world) templates(names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.create(templateOf(name))
	}
}

func templateOf(name string) *v1alpha1.ServiceTemplate {
	chart, version, _ := strings.Cut(name, "-")
	return &v1alpha1.ServiceTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.ServiceTemplateSpec{Helm: &v1alpha1.HelmChart{
			Repository: "https://charts.example.com", Chart: chart, Version: strings.ReplaceAll(version, "-", "."),
		}},
	}
}

// service is a service "name=template" that depends on others.
func service(spec string, dependsOn ...string) v1alpha1.Service {
	name, template, _ := strings.Cut(spec, "=")
	s := v1alpha1.Service{Name: name, Template: template}
	for _, d := range dependsOn {
		s.DependsOn = append(s.DependsOn, v1alpha1.ServiceDependsOn{Name: d})
	}
	return s
}

// cluster is a ClusterDeployment with the label tier.
func cluster(name, tier string, services ...v1alpha1.Service) *v1alpha1.ClusterDeployment {
	return &v1alpha1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": tier}},
		Spec:       v1alpha1.ClusterDeploymentSpec{ServiceSpec: v1alpha1.ServiceSpec{Services: services}},
	}
}

// multi is a MultiClusterService for clusters with a label tier; its name is unique among all worlds.
func (w *world) multi(name, tier string, services ...v1alpha1.Service) *v1alpha1.MultiClusterService {
	return &v1alpha1.MultiClusterService{
		ObjectMeta: metav1.ObjectMeta{Name: w.multiName(name), Labels: map[string]string{scenarioLabel: w.namespace}},
		Spec: v1alpha1.MultiClusterServiceSpec{
			ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": tier}},
			ServiceSpec:     v1alpha1.ServiceSpec{Services: services},
		},
	}
}

func (w *world) multiName(name string) string { return name + "-" + w.namespace }

// change changes an object as its user would, and again if somebody else does at the same moment.
func change[O client.Object](w *world, o O, mutate func(O)) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("%T %s is changed", o, o.GetName()), func() error {
		if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		mutate(o)
		return w.user.Update(w.t.Context(), o)
	})
}

// setName is the name of the ServiceSet of a cluster and a MultiClusterService, either of which may be nil.
func (w *world) setName(cd *v1alpha1.ClusterDeployment, mcs *v1alpha1.MultiClusterService) client.ObjectKey {
	return serviceset.ObjectKey(w.system, cd, mcs)
}

// report writes the state of services into a ServiceSet, as a state manager would, in the version that is there now. It waits
// for the ServiceSet to have them, those that are given as "name=template" in that one: a service that changes hands is there as the
// former owner has it at first, and is changed only when that was reported.
func (w *world) report(key client.ObjectKey, phase v1alpha1.ServicePhase, services ...string) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("%s has %v, and takes that they are %s", key, services, phase), func() error {
		set := &v1alpha1.ServiceSet{}
		if err := w.user.Get(w.t.Context(), key, set); err != nil {
			return err
		}
		for _, service := range services {
			name, template, _ := strings.Cut(service, "=")
			state := v1alpha1.ServiceState{Name: name, State: phase, FailureMessage: failureOf(phase)}
			found := false
			for _, e := range set.Spec.Services {
				if e.Name == name && (template == "" || e.Template == template) {
					state.Namespace, state.Template, state.Version, found = e.Namespace, e.Template, e.Version, true
				}
			}
			if !found {
				return fmt.Errorf("%s has no %s: %+v", key, service, set.Spec.Services)
			}
			setState(set, state)
		}
		return w.user.Status().Update(w.t.Context(), set)
	})
}

func failureOf(phase v1alpha1.ServicePhase) string {
	if phase == v1alpha1.ServiceStateFailed {
		return "the hook failed"
	}
	return ""
}

func setState(set *v1alpha1.ServiceSet, state v1alpha1.ServiceState) {
	for i := range set.Status.Services {
		if set.Status.Services[i].Name == state.Name {
			set.Status.Services[i] = state
			return
		}
	}
	set.Status.Services = append(set.Status.Services, state)
}

// gone tells of services that they are gone.
func (w *world) takeAway(key client.ObjectKey) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("%s takes that its services are gone", key), func() error {
		set := &v1alpha1.ServiceSet{}
		if err := w.user.Get(w.t.Context(), key, set); err != nil {
			return err
		}
		set.Status.Services = nil
		return w.user.Status().Update(w.t.Context(), set)
	})
}

// wants is conditions as "Ready=True Deployed: message", of which the message may be left out or be a part.
func (w *world) wants(o client.Object, conditions ...string) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("%T %s says %q", o, o.GetName(), conditions), func() error {
		if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		list := conditionsOf(o)
		for _, want := range conditions {
			conditionType, rest, _ := strings.Cut(want, "=")
			head, message, _ := strings.Cut(rest, ": ")
			c := meta.FindStatusCondition(list, conditionType)
			if c == nil || !strings.HasPrefix(string(c.Status)+" "+c.Reason, head) || !strings.Contains(c.Message, message) {
				return fmt.Errorf("want %s, got %+v", want, c)
			}
			if c.ObservedGeneration != o.GetGeneration() {
				return fmt.Errorf("%s is about generation %d of %d", conditionType, c.ObservedGeneration, o.GetGeneration())
			}
		}
		return nil
	})
}

func conditionsOf(o client.Object) []metav1.Condition {
	switch o := o.(type) {
	case *v1alpha1.ClusterDeployment:
		return o.Status.Conditions
	case *v1alpha1.MultiClusterService:
		return o.Status.Conditions
	}
	return nil
}

// settles waits until an object is as it should be.
func settles[O client.Object](w *world, o O, what string, holds func(O) error) {
	w.t.Helper()
	operatortest.Eventually(w.t, what, func() error {
		if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		return holds(o)
	})
}

// holdSet puts a finalizer on a ServiceSet, as a state manager does, once the set is there.
func (w *world) holdSet(key client.ObjectKey) {
	w.t.Helper()
	w.patchSet(key, `{"metadata":{"finalizers":["example.com/state-manager"]}}`)
}

// letSetGo takes all finalizers off a ServiceSet that is being deleted.
func (w *world) letSetGo(key client.ObjectKey) {
	w.t.Helper()
	set := &v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	settles(w, set, fmt.Sprintf("%s is being deleted", key), func(set *v1alpha1.ServiceSet) error {
		if set.DeletionTimestamp == nil {
			return errors.New("it is not")
		}
		return nil
	})
	w.patchSet(key, `{"metadata":{"finalizers":null}}`)
	w.wantGone(set)
}

func (w *world) patchSet(key client.ObjectKey, patch string) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("%s is there", key), func() error {
		set := &v1alpha1.ServiceSet{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		return w.user.Patch(w.t.Context(), set, client.RawPatch(types.MergePatchType, []byte(patch)))
	})
}

// wantGone waits until an object does not exist any more.
func (w *world) wantGone(o client.Object) {
	w.t.Helper()
	key := client.ObjectKeyFromObject(o)
	operatortest.Eventually(w.t, fmt.Sprintf("%T %s is gone", o, key), func() bool {
		return apierrors.IsNotFound(w.user.Get(w.t.Context(), key, o))
	})
}
