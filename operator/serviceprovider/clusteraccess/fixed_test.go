package clusteraccess_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

var _ serviceprovider.FixedAccessProvider = (*clusteraccess.Provider)(nil)

// administrator is the configuration of a user of the remote cluster with all rights.
func (w *world) administrator(name string) *rest.Config {
	w.t.Helper()
	config, err := w.remote.User(name, "system:masters")
	if err != nil {
		w.t.Fatal(err)
	}
	return config
}

// whoAmI asks a cluster who its client is.
func whoAmI(ctx context.Context, c client.Client) (string, error) {
	review := &authenticationv1.SelfSubjectReview{}
	err := c.Create(ctx, review)
	return review.Status.UserInfo.Username, err
}

// fixedAt is a Provider whose MCP is fixed, by a Secret of that name in the world's namespace.
func (w *world) fixedAt(secret string) *clusteraccess.Provider {
	w.t.Helper()
	return w.newProvider(func(c *clusteraccess.ProviderConfig) {
		c.MCP, c.Workload = nil, nil
		c.Fixed = map[string]clusteraccess.Fixed{clusteraccess.MCP: {Secret: client.ObjectKey{Namespace: w.namespace, Name: secret}}}
	})
}

func TestAFixedClusterIsThereWithoutBeingAskedFor(t *testing.T) {
	w := newWorld(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "fixed"}, Data: map[string][]byte{v1alpha1.KubeconfigKey: kubeconfigOf(t, w.administrator("first"))}}
	w.create(secret)
	p := w.fixedAt("fixed")
	ctx, one, other := t.Context(), object("one"), object("other")
	if result, err := p.Reconcile(ctx, one); err != nil || !result.IsZero() {
		t.Errorf("Reconcile = %v, %v, want nothing to wait for", result, err)
	}
	c, err := p.MCPCluster(ctx, one)
	if err != nil {
		t.Fatal(err)
	}
	if name, err := whoAmI(ctx, c.Client()); err != nil || name != "first" {
		t.Errorf("the client is %q, %v", name, err)
	}
	if c.RESTConfig().Host != w.remote.RESTConfig().Host {
		t.Errorf("RESTConfig leads to %s", c.RESTConfig().Host)
	}
	if same, err := p.MCPCluster(ctx, other); err != nil || same != c {
		t.Errorf("another object gets %v, %v, want the same cluster", same, err)
	}
	if key, fixed := p.FixedCluster(clusteraccess.MCP); !fixed || key != client.ObjectKeyFromObject(secret) {
		t.Errorf("FixedCluster = %v, %t", key, fixed)
	}
	if _, err := p.MCPAccessRequest(ctx, one); !apierrors.IsNotFound(err) {
		t.Errorf("the AccessRequest: err = %v, want not found", err)
	}
	requests := &v1alpha1.AccessRequestList{}
	if err := w.user.List(ctx, requests, client.InNamespace(w.namespace)); err != nil || len(requests.Items) > 0 {
		t.Errorf("there are %d AccessRequests, %v", len(requests.Items), err)
	}

	secret.Data[v1alpha1.KubeconfigKey] = kubeconfigOf(t, w.administrator("second"))
	if err := w.user.Update(ctx, secret); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the same client uses another kubeconfig", func() error {
		name, err := whoAmI(ctx, c.Client())
		if err == nil && name != "second" {
			err = fmt.Errorf("it is %q", name)
		}
		return err
	})
	for _, request := range []reconcile.Request{one, other} {
		if result, err := p.ReconcileDelete(ctx, request); err != nil || !result.IsZero() {
			t.Errorf("ReconcileDelete = %v, %v, want nothing to wait for", result, err)
		}
	}
}

func TestAFixedClusterIsLeftWithTheLastObjectThatUsesIt(t *testing.T) {
	w := newWorld(t)
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "fixed"}, Data: map[string][]byte{v1alpha1.KubeconfigKey: kubeconfigOf(t, w.administrator("first"))}})
	p := w.newProvider(func(c *clusteraccess.ProviderConfig) {
		c.MCP, c.Workload, c.IdleTimeout = nil, nil, time.Millisecond
		c.Fixed = map[string]clusteraccess.Fixed{clusteraccess.MCP: {Secret: client.ObjectKey{Namespace: w.namespace, Name: "fixed"}}}
	})
	ctx, one, other := t.Context(), object("one"), object("other")
	of := func(request reconcile.Request) *clusters.Cluster {
		t.Helper()
		return eventual(t, "the cluster answers", func() (*clusters.Cluster, error) {
			c, err := p.MCPCluster(ctx, request)
			if err == nil {
				_, err = whoAmI(ctx, c.Client())
			}
			return c, err
		})
	}
	deleted := func(request reconcile.Request) {
		t.Helper()
		if result, err := p.ReconcileDelete(ctx, request); err != nil || !result.IsZero() {
			t.Errorf("ReconcileDelete = %v, %v, want nothing to wait for", result, err)
		}
	}
	c := of(one)
	if same := of(other); same != c {
		t.Error("another object has another connection")
	}
	deleted(one)
	if same := of(other); same != c {
		t.Error("the connection that an object uses went with another object")
	}
	deleted(other)
	operatortest.Eventually(t, "the connection that nobody uses is closed", func() error {
		if _, err := whoAmI(ctx, c.Client()); !errors.Is(err, target.ErrReleased) {
			return fmt.Errorf("it is reached still: %w", err)
		}
		return nil
	})
	if fresh := of(one); fresh == c {
		t.Error("an object that comes later has the connection that was closed")
	}
}

