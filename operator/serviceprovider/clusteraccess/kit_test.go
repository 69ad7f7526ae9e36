package clusteraccess_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/frameworktest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/granter"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/namespaces"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/scheduler"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

func TestMain(m *testing.M) { operatortest.VerifyTestMain(m) }

// remote is a second control plane, which the tests of this package share: the cluster that access is for.
var remote = sync.OnceValues(func() (*operatortest.Instance, error) {
	return operatortest.Run(context.Background(), operatortest.Config{})
})

// log is what operators said in a test.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// world is the namespaces of a platform and of a service provider on the platform cluster, and the cluster that access is for.
type world struct {
	t      *testing.T
	scheme *runtime.Scheme
	kube   *operatortest.Instance
	remote *operatortest.Instance
	// namespace is that of the provider postgres, and clusters that of the Clusters. providers are all that have a namespace, by it.
	namespace, clusters string
	providers           map[string]string
	// elsewhere are more namespaces, which the operator looks at.
	elsewhere []string
	// user and admin have all rights on the platform, and in the cluster.
	user, admin client.Client
	clock       *clocktesting.FakePassiveClock
	log         *log
	logger      micrologger.Logger
	policy      granter.Policy
	// localServers has the granter reach clusters where annotations say.
	localServers bool
	// operator is the name of the operator that grants, former are those that it had before.
	operator string
	former   []string
	// change may change what the granter is configured with.
	change func(*granter.Config)
	deps   *operator.Dependencies
	// frameworks are, by name, those of the operator that runs.
	frameworks map[string]*framework.Framework
}

func newScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	return s
}

// configMaps are rules for ConfigMaps.
func configMaps(verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, scheme: newScheme(t), kube: operatortest.Start(t), log: &log{}, operator: "access", clock: clocktesting.NewFakePassiveClock(time.Now()),
		policy: granter.Policy{
			Permissions: []v1alpha1.Permission{
				{Namespace: "*", Rules: []rbacv1.PolicyRule{configMaps("*")}},
				{Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list"}}}},
			},
			RoleRefs: []v1alpha1.RoleReference{{Kind: "ClusterRole", Name: "view", Namespace: "*"}},
		},
	}
	var err error
	if w.remote, err = remote(); err != nil {
		t.Fatal(err)
	}
	crds, err := operator.ReadCRDs(v1alpha1.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	w.kube.InstallCRDs(t, crds...)
	w.namespace, w.clusters = w.kube.Namespace(t), w.kube.Namespace(t)
	w.providers = map[string]string{w.namespace: "postgres"}
	w.user, w.admin = w.client(w.kube.RESTConfig()), w.client(w.remote.RESTConfig())
	if w.logger, err = micrologger.New(micrologger.Config{IOWriter: w.log}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("log:\n" + w.log.String())
		}
	})
	return w
}

// client returns a client whose connections end with the test.
func (w *world) client(config *rest.Config) client.Client {
	w.t.Helper()
	return operatortest.NewClient(w.t, config, w.scheme)
}

// layout says which namespaces of the world are for what.
func (w *world) layout() namespaces.Layout {
	return namespaces.Layout{Clusters: w.clusters, Provider: func(namespace string) string { return w.providers[namespace] }}
}

// open makes an operator of the world's namespaces that does not run.
func (w *world) open(config *rest.Config) (*operator.Dependencies, []*framework.Framework, error) {
	deps, err := operator.NewDependencies(operator.DependenciesConfig{
		Name: w.operator, FormerNames: w.former, RESTConfig: config, Scheme: w.scheme, Logger: w.logger, InspectorAddress: "127.0.0.1:0",
		Namespaces: slices.Concat(slices.Collect(maps.Keys(w.providers)), []string{w.clusters}, w.elsewhere),
	})
	if err != nil {
		return nil, nil, err
	}
	granting := granter.Config{Layout: w.layout(), Policy: func(*v1alpha1.Cluster, *v1alpha1.AccessRequest) granter.Policy { return w.policy }, Clock: w.clock, LocalServers: w.localServers}
	if w.change != nil {
		w.change(&granting)
	}
	frameworks, err := granter.New(deps, granting)
	if err != nil {
		return nil, nil, err
	}
	placing, err := scheduler.New(deps, w.layout())
	if err != nil {
		return nil, nil, err
	}
	return deps, append(placing, frameworks...), nil
}

// start runs an operator until the test ends, or the function returned is called.
func (w *world) start() (stop func()) {
	w.t.Helper()
	deps, frameworks, err := w.open(w.kube.RESTConfig())
	if err != nil {
		w.t.Fatal(err)
	}
	return w.running(deps, frameworks)
}

