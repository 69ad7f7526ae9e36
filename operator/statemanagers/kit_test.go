package statemanagers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/logging"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/servicesets"
	"github.com/operatorkit/operatorkit/operator/statemanagers"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// scenarioLabel is the label of the MultiClusterServices of a world, with its namespace.
const scenarioLabel = "test.operatorkit.io/world"

// world is a namespace of the real API server with operators of its own, and their user. Its clusters are the same API server,
// reached by kubeconfigs; services go to the namespace itself.
type world struct {
	t         *testing.T
	user      client.WithWatch
	kube      *operatortest.Instance
	namespace string
	scheme    *runtime.Scheme
	// faults see what the operators send to the management cluster, and east what they send to target clusters.
	faults, east *operatortest.Faults
	// as is whom the operators are for the management cluster.
	as rest.ImpersonationConfig
	// operator is the name of operators, former are those that they had before.
	operator string
	former   []string
	// plan makes operators that only plan.
	plan bool
	// guards are asked about what operators do.
	guards []framework.Guard
	// config is that of the state managers.
	config statemanagers.Config
	// charts is the address of a chart repository.
	charts string
}

func schemeOf(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func newWorld(t *testing.T) *world {
	t.Helper()
	kube := operatortest.Start(t)
	crds, err := operator.ReadCRDs(v1alpha1.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	kube.InstallCRDs(t, crds...)
	w := &world{
		t: t, kube: kube, namespace: kube.Namespace(t), scheme: schemeOf(t), faults: operatortest.NewFaults(), east: operatortest.NewFaults(),
		charts: serveCharts(t), operator: "platform",
	}
	w.user = operatortest.NewClient(t, kube.RESTConfig(), w.scheme)
	w.config = configOf(t, w.namespace, w.east)
	return w
}

// newWorldWithRules returns a world whose operators run, and a cluster that has its only service, the rules.
func newWorldWithRules(t *testing.T) (*world, *v1alpha1.ClusterDeployment) {
	t.Helper()
	w := newWorld(t)
	w.files("rules", map[string]string{"rules.yaml": mapManifest})
	w.create(filesTemplate("rules"))
	w.reach("one")
	w.start()
	one := cluster("one", w.service("rules=rules"))
	w.create(one)
	w.wantReady(one)
	return w, one
}

// configOf is a configuration for one namespace.
func configOf(t testing.TB, namespace string, east *operatortest.Faults) statemanagers.Config {
	return statemanagers.Config{SystemNamespace: namespace, Native: &statemanagers.NativeConfig{
		Fetch: fetch.Config{Folder: t.TempDir()},
		Targets: statemanagers.Targets{
			QPS: -1, ConnectTimeout: 30 * time.Second, RequestTimeout: time.Minute, MinRetry: 50 * time.Millisecond, MaxRetry: 500 * time.Millisecond,
			WrapTransport: func(_ target.Key, next http.RoundTripper) http.RoundTripper { return east.Transport(next) },
		},
	}}
}

// running are the operators of a world, in one process.
type running struct {
	deps     *operator.Dependencies
	sets     []*framework.Framework
	managers []*framework.Framework
	// stop ends the operators and waits for their end.
	stop func()
}

// all are the frameworks of both operators.
func (r *running) all() []*framework.Framework {
	return append(append([]*framework.Framework(nil), r.sets...), r.managers...)
}

// native is the framework for the sets of the provider "native".
func (r *running) native() *framework.Framework { return r.managers[1] }

// dependencies are those of operators in one process.
func (w *world) dependencies() *operator.Dependencies {
	w.t.Helper()
	logger, err := logging.New(logging.Config{Writer: w.t.Output(), Format: logging.FormatText})
	if err != nil {
		w.t.Fatal(err)
	}
	restConfig := w.faults.Wrap(w.kube.RESTConfig())
	restConfig.Impersonate = w.as
	deps, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: w.operator, FormerNames: w.former, RESTConfig: restConfig, Scheme: w.scheme, Logger: logger, Namespaces: []string{w.namespace}, PlanOnly: w.plan, Guards: w.guards,
		InspectorAddress: "127.0.0.1:0",
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return deps
}

// start runs both operators until they are stopped, or the test ends.
func (w *world) start() *running {
	w.t.Helper()
	return w.run((*running).all)
}

// run is start for some of the frameworks.
func (w *world) run(some func(*running) []*framework.Framework) *running {
	w.t.Helper()
	deps := w.dependencies()
	r := &running{deps: deps}
	var err error
	if r.sets, r.managers, err = newOperators(deps, w.namespace, w.config); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	o, err := operator.New(operator.Config{Name: deps.Name, FormerNames: deps.FormerNames, Logger: deps.Logger, RESTConfig: deps.RESTConfig, Registry: deps.Registry, Frameworks: some(r)})
	if err != nil {
		w.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- o.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
		deps.Close()
	})
	w.t.Cleanup(r.stop)
	return r
}

// newOperators makes the frameworks of both operators, which share their sources.
func newOperators(deps *operator.Dependencies, namespace string, config statemanagers.Config) (sets, managers []*framework.Framework, err error) {
	if config.Sources, err = servicesets.NewSources(deps, namespace); err != nil {
		return nil, nil, err
	}
	sets, err = servicesets.New(deps, servicesets.Config{
		SystemNamespace: namespace, MultiClusterServices: labels.SelectorFromSet(labels.Set{scenarioLabel: namespace}), Sources: config.Sources,
	})
	if err != nil {
		return nil, nil, err
	}
	managers, err = statemanagers.New(deps, config)
	return sets, managers, err
}

// create creates objects, those with a namespace in that of the world.
func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		if o.GetNamespace() == "" {
			o.SetNamespace(w.namespace)
		}
		if err := w.user.Create(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
	}
}

