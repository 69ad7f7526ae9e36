package native_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/fetch"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// east is the cluster that services go to: a control plane that the tests of the package share.
var east struct {
	once     sync.Once
	instance *operatortest.Instance
	err      error
}

func eastern(t testing.TB) *operatortest.Instance {
	t.Helper()
	east.once.Do(func() { east.instance, east.err = operatortest.Run(context.Background(), operatortest.Config{}) })
	if east.err != nil {
		t.Fatal(east.err)
	}
	return east.instance
}

// world is a namespace of the management cluster with the cluster "east", and a state manager. Its services go to the namespace of
// the same name there.
type world struct {
	t         *testing.T
	client    client.WithWatch
	namespace string
	// east is a client of the cluster.
	east     client.WithWatch
	clusters *target.Clusters
	secrets  informer.Source
	config   native.Config
	manager  *native.Manager
	// scope is whose the work is; nil is the test program's.
	scope    *identity.Scope
	log      *buffer
	requests *counter
	// all is everything that anybody was told: states, plans, notes and errors.
	all buffer
}

type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// counter counts requests to target clusters, probes and watches left out.
type counter struct {
	mu   sync.Mutex
	sent []string
	// before is called before each request, and may be nil.
	before func(cluster target.Key, r *http.Request)
}

func (c *counter) wrap(cluster target.Key, next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		c.mu.Lock()
		before := c.before
		c.mu.Unlock()
		if before != nil {
			before(cluster, r)
		}
		if r.URL.Path != "/version" && r.URL.Query().Get("watch") == "" {
			c.mu.Lock()
			c.sent = append(c.sent, r.Method+" "+r.URL.Path)
			c.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

func (c *counter) drain() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	sent := c.sent
	c.sent = nil
	return sent
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func schemeOf(t testing.TB) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func newClient(t testing.TB, config *rest.Config) client.WithWatch {
	t.Helper()
	return operatortest.NewClient(t, config, schemeOf(t))
}

// newWorld returns a world whose services are put onto the cluster by these carriers.
func newWorld(t *testing.T, helm, manifests carrier.Carrier) *world {
	t.Helper()
	management := operatortest.Start(t)
	crds, err := operator.ReadCRDs(v1alpha1.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	management.InstallCRDs(t, crds...)
	w := &world{t: t, client: newClient(t, management.RESTConfig()), namespace: management.Namespace(t), log: &buffer{}, requests: &counter{}}
	logger, err := micrologger.New(micrologger.Config{IOWriter: w.log})
	if err != nil {
		t.Fatal(err)
	}
	source := func(object client.Object) informer.Source {
		s, err := informer.NewKubernetes(informer.KubernetesConfig{Client: w.client, Object: object, Namespaces: []string{w.namespace}, Logger: logger})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	w.secrets = source(&corev1.Secret{})
	w.clusters, err = target.New(target.Config{
		Deployments: source(&v1alpha1.ClusterDeployment{}), Secrets: w.secrets, Management: management.RESTConfig(), Scheme: schemeOf(t), Logger: logger,
		ConnectTimeout: 30 * time.Second, RequestTimeout: time.Minute, MinRetry: 50 * time.Millisecond, MaxRetry: 500 * time.Millisecond, QPS: -1,
		WrapTransport: w.requests.wrap,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.run()
	fetcher, err := fetch.New(fetch.Config{Folder: t.TempDir(), Trust: -1})
	if err != nil {
		t.Fatal(err)
	}
	w.config = native.Config{Clusters: w.clusters, Management: w.client, Helm: helm, Manifests: manifests, Fetcher: fetcher, Logger: logger}
	w.restart()
	return w
}

// restart begins with a state manager that remembers nothing.
func (w *world) restart() {
	w.t.Helper()
	var err error
	if w.manager, err = native.New(w.config); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) run() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.clusters.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("Run: %v", err)
		}
		if w.t.Failed() {
			w.t.Log("log:\n" + w.log.String())
		}
	})
	if err := w.clusters.Notices().WaitForSync(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// deploy makes a cluster known, and waits until it is connected.
func (w *world) deploy(name string, config *rest.Config) {
	w.t.Helper()
	w.put(&v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}})
	w.rotate(name, kubeconfigOf(w.t, config))
	w.await(name, target.Connected)
}

// useEast makes the shared cluster known as "east".
func (w *world) useEast() {
	w.t.Helper()
	instance := eastern(w.t)
	w.deploy("east", instance.RESTConfig())
	w.east = newClient(w.t, instance.RESTConfig())
	w.t.Cleanup(func() {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
		if err := client.IgnoreNotFound(w.east.Delete(context.Background(), namespace)); err != nil {
			w.t.Errorf("clean up: %v", err)
		}
	})
}

func (w *world) rotate(name string, kubeconfig []byte) {
	w.t.Helper()
	w.put(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name + target.DefaultSecretSuffix},
		Data:       map[string][]byte{target.DefaultSecretKey: kubeconfig},
	})
}

