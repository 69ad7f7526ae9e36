package target_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// user is who uses clusters in the tests.
var user = target.Key{Namespace: "platform", Name: "set"}

// owner is the label that names the user of an object on a target cluster.
const owner = "test.operatorkit.io/owner"

// world is a management cluster with Clusters that run.
type world struct {
	t         *testing.T
	kube      *operatortest.Instance
	client    client.Client
	namespace string
	clusters  *target.Clusters
	registry  *prometheus.Registry
	log       *logBuffer
	counts    *counts
	// stop ends Run and waits for it.
	stop func()

	mu      sync.Mutex
	notices []target.Notice
}

// logBuffer is where the logger writes to.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// counts counts the requests that are sent to each cluster. It stands below all of the package.
type counts struct {
	mu   sync.Mutex
	sent map[target.Key][]string
}

func (c *counts) wrap(cluster target.Key, next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		c.mu.Lock()
		c.sent[cluster] = append(c.sent[cluster], r.Method+" "+r.URL.Path)
		c.mu.Unlock()
		return next.RoundTrip(r)
	})
}

// of returns the requests to a cluster that contain the text.
func (c *counts) of(cluster target.Key, text string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, request := range c.sent[cluster] {
		if strings.Contains(request, text) {
			n++
		}
	}
	return n
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// newWorld returns a world in a namespace of its own. change may change the configuration.
func newWorld(t *testing.T, change func(*target.Config)) *world {
	t.Helper()
	w := &world{t: t, kube: operatortest.Start(t), registry: prometheus.NewRegistry(), log: &logBuffer{}, counts: &counts{sent: map[target.Key][]string{}}}
	crds, err := operator.ReadCRDs(v1alpha1.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	w.kube.InstallCRDs(t, crds...)
	w.namespace = w.kube.Namespace(t)
	c := newClient(t, w.kube.RESTConfig())
	w.client = c
	logger, err := micrologger.New(micrologger.Config{IOWriter: w.log})
	if err != nil {
		t.Fatal(err)
	}
	source := func(object client.Object) informer.Source {
		s, err := informer.NewKubernetes(informer.KubernetesConfig{Client: c, Object: object, Namespaces: []string{w.namespace}, Logger: logger})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	config := target.Config{
		Deployments: source(&v1alpha1.ClusterDeployment{}), Secrets: source(&corev1.Secret{}), Management: w.kube.RESTConfig(),
		Scheme: testScheme(t), Logger: logger, Registerer: w.registry, WrapTransport: w.counts.wrap,
		Owners: func(_ target.Key, obj client.Object) []target.Key {
			namespace, name, _ := strings.Cut(obj.GetLabels()[owner], ".")
			return []target.Key{{Namespace: namespace, Name: name}}
		},
		// Long enough for a machine that is slow, short enough for tests that wait for the next try.
		ConnectTimeout: 30 * time.Second, RequestTimeout: time.Minute, MinRetry: 50 * time.Millisecond, MaxRetry: 500 * time.Millisecond, QPS: -1,
	}
	if change != nil {
		change(&config)
	}
	if w.clusters, err = target.New(config); err != nil {
		t.Fatal(err)
	}
	w.run()
	return w
}

func newClient(t *testing.T, config *rest.Config) client.WithWatch {
	t.Helper()
	return operatortest.NewClient(t, config, testScheme(t))
}

func (w *world) run() {
	w.t.Helper()
	w.clusters.Notices().Subscribe(func(e informer.Event) {
		if n, ok := e.Object.(*target.Notice); ok && e.Type != informer.Deleted {
			w.mu.Lock()
			w.notices = append(w.notices, *n)
			w.mu.Unlock()
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.clusters.Notices().Run(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("Run: %v", err)
		}
	})
	w.t.Cleanup(func() {
		w.stop()
		if w.t.Failed() {
			w.t.Log("log:\n" + w.log.String())
		}
	})
	if err := w.clusters.Notices().WaitForSync(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func testScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// key names a cluster of the world.
func (w *world) key(name string) target.Key { return target.Key{Namespace: w.namespace, Name: name} }

// deploy creates a ClusterDeployment and the Secret with its kubeconfig.
func (w *world) deploy(name string, kubeconfig []byte) target.Key {
	w.t.Helper()
	w.put(&v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}})
	w.rotate(name, kubeconfig)
	return w.key(name)
}

// rotate puts a kubeconfig into the Secret of a cluster.
func (w *world) rotate(name string, kubeconfig []byte) {
	w.t.Helper()
	w.put(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name + target.DefaultSecretSuffix},
		Data:       map[string][]byte{target.DefaultSecretKey: kubeconfig},
	})
}

// put creates an object or puts it in the place of the one that is there.
func (w *world) put(obj client.Object) {
	w.t.Helper()
	obj.SetResourceVersion("")
	err := w.client.Create(w.t.Context(), obj)
	if apierrors.IsAlreadyExists(err) {
		err = w.client.Update(w.t.Context(), obj)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// watch has the user watch kinds of a cluster, and waits until the watches have begun.
func (w *world) watch(c *target.Cluster, by target.Key, kinds ...target.Kind) {
	w.t.Helper()
	if err := c.Watch(by, kinds...); err != nil {
		w.t.Fatal(err)
	}
	for _, kind := range kinds {
		w.told("the watch begins", func(n target.Notice) bool {
			return n.Occasion == target.WatchBegun && n.User == by && n.Cluster == c.Key() && n.Kind == kind.GroupVersionKind
		})
	}
}

// acquire acquires a cluster for the user, which may be before its ClusterDeployment and Secret have come through the
// sources.
func (w *world) acquire(key, by target.Key) *target.Cluster {
	w.t.Helper()
	c, err := w.clusters.Acquire(key, by)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// connected acquires a cluster and waits until it is connected.
func (w *world) connected(key target.Key) *target.Cluster {
	w.t.Helper()
	c := w.acquire(key, user)
	w.await(c, target.Connected)
	return c
}

func (w *world) await(c *target.Cluster, state target.State) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("%s is %s", c.Key(), state), func() error {
		if h := c.Health(); h.State != state {
			return fmt.Errorf("it is %+v", h)
		}
		return nil
	})
}

// told waits for a notice for which the function holds.
func (w *world) told(what string, holds func(target.Notice) bool) {
	w.t.Helper()
	operatortest.Eventually(w.t, what, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, n := range w.notices {
			if holds(n) {
				return nil
			}
		}
		return fmt.Errorf("the notices are %v", w.notices)
	})
}

// forget drops the notices so far.
func (w *world) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notices = nil
}

// noticed returns how many notices hold.
func (w *world) noticed(holds func(target.Notice) bool) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, notice := range w.notices {
		if holds(notice) {
			n++
		}
	}
	return n
}