func TestAFixedClusterTakesTheRightToReadItsSecretAndNoOther(t *testing.T) {
	w := newWorld(t)
	home := w.kube.Namespace(t)
	inside := w.administrator("first")
	local := inside.Host
	inside.Host = "https://kubernetes.default.svc:6443" // as it is called on the platform's network
	w.createIn(home, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "fixed", Annotations: map[string]string{v1alpha1.LocalServerAnnotation: local}},
		Data:       map[string][]byte{"config": kubeconfigOf(t, inside)},
	})
	w.createIn(home, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	w.createIn(home, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "provider"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"fixed"}, Verbs: []string{"get", "list", "watch"}},
	}})
	w.createIn(home, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "provider"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "provider"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.namespace, Name: "provider"}},
	})
	provider := w.providerConfig()
	operatortest.Eventually(t, "the right to read the Secret is in force", func() error {
		return w.client(provider).Get(t.Context(), client.ObjectKey{Namespace: home, Name: "fixed"}, &corev1.Secret{})
	})
	platform, err := clusters.New("platform", provider, w.scheme)
	if err != nil {
		t.Fatal(err)
	}
	var wrapped atomic.Value
	p := w.newProvider(func(c *clusteraccess.ProviderConfig) {
		c.Platform, c.LocalServers, c.MCP, c.Workload = platform, true, nil, nil
		c.Fixed = map[string]clusteraccess.Fixed{clusteraccess.MCP: {Secret: client.ObjectKey{Namespace: home, Name: "fixed"}, Key: "config"}}
		c.WrapTransport = func(of informer.Key, next http.RoundTripper) http.RoundTripper {
			wrapped.Store(of)
			return next
		}
	})
	request := object("db")
	c := eventual(t, "the cluster answers", func() (*clusters.Cluster, error) { return p.MCPCluster(t.Context(), request) })
	if name, err := whoAmI(t.Context(), c.Client()); err != nil || name != "first" {
		t.Errorf("the client is %q, %v", name, err)
	}
	if of := wrapped.Load(); of != (informer.Key{Namespace: home, Name: clusteraccess.MCP}) {
		t.Errorf("the requests to %v were wrapped", of)
	}
	namespace := w.remoteNamespace()
	if err := c.Client().Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "made"}}); err != nil {
		t.Fatal(err)
	}
	if name, err := watchBySocket(t.Context(), c.RESTConfig(), namespace, "configmaps"); err != nil || name == "" {
		t.Errorf("a WebSocket of RESTConfig: %q, %v", name, err)
	}
}

// eventual waits until there is a value.
func eventual[V any](t *testing.T, what string, get func() (V, error)) (value V) {
	t.Helper()
	operatortest.Eventually(t, what, func() (err error) {
		value, err = get()
		return err
	})
	return value
}

// mcp waits until an object reaches its MCP: the credentials come by another watch than that access is granted.
func (w *world) mcp(p *clusteraccess.Provider, request reconcile.Request) *clusters.Cluster {
	w.t.Helper()
	return eventual(w.t, "the MCP is reached", func() (*clusters.Cluster, error) { return p.MCPCluster(w.t.Context(), request) })
}

func TestAFixedClusterMayBeOneThatIsThereAlready(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	there, err := clusters.New("onboarding", w.administrator("there"), w.scheme)
	if err != nil {
		t.Fatal(err)
	}
	p := w.newProvider(func(c *clusteraccess.ProviderConfig) {
		c.Workload, c.Fixed = nil, map[string]clusteraccess.Fixed{"onboarding": {Cluster: there}}
	})
	w.start()
	request := object("db")
	w.done("access to the MCP is granted beside it", p.Reconcile, request)
	if c, err := p.AdditionalCluster(t.Context(), request, "onboarding"); err != nil || c != there {
		t.Errorf("the cluster is %v, %v", c, err)
	}
	if key, fixed := p.FixedCluster("onboarding"); !fixed || key != (client.ObjectKey{}) {
		t.Errorf("FixedCluster = %v, %t", key, fixed)
	}
	if _, fixed := p.FixedCluster(clusteraccess.MCP); fixed {
		t.Error("the MCP, which is asked for, is fixed")
	}
	w.done("access is taken away", p.ReconcileDelete, request)
}