// running runs an operator that was opened.
func (w *world) running(deps *operator.Dependencies, frameworks []*framework.Framework) (stop func()) {
	w.t.Helper()
	w.deps, w.frameworks = deps, map[string]*framework.Framework{}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, f := range frameworks {
		w.frameworks[f.Name()] = f
		wg.Go(func() {
			if err := f.Run(ctx); err != nil {
				w.t.Errorf("framework %s: %v", f.Name(), err)
			}
		})
	}
	stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		deps.Close()
	})
	w.t.Cleanup(stop)
	return stop
}

// create creates objects where they belong: Clusters and their Secrets in the platform's namespace, requests in the provider's.
func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		o.SetNamespace(w.namespace)
		_, isCluster := o.(*v1alpha1.Cluster)
		if _, isSecret := o.(*corev1.Secret); isCluster || isSecret && strings.HasSuffix(o.GetName(), "-admin") {
			o.SetNamespace(w.clusters)
		}
		if err := w.user.Create(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
	}
}

// kubeconfigOf writes a configuration as a kubeconfig.
func kubeconfigOf(t testing.TB, config *rest.Config) []byte {
	t.Helper()
	out := clientcmdapi.NewConfig()
	out.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	out.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken}
	out.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	out.CurrentContext = "x"
	data, err := clientcmd.Write(*out)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// newCluster returns a Cluster and the Secret by which it is managed.
func newCluster(t testing.TB, name string, config *rest.Config, purposes ...string) (*v1alpha1.Cluster, *corev1.Secret) {
	t.Helper()
	return &v1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       v1alpha1.ClusterSpec{Purposes: purposes, Kubeconfig: v1alpha1.KubeconfigReference{SecretName: name + "-admin"}},
		}, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-admin"}, Data: map[string][]byte{v1alpha1.KubeconfigKey: kubeconfigOf(t, config)},
		}
}

// addCluster lists the remote cluster under a name.
func (w *world) addCluster(name string, purposes ...string) *v1alpha1.Cluster {
	w.t.Helper()
	cluster, secret := newCluster(w.t, name, w.remote.RESTConfig(), purposes...)
	w.create(secret, cluster)
	return cluster
}

// remoteNamespace makes a namespace in the remote cluster.
func (w *world) remoteNamespace() string {
	w.t.Helper()
	return w.remote.Namespace(w.t)
}

// newAccess returns an AccessRequest for a Cluster.
func newAccess(name, cluster string, permissions ...v1alpha1.Permission) *v1alpha1.AccessRequest {
	return &v1alpha1.AccessRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.AccessRequestSpec{ClusterRef: &v1alpha1.LocalObjectReference{Name: cluster}, Permissions: permissions},
	}
}

// settles waits until an object is as it should be.
func settles[O client.Object](w *world, o O, what string, holds func(O) error) O {
	w.t.Helper()
	operatortest.Eventually(w.t, what, func() error {
		if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		return holds(o)
	})
	return o
}

// wants waits for a phase and a reason of the AccessRequest as it is now.
func (w *world) wants(ar *v1alpha1.AccessRequest, phase v1alpha1.Phase, reason string) *v1alpha1.AccessRequest {
	w.t.Helper()
	return settles(w, ar, fmt.Sprintf("%s is %s, %s", ar.Name, phase, reason), func(ar *v1alpha1.AccessRequest) error {
		c := apimeta.FindStatusCondition(ar.Status.Conditions, v1alpha1.ConditionGranted)
		if ar.Status.Phase != phase || c == nil || c.Reason != reason {
			return fmt.Errorf("it is %+v", ar.Status)
		}
		if phase != v1alpha1.PhasePending && ar.Status.ObservedGeneration != ar.Generation {
			return fmt.Errorf("the status is about generation %d of %d", ar.Status.ObservedGeneration, ar.Generation)
		}
		return nil
	})
}

// granted waits until a request is granted.
func (w *world) granted(ar *v1alpha1.AccessRequest) *v1alpha1.AccessRequest {
	w.t.Helper()
	return w.wants(ar, v1alpha1.PhaseGranted, v1alpha1.ReasonGranted)
}

// message is that of the condition Granted.
func message(ar *v1alpha1.AccessRequest) string {
	if c := apimeta.FindStatusCondition(ar.Status.Conditions, v1alpha1.ConditionGranted); c != nil {
		return c.Message
	}
	return ""
}

// credentials returns the Secret of a request, and a configuration that is made of it.
func (w *world) credentials(ar *v1alpha1.AccessRequest) (*corev1.Secret, *rest.Config) {
	w.t.Helper()
	if ar.Status.SecretRef == nil {
		w.t.Fatalf("%s has no Secret: %+v", ar.Name, ar.Status)
	}
	secret := &corev1.Secret{}
	if err := w.user.Get(w.t.Context(), client.ObjectKey{Namespace: ar.Namespace, Name: ar.Status.SecretRef.Name}, secret); err != nil {
		w.t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[v1alpha1.KubeconfigKey])
	if err != nil {
		w.t.Fatal(err)
	}
	return secret, config
}