// kubeconfigOf writes a configuration as a kubeconfig.
func kubeconfigOf(t *testing.T, config *rest.Config) []byte {
	t.Helper()
	return write(t, &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData},
		&clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken})
}

func write(t *testing.T, cluster *clientcmdapi.Cluster, info *clientcmdapi.AuthInfo) []byte {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["prod"], config.AuthInfos["admin"] = cluster, info
	config.Contexts["main"] = &clientcmdapi.Context{Cluster: "prod", AuthInfo: "admin"}
	config.CurrentContext = "main"
	data, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// administrator returns a kubeconfig of a user with all rights.
func administrator(t *testing.T, kube *operatortest.Instance, name string) []byte {
	t.Helper()
	config, err := kube.User(name, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfigOf(t, config)
}

// account makes a service account with all rights in the namespace and returns a kubeconfig with its token.
func (w *world) account(name string) []byte {
	w.t.Helper()
	clientset, err := kubernetes.NewForConfig(w.kube.RESTConfig())
	if err != nil {
		w.t.Fatal(err)
	}
	w.put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}})
	w.put(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: name}},
	})
	token, err := clientset.CoreV1().ServiceAccounts(w.namespace).CreateToken(w.t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(w.kube.RESTConfig())
	config.BearerToken = token.Status.Token
	return kubeconfigOf(w.t, config)
}

// configMap returns a ConfigMap that belongs to the user.
func configMap(namespace, name string, of target.Key) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{owner: of.Namespace + "." + of.Name, "test": namespace},
	}}
}

// configMaps are the ConfigMaps of one test.
func configMaps(namespace string) target.Kind {
	return target.Kind{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		Selector:         labels.SelectorFromSet(labels.Set{"test": namespace}),
	}
}

// unreachable returns the UnreachableError in an error, and fails the test if there is none.
func unreachable(t *testing.T, err error) *target.UnreachableError {
	t.Helper()
	var u *target.UnreachableError
	if !errors.As(err, &u) || !errors.Is(err, target.ErrUnreachable) {
		t.Fatalf("err = %v, want an UnreachableError", err)
	}
	return u
}

// changeOf tells whether a notice is about a change of the named object.
func changeOf(name string) func(target.Notice) bool {
	return func(n target.Notice) bool { return n.Occasion == target.ObjectChanged && n.Object.Name == name }
}