func TestAFixedClusterSaysWhatIsWrongWithItsKubeconfig(t *testing.T) {
	w := newWorld(t)
	p := w.fixedAt("fixed")
	request := object("db")
	says := func(texts ...string) {
		t.Helper()
		operatortest.Eventually(t, "the error says "+strings.Join(texts, ", "), func() error {
			_, err := p.MCPCluster(t.Context(), request)
			for _, text := range append(texts, "the mcp cluster", w.namespace+"/fixed") {
				if err == nil || !strings.Contains(err.Error(), text) {
					return errors.Join(err, fmt.Errorf("it lacks %q", text))
				}
			}
			return nil
		})
	}
	says(string(target.SecretMissing), "there is no Secret")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "fixed"}, Data: map[string][]byte{"config": []byte("x")}}
	w.create(secret)
	says(`nothing under the key "kubeconfig"`)
	put := func(kubeconfig string) {
		t.Helper()
		secret.Data = map[string][]byte{v1alpha1.KubeconfigKey: []byte(kubeconfig)}
		if err := w.user.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	const form = "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n" +
		"clusters: [{name: c, cluster: {%s}}]\nusers: [{name: u, user: {%s}}]\n"
	const server = "server: 'https://127.0.0.1:1'"
	put("nonsense: [")
	says("this is not a kubeconfig")
	put("apiVersion: v1\nkind: Config\ncurrent-context: other\n")
	says("current-context", `"other"`)
	put(fmt.Sprintf(form, "server: 'http://127.0.0.1:1'", "token: t"))
	says("server must be an https:// address")
	put(fmt.Sprintf(form, server, "exec: {apiVersion: client.authentication.k8s.io/v1, command: login, interactiveMode: Never}"))
	says(`the program "login" (exec) is not run`)
	put(fmt.Sprintf(form, server, "tokenFile: /token"))
	says(`the file "/token" (tokenFile) is not read`)
	put(fmt.Sprintf(form, server, "token: t"))
	says(string(target.Unreachable), "refused")
	put(fmt.Sprintf(form, "server: '"+w.remote.RESTConfig().Host+"'", "token: t"))
	says(string(target.Unreachable), "certificate")
	put(fmt.Sprintf(form, "insecure-skip-tls-verify: true, server: '"+w.remote.RESTConfig().Host+"'", "token: t"))
	says(string(target.CredentialRefused))

	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	defer time.AfterFunc(5*time.Minute, queue.ShutDown).Stop() // so that it does not wait for ever
	if err := p.Changes().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	put(string(kubeconfigOf(t, w.administrator("first"))))
	for { // it is told when it is mended
		told, shutdown := queue.Get()
		queue.Done(told)
		if shutdown || told != request {
			t.Fatalf("told of %v", told)
		}
		if c, err := p.MCPCluster(t.Context(), request); err == nil {
			operatortest.Eventually(t, "it answers", func() error { _, err := whoAmI(t.Context(), c.Client()); return err })
			break
		}
	}
}

func TestAFixedClusterIsReachedInOneWay(t *testing.T) {
	w := newWorld(t)
	there, err := clusters.New("there", w.administrator("there"), w.scheme)
	if err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKey{Namespace: w.namespace, Name: "fixed"}
	for what, config := range map[string]clusteraccess.ProviderConfig{
		"accesses[0]: set exactly one of Ask and Fixed":                    {},
		"accesses[0]: Fixed: set exactly one of Secret and Cluster":        {Fixed: map[string]clusteraccess.Fixed{"mcp": {}}},
		"accesses[1]: Fixed: set exactly one of Secret and Cluster":        {MCP: clusteraccess.Permissions(), Fixed: map[string]clusteraccess.Fixed{"a": {Secret: key, Cluster: there}}},
		"accesses[0]: Fixed: Secret must have a namespace":                 {Fixed: map[string]clusteraccess.Fixed{"mcp": {Secret: client.ObjectKey{Name: "fixed"}}}},
		"accesses[0]: Fixed: Key is the entry of a Secret: set Secret too": {Fixed: map[string]clusteraccess.Fixed{"mcp": {Cluster: there, Key: "value"}}},
		`accesses[1]: there is another one with the ID "mcp"`:              {MCP: clusteraccess.Permissions(), Fixed: map[string]clusteraccess.Fixed{"mcp": {Cluster: there}}},
	} {
		config.Config = w.config()
		if _, err := clusteraccess.NewProvider(config); !errors.Is(err, framework.ErrInvalidConfig) || !strings.Contains(err.Error(), what) {
			t.Errorf("err = %v, want %q", err, what)
		}
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := clusters.InCluster("home", w.scheme); !errors.Is(err, rest.ErrNotInCluster) || !strings.Contains(err.Error(), `"home"`) {
		t.Errorf("outside of a Pod, err = %v", err)
	}
}