// reach makes a cluster reachable.
func (w *world) reach(cluster string) {
	w.t.Helper()
	w.create(kubeconfigSecret(w.t, cluster, w.kube.RESTConfig(), ""))
}

// kubeconfigSecret is the Secret with the kubeconfig of a cluster, for somebody whom the owner of the configuration acts as.
func kubeconfigSecret(t testing.TB, cluster string, config *rest.Config, as string) *corev1.Secret {
	t.Helper()
	k := clientcmdapi.NewConfig()
	k.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	k.AuthInfos["u"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken, Impersonate: as,
	}
	k.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	k.CurrentContext = "c"
	data, err := clientcmd.Write(*k)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: cluster + target.DefaultSecretSuffix},
		Data:       map[string][]byte{target.DefaultSecretKey: data},
	}
}

// files puts the files of a template.
func (w *world) files(name string, files map[string]string) {
	w.t.Helper()
	w.create(filesOf(name, files))
}

func filesOf(name string, files map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name + "-files"}, Data: files}
}

// service is a service "name=template" in the namespace of the world that depends on others.
func (w *world) service(spec string, dependsOn ...string) v1alpha1.Service {
	return serviceIn(w.namespace, spec, dependsOn...)
}

func serviceIn(namespace, spec string, dependsOn ...string) v1alpha1.Service {
	name, template, _ := strings.Cut(spec, "=")
	s := v1alpha1.Service{Name: name, Namespace: namespace, Template: template}
	for _, d := range dependsOn {
		s.DependsOn = append(s.DependsOn, v1alpha1.ServiceDependsOn{Name: d, Namespace: namespace})
	}
	return s
}

func cluster(name string, services ...v1alpha1.Service) *v1alpha1.ClusterDeployment {
	return &v1alpha1.ClusterDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": "prod"}},
		Spec:       v1alpha1.ClusterDeploymentSpec{ServiceSpec: v1alpha1.ServiceSpec{Services: services}},
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

// set returns a ServiceSet.
func (w *world) set(name string) (*v1alpha1.ServiceSet, error) {
	set := &v1alpha1.ServiceSet{}
	return set, w.user.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, set)
}

// wantSet waits until a condition of a ServiceSet reads "Type=Status Reason: message", as far as it is given.
func (w *world) wantSet(name, want string) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("service set %s has %s", name, want), func() error {
		set, err := w.set(name)
		if err != nil {
			return err
		}
		return conditionIs(set.Status.Conditions, want)
	})
}

func conditionIs(conditions []metav1.Condition, want string) error {
	kind, _, _ := strings.Cut(want, "=")
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil {
		return fmt.Errorf("there is no condition %s among %v", kind, conditions)
	}
	if got := fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message); !strings.HasPrefix(got, want) {
		return fmt.Errorf("it is %s", got)
	}
	return nil
}

// wantReady waits until a cluster has what it lists, as the operator of service sets tells.
func (w *world) wantReady(cd *v1alpha1.ClusterDeployment) {
	w.t.Helper()
	operatortest.Eventually(w.t, "cluster "+cd.Name+" is ready", func() error {
		if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(cd), cd); err != nil {
			return err
		}
		if cd.Status.ObservedGeneration != cd.Generation {
			return fmt.Errorf("the status is about generation %d of %d", cd.Status.ObservedGeneration, cd.Generation)
		}
		return conditionIs(cd.Status.Conditions, "Ready=True")
	})
}

// wantService waits until the status tells of a service "State template: message", as far as it is given.
func (w *world) wantService(set, service, want string) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("service %s is %s", service, want), func() error {
		s, err := w.set(set)
		if err != nil {
			return err
		}
		for _, state := range s.Status.Services {
			if state.Name != service {
				continue
			}
			if got := fmt.Sprintf("%s %s: %s", state.State, state.Template, state.FailureMessage); !strings.HasPrefix(got, want) {
				return fmt.Errorf("it is %s", got)
			}
			return nil
		}
		return fmt.Errorf("the status does not tell of it: %v", s.Status.Services)
	})
}

// wantText waits until a ConfigMap of the world has an entry, or is gone for "".
func (w *world) wantText(name, key, want string) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("ConfigMap %s has %q", name, want), func() error {
		cm := &corev1.ConfigMap{}
		err := w.user.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, cm)
		if apierrors.IsNotFound(err) && want == "" {
			return nil
		}
		if err != nil {
			return err
		}
		if cm.Data[key] != want {
			return fmt.Errorf("it has %v", cm.Data)
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