// wantGone waits until an object of the platform does not exist any more.
func (w *world) wantGone(o client.Object) {
	w.t.Helper()
	key := client.ObjectKeyFromObject(o)
	operatortest.Eventually(w.t, fmt.Sprintf("%T %s is gone", o, key), func() bool {
		return apierrors.IsNotFound(w.user.Get(w.t.Context(), key, o))
	})
}

// patch changes an object of the platform by a merge patch.
func (w *world) patch(o client.Object, body string) {
	w.t.Helper()
	if err := w.user.Patch(w.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(body))); err != nil {
		w.t.Fatal(err)
	}
}

// look has the granter look at a request again, as time would.
func (w *world) look(ar *v1alpha1.AccessRequest) {
	w.frameworks["granter"].Enqueue(client.ObjectKeyFromObject(ar))
}

// remains lists what is in the remote cluster for the requests of a namespace of the platform.
func (w *world) remains(namespace string) ([]client.Object, error) {
	var found []client.Object
	for _, list := range []client.ObjectList{
		&corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
	} {
		if err := w.admin.List(context.Background(), list, client.MatchingLabels{"app.kubernetes.io/managed-by": "operatorkit-granter"}); err != nil {
			return nil, err
		}
		err := apimeta.EachListItem(list, func(o runtime.Object) error {
			obj := o.(client.Object)
			if obj.GetAnnotations()["operatorkit.io/owner"] != "" && bytes.Contains([]byte(obj.GetAnnotations()["operatorkit.io/owner"]), []byte("/"+namespace+"/")) {
				found = append(found, obj)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// wantNothingLeft fails unless the remote cluster has nothing of the world.
func (w *world) wantNothingLeft() {
	w.t.Helper()
	left, err := w.remains(w.namespace)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, o := range left {
		w.t.Errorf("%T %s/%s is left in the cluster", o, o.GetNamespace(), o.GetName())
	}
}

// object is what somebody reconciles.
func object(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "tenant", Name: name}}
}

// config is that of Clusters of the world.
func (w *world) config() clusteraccess.Config {
	w.t.Helper()
	platform, err := clusters.New("platform", w.kube.RESTConfig(), w.scheme)
	if err != nil {
		w.t.Fatal(err)
	}
	return clusteraccess.Config{
		Provider: "postgres", Namespace: w.namespace, Platform: platform, Scheme: w.scheme, Logger: w.logger,
		RetryPending: 10 * time.Millisecond, RetryDenied: 20 * time.Millisecond,
	}
}

// runner is what runs beside a test.
type runner interface {
	Start(ctx context.Context) error
	WaitForSync(ctx context.Context) error
}

// run runs Clusters or a Provider until the test ends.
func (w *world) run(r runner) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Start(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("Start: %v", err)
		}
	})
	if err := r.WaitForSync(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// looked waits until the granter has looked at a request again, and has nothing to do.
func (w *world) looked(ar *v1alpha1.AccessRequest) {
	w.t.Helper()
	frameworktest.Look(w.t, w.frameworks["granter"], ar)
}

// neverFailed fails the test if a reconciliation has failed.
func (w *world) neverFailed() {
	w.t.Helper()
	for line := range strings.Lines(w.log.String()) {
		if strings.Contains(line, "reconciliation failed") {
			w.t.Errorf("a reconciliation has failed: %s", line)
		}
	}
}

// plan returns the text and the JSON of what an operator would do for a request, which does not run.
func (w *world) plan(ar *v1alpha1.AccessRequest) string {
	w.t.Helper()
	deps, frameworks, err := w.open(w.kube.RESTConfig())
	if err != nil {
		w.t.Fatal(err)
	}
	defer deps.Close()
	ctx, cancel := context.WithCancel(w.t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for _, f := range frameworks {
		for _, s := range f.Sources() {
			wg.Go(func() { _ = s.Run(ctx) })
		}
	}
	var text bytes.Buffer
	for _, f := range frameworks {
		for _, s := range f.Sources() {
			if err := s.WaitForSync(ctx); err != nil {
				w.t.Fatal(err)
			}
		}
		if f.Name() != "granter" {
			continue
		}
		p, err := f.Plan(ctx, client.ObjectKeyFromObject(ar))
		if err != nil {
			w.t.Fatal(err)
		}
		err = errors.Join(plan.WriteText(&text, []*plan.Plan{p}, plan.TextOptions{}), plan.WriteJSON(&text, []*plan.Plan{p}))
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return text.String()
}