// await waits until a cluster is in a state.
func (w *world) await(name string, state target.State) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("%s is %s", name, state), func() error {
		c, err := w.clusters.Acquire(target.Key{Namespace: w.namespace, Name: name}, target.Key{Namespace: w.namespace, Name: "test"})
		if err != nil {
			return err
		}
		if h := c.Health(); h.State != state {
			return fmt.Errorf("it is %+v", h)
		}
		return nil
	})
}

func kubeconfigOf(t testing.TB, config *rest.Config) []byte {
	t.Helper()
	k := clientcmdapi.NewConfig()
	k.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	k.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken}
	k.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	k.CurrentContext = "c"
	data, err := clientcmd.Write(*k)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// input is what an operator gives to a state manager.
func (w *world) input(name string) *statemanager.Set {
	w.t.Helper()
	set := &statemanager.Set{ServiceSet: w.get(name), Templates: map[string]*v1alpha1.ServiceTemplate{}}
	var err error
	if set.Config, err = statemanager.ConfigOf(set.ServiceSet); err != nil {
		w.t.Fatal(err)
	}
	templates, sets := &v1alpha1.ServiceTemplateList{}, &v1alpha1.ServiceSetList{}
	for _, list := range []client.ObjectList{templates, sets} {
		if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			w.t.Fatal(err)
		}
	}
	for i := range templates.Items {
		set.Templates[templates.Items[i].Name] = &templates.Items[i]
	}
	for i := range sets.Items {
		if other := &sets.Items[i]; other.Name != name && other.Spec.Cluster == set.ServiceSet.Spec.Cluster {
			set.Others = append(set.Others, other)
		}
	}
	cluster := &v1alpha1.ClusterDeployment{}
	err = w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: set.ServiceSet.Spec.Cluster}, cluster)
	if err == nil {
		set.Cluster = cluster
	}
	return set
}

// ctx is the context of a reconciliation.
func (w *world) ctx() context.Context {
	if w.scope == nil {
		return w.t.Context()
	}
	return identity.NewContext(w.t.Context(), w.scope)
}

// compute is what there would be to do.
func (w *world) compute(name string) (*statemanager.Work, error) {
	w.t.Helper()
	return w.manager.Compute(w.ctx(), w.input(name))
}

// step is one reconciliation: Compute, the status, and CarryOut of all operations.
func (w *world) step(name string) (*statemanager.Work, error) {
	w.t.Helper()
	set := w.input(name)
	work, err := w.manager.Compute(w.ctx(), set)
	if err != nil {
		return nil, err
	}
	set.ServiceSet.Status.Services = work.Services
	set.ServiceSet.Status.ObservedGeneration = set.ServiceSet.Generation
	if err := w.client.Status().Update(w.t.Context(), set.ServiceSet); err != nil {
		return nil, fmt.Errorf("write the status: %w", err)
	}
	fmt.Fprintf(&w.all, "%+v\n", work.Services)
	var faults []error
	for i := range work.Operations {
		o := &work.Operations[i]
		fmt.Fprintf(&w.all, "%v %+v %v %v\n", o.Service, o.Changes, o.Notes, o.Err)
		faults = append(faults, o.Err)
		if o.Err == nil && len(o.Changes) > 0 {
			err := w.manager.CarryOut(w.ctx(), set, o)
			fmt.Fprintln(&w.all, err)
			faults = append(faults, err)
		}
	}
	return work, errors.Join(faults...)
}

// tellOnly is a reconciliation that ends after its status was written.
func (w *world) tellOnly(name string) {
	w.t.Helper()
	set := w.input(name)
	work, err := w.manager.Compute(w.ctx(), set)
	if err != nil {
		w.t.Fatal(err)
	}
	set.ServiceSet.Status.Services = work.Services
	if err := w.client.Status().Update(w.t.Context(), set.ServiceSet); err != nil {
		w.t.Fatal(err)
	}
}

// mustStep is a step without errors.
func (w *world) mustStep(name string) *statemanager.Work {
	w.t.Helper()
	work, err := w.step(name)
	if err != nil {
		w.t.Fatal(err)
	}
	return work
}

// settle reconciles until the states are these, such as "db Deployed, web Pending".
func (w *world) settle(name, want string) *v1alpha1.ServiceSet {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("%s is: %s", name, want), func() error {
		_, err := w.step(name)
		if apierrors.IsConflict(err) {
			return err
		}
		if got := states(w.get(name)); got != want {
			return errors.Join(fmt.Errorf("it is: %s (%s)", got, failures(w.get(name))), err)
		}
		return nil
	})
	return w.get(name)
}

// quiet checks that another reconciliation has nothing to do and changes nothing in the status.
func (w *world) quiet(name string) {
	w.t.Helper()
	before := w.get(name)
	work := w.mustStep(name)
	for _, o := range work.Operations {
		if len(o.Changes) > 0 {
			w.t.Errorf("%s has something to do still: %v", o.Service, o.Changes)
		}
	}
	if after := w.get(name); !equality.Semantic.DeepEqual(before.Status.Services, after.Status.Services) {
		w.t.Errorf("the status of %s changes without a reason:\n%+v\n%+v", name, before.Status.Services, after.Status.Services)
	}
}
