package clusteraccess_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusters"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

var _ serviceprovider.AdditionalAccessProvider = (*clusteraccess.Provider)(nil)

// inNamespace is a permission for ConfigMaps.
func inNamespace(namespace string, verbs ...string) v1alpha1.Permission {
	return v1alpha1.Permission{Namespace: namespace, Rules: []rbacv1.PolicyRule{configMaps(verbs...)}}
}

// newProvider runs a Provider of the world.
func (w *world) newProvider(change func(*clusteraccess.ProviderConfig)) *clusteraccess.Provider {
	w.t.Helper()
	config := clusteraccess.ProviderConfig{Config: w.config(), MCP: clusteraccess.Permissions(), Workload: clusteraccess.Permissions()}
	if change != nil {
		change(&config)
	}
	p, err := clusteraccess.NewProvider(config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.run(p)
	return p
}

// reconciler is what reconciles access.
type reconciler func(context.Context, reconcile.Request) (reconcile.Result, error)

// done calls until there is nothing to wait for.
func (w *world) done(what string, do reconciler, request reconcile.Request) {
	w.t.Helper()
	operatortest.Eventually(w.t, what, func() error {
		result, err := do(w.t.Context(), request)
		if err == nil && !result.IsZero() {
			err = fmt.Errorf("it waits for %s more", result.RequeueAfter)
		}
		return err
	})
}

// tenants lists MCPs by tenant, and a workload cluster.
func (w *world) tenants() {
	w.t.Helper()
	w.addPlace("mcp-of-tenant", "mcp", -1, map[string]string{clusteraccess.TenantLabel: "tenant"})
	w.addPlace("workload", "workload", -1, nil)
}

func TestAnObjectGetsItsMCPAndAWorkloadCluster(t *testing.T) {
	w := newWorld(t)
	w.addPlace("mcp-of-others", "mcp", -1, map[string]string{clusteraccess.TenantLabel: "others"})
	w.tenants()
	mcp, workload := w.remoteNamespace(), w.remoteNamespace()
	p := w.newProvider(func(c *clusteraccess.ProviderConfig) {
		c.MCP, c.Workload = clusteraccess.Permissions(inNamespace(mcp, "create")), clusteraccess.Permissions(inNamespace(workload, "create"))
	})
	ctx, request := t.Context(), object("db")
	if _, err := p.MCPAccessRequest(ctx, request); !apierrors.IsNotFound(err) {
		t.Errorf("before anything was asked for, err = %v, want not found", err)
	}
	result, err := p.Reconcile(ctx, request)
	if err != nil || result.IsZero() {
		t.Errorf("Reconcile = %v, %v, want something to wait for", result, err)
	}
	operatortest.Eventually(t, "the request is known", func() error { _, err := p.MCPAccessRequest(ctx, request); return err })
	if _, err := p.MCPCluster(ctx, request); err == nil || !strings.Contains(err.Error(), "not granted") {
		t.Errorf("before it is granted, err = %v", err)
	}

	w.start()
	w.done("access is granted", p.Reconcile, request)
	for id, get := range map[string]struct {
		cluster   func(context.Context, reconcile.Request) (*clusters.Cluster, error)
		access    func(context.Context, reconcile.Request) (*v1alpha1.AccessRequest, error)
		of        string
		namespace string
	}{
		"mcp":      {p.MCPCluster, p.MCPAccessRequest, "mcp-of-tenant", mcp},
		"workload": {p.WorkloadCluster, p.WorkloadAccessRequest, "workload", workload},
	} {
		ar, err := get.access(ctx, request)
		if err != nil {
			t.Fatal(err)
		}
		if ar.Status.ClusterRef.Name != get.of {
			t.Errorf("the %s cluster is %s, want %s", id, ar.Status.ClusterRef.Name, get.of)
		}
		c := eventual(t, "the "+id+" cluster is reached", func() (*clusters.Cluster, error) { return get.cluster(ctx, request) })
		operatortest.Eventually(t, "the rights are in force", func() error {
			return c.Client().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: get.namespace, Name: "x"}})
		})
		if err := c.Client().List(ctx, &corev1.SecretList{}); !apierrors.IsForbidden(err) {
			t.Errorf("listing Secrets in the %s cluster: err = %v, want 403", id, err)
		}
		if again, err := get.cluster(ctx, request); err != nil || again != c {
			t.Errorf("a second call makes another client: %v", err)
		}
	}

	w.done("access is taken away", p.ReconcileDelete, request)
	list, requests := &v1alpha1.AccessRequestList{}, &v1alpha1.ClusterRequestList{}
	if err := errors.Join(w.user.List(ctx, list, client.InNamespace(w.namespace)), w.user.List(ctx, requests, client.InNamespace(w.namespace))); err != nil {
		t.Fatal(err)
	}
	if len(list.Items)+len(requests.Items) > 0 {
		t.Errorf("%d AccessRequests and %d ClusterRequests are left", len(list.Items), len(requests.Items))
	}
	w.wantNothingLeft()
}

func TestAConnectionEndsAlsoWhenItsRequestWasGoneBefore(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	p := w.newProvider(func(c *clusteraccess.ProviderConfig) {
		c.Workload, c.IdleTimeout = nil, time.Millisecond
	})
	request := object("db")
	w.start()
	w.done("access is granted", p.Reconcile, request)
	operatortest.Eventually(t, "the cluster answers", func() error { _, err := p.MCPCluster(t.Context(), request); return err })
	ar, err := p.MCPAccessRequest(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	w.snatch(w.user, ar)
	operatortest.Eventually(t, "the provider knows that the request is gone", func() error {
		if _, err := p.MCPAccessRequest(t.Context(), request); !apierrors.IsNotFound(err) {
			return fmt.Errorf("err = %w, want not found", err)
		}
		return nil
	})
	w.done("nothing is left", p.ReconcileDelete, request)
	operatortest.Eventually(t, "the connection ends", func() error {
		if !strings.Contains(w.log.String(), "target cluster is dropped because nobody uses it") {
			return errors.New("it is kept")
		}
		return nil
	})
}

func TestClientsFollowRenewedCredentialsWithoutAFailedRequest(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	namespace := w.remoteNamespace()
	p := w.newProvider(func(c *clusteraccess.ProviderConfig) {
		c.MCP, c.Workload = clusteraccess.Permissions(inNamespace(namespace, "list")), nil
	})
	w.start()
	request := object("db")
	w.done("access is granted", p.Reconcile, request)
	c := w.mcp(p, request)
	list := func() error {
		return c.Client().List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(namespace))
	}
	operatortest.Eventually(t, "the rights are in force", list)

	ar, err := p.MCPAccessRequest(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // each time, requests go on meanwhile
		before, _ := w.credentials(ar)
		w.clock.SetTime(ar.Status.RenewalTime.Time)
		w.look(ar)
		operatortest.Eventually(t, "the credentials are replaced", func() error {
			if err := list(); err != nil {
				t.Errorf("a request has failed: %v", err)
			}
			if result, err := p.Reconcile(t.Context(), request); err != nil || !result.IsZero() {
				t.Errorf("a reconciliation waits or fails: %v, %v", result, err)
			}
			if now, _ := w.credentials(ar); now.ResourceVersion == before.ResourceVersion {
				return errors.New("not yet")
			}
			return nil
		})
		renewal := ar.Status.RenewalTime.DeepCopy()
		settles(w, ar, "the status tells", func(ar *v1alpha1.AccessRequest) error {
			if !ar.Status.RenewalTime.After(renewal.Time) {
				return errors.New("not yet")
			}
			return nil
		})
	}

	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ar.Status.ServiceAccount.Namespace, Name: ar.Status.ServiceAccount.Name}}
	if err := w.admin.Delete(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the same client works again after a revocation", func() error {
		made := &corev1.ServiceAccount{}
		if err := w.admin.Get(t.Context(), client.ObjectKeyFromObject(account), made); err != nil {
			return err
		}
		secret, _ := w.credentials(ar)
		if secret.Annotations["clusters.operatorkit.io/service-account-uid"] != string(made.UID) {
			return errors.New("the credentials are the old ones")
		}
		return list()
	})
	w.neverFailed()
}

func TestTheOthersAreTakenAwayWhenOneCantBeWhichTheErrorNames(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	faults := operatortest.NewFaults()
	p := w.newProvider(func(c *clusteraccess.ProviderConfig) {
		platform, err := clusters.New("platform", faults.Wrap(w.kube.RESTConfig()), c.Platform.Scheme())
		if err != nil {
			t.Fatal(err)
		}
		c.Platform = platform
	})
	w.start()
	request := object("db")
	w.done("both are granted", p.Reconcile, request)
	mcp, err := p.MCPAccessRequest(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	rule := faults.On(func(r operatortest.Request) bool { return r.Verb == "delete" && r.Name == mcp.Name }, operatortest.InternalError())
	operatortest.Eventually(t, "the other one is taken away", func() error {
		want := "delete AccessRequest " + client.ObjectKeyFromObject(mcp).String()
		if _, err := p.ReconcileDelete(t.Context(), request); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
		if _, err := p.WorkloadAccessRequest(t.Context(), request); !apierrors.IsNotFound(err) {
			return fmt.Errorf("err = %w", errors.Join(err, errors.New("it is there")))
		}
		return nil
	})
	rule.Remove()
	w.done("all is taken away", p.ReconcileDelete, request)
}

func TestOneClusterThatIsDeniedKeepsNoneOfTheOthers(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	secrets := v1alpha1.Permission{Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}}
	allowed := false
	var mu sync.Mutex
	p := w.newProvider(func(c *clusteraccess.ProviderConfig) {
		c.MCP = func(reconcile.Request) (*clusteraccess.Ask, error) {
			mu.Lock()
			defer mu.Unlock()
			if allowed {
				return &clusteraccess.Ask{}, nil
			}
			return &clusteraccess.Ask{Permissions: []v1alpha1.Permission{secrets}}, nil
		}
		c.Additional = []clusteraccess.Access[struct{}]{
			{ID: "wrong", Ask: func(reconcile.Request, struct{}) (*clusteraccess.Ask, error) { return nil, errors.New("no idea") }},
			{ID: "backup", Ask: func(reconcile.Request, struct{}) (*clusteraccess.Ask, error) {
				return &clusteraccess.Ask{ClusterRef: "workload"}, nil
			}},
		}
	})
	w.start()
	request := object("db")
	operatortest.Eventually(t, "the others are granted", func() error {
		result, err := p.Reconcile(t.Context(), request)
		if err == nil || !strings.Contains(err.Error(), "the wrong cluster of tenant/db: no idea") {
			t.Errorf("the error does not name what is wrong: %v", err)
		}
		if result.IsZero() {
			t.Error("nobody looks again at what is denied")
		}
		_, workloadErr := p.WorkloadCluster(t.Context(), request)
		_, backupErr := p.AdditionalCluster(t.Context(), request, "backup")
		return errors.Join(workloadErr, backupErr)
	})
	operatortest.Eventually(t, "it is denied", func() error {
		ar, err := p.MCPAccessRequest(t.Context(), request)
		if err == nil && ar.Status.Phase != v1alpha1.PhaseDenied {
			err = fmt.Errorf("it is %q", ar.Status.Phase)
		}
		return err
	})
	if _, err := p.MCPCluster(t.Context(), request); err == nil || !strings.Contains(err.Error(), "get secrets in the whole cluster") {
		t.Errorf("the error does not say why it is denied: %v", err)
	}
	mu.Lock()
	allowed = true
	mu.Unlock()
	operatortest.Eventually(t, "it is granted when less is asked for", func() error {
		_, _ = p.Reconcile(t.Context(), request)
		_, err := p.MCPCluster(t.Context(), request)
		return err
	})
	w.done("access is taken away", p.ReconcileDelete, request)
}

func TestAdditionalDataSayWhatIsAskedFor(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	type database struct{ backup string }
	c, err := clusteraccess.New(w.config(), []clusteraccess.Access[database]{{
		ID: "backup",
		Ask: func(_ reconcile.Request, db database) (*clusteraccess.Ask, error) {
			if db.backup == "" {
				return nil, nil
			}
			return &clusteraccess.Ask{ClusterRef: db.backup, TokenLifetime: 30 * time.Minute}, nil
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.run(c)
	w.start()
	request := object("db")
	with := func(db database) reconciler {
		return func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			return c.Reconcile(ctx, r, db)
		}
	}
	w.done("nothing is asked for", with(database{}), request)
	w.done("a backup is granted", with(database{"workload"}), request)
	ar, err := c.AccessRequest(t.Context(), request, "backup")
	if err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.AccessRequestSpec{
		ClusterRef: &v1alpha1.LocalObjectReference{Name: "workload"}, TokenLifetime: &metav1.Duration{Duration: 30 * time.Minute},
	}
	if diff := cmp.Diff(want, ar.Spec); diff != "" {
		t.Errorf("the request differs (-want +got):\n%s", diff)
	}
	w.done("what is not asked for any more is taken away", with(database{}), request)
	operatortest.Eventually(t, "the request is gone", func() bool {
		_, err := c.AccessRequest(t.Context(), request, "backup")
		return apierrors.IsNotFound(err)
	})
	w.wantNothingLeft()
}

func TestChangesTellWhichObjectsAreConcerned(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	p := w.newProvider(func(c *clusteraccess.ProviderConfig) { c.Workload = nil })
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer time.AfterFunc(2*time.Minute, queue.ShutDown).Stop() // else a change that nobody is told of is waited for without end
	defer queue.ShutDown()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := p.Changes().Start(ctx, queue); err != nil {
		t.Fatal(err)
	}
	// An object that carries our labels and says nothing sensible concerns nobody, and breaks nothing.
	stray := newAccess("stray", "workload")
	ours := identity.Mark{Operator: identity.Program(), Framework: "postgres", Resource: "clusteraccess"}
	stray.Labels, stray.Annotations = map[string]string{clusteraccess.OwnerLabel: ours.Hash()}, map[string]string{clusteraccess.ObjectAnnotation: "a/b/c"}
	w.create(stray)
	w.start()
	request := object("db")
	if _, err := p.Reconcile(ctx, request); err != nil {
		t.Fatal(err)
	}
	// Nobody looks again because of a RequeueAfter.
	until := func(what string, do reconciler) {
		t.Helper()
		for {
			told, shutdown := queue.Get()
			if shutdown || told != request {
				t.Fatalf("%s: told of %v, want %v", what, told, request)
			}
			result, err := do(ctx, told)
			queue.Done(told)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if result.IsZero() {
				return
			}
		}
	}
	until("access is granted", p.Reconcile)
	if _, err := p.ReconcileDelete(ctx, request); err != nil {
		t.Fatal(err)
	}
	until("access is taken away", p.ReconcileDelete)
}

func TestControllersBeginWhenEverythingIsKnown(t *testing.T) {
	w := newWorld(t)
	p, err := clusteraccess.NewProvider(clusteraccess.ProviderConfig{Config: w.config(), MCP: clusteraccess.Permissions()})
	if err != nil {
		t.Fatal(err)
	}
	changes, ok := p.Changes().(source.SyncingSource)
	if !ok {
		t.Fatalf("a controller does not wait for a %T", p.Changes())
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := changes.WaitForSync(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("before anything is known, err = %v", err)
	}
	w.run(p)
	if err := changes.WaitForSync(t.Context()); err != nil {
		t.Errorf("when everything is known, err = %v", err)
	}
}

func TestAClusterThatDoesNotAnswerFailsRequestsAtOnceAndTellsWhenItIsBack(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	p := w.newProvider(func(c *clusteraccess.ProviderConfig) { c.Workload = nil })
	stop := w.start()
	request := object("db")
	w.done("access is granted", p.Reconcile, request)
	w.mcp(p, request)
	stop() // else the granter would put it right
	ar, err := p.MCPAccessRequest(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	secret, config := w.credentials(ar)
	good := secret.Data[v1alpha1.KubeconfigKey]
	config.Host = "https://127.0.0.1:1"
	secret.Data[v1alpha1.KubeconfigKey] = kubeconfigOf(t, config)
	if err := w.user.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "it is told that the cluster does not answer", func() error {
		_, err := p.MCPCluster(t.Context(), request)
		if !errors.Is(err, target.ErrUnreachable) {
			return fmt.Errorf("err = %w", err)
		}
		return nil
	})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	defer time.AfterFunc(5*time.Minute, queue.ShutDown).Stop() // so that it does not wait for ever
	if err := p.Changes().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	secret.Data[v1alpha1.KubeconfigKey] = good
	if err := w.user.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	for {
		told, shutdown := queue.Get()
		queue.Done(told)
		if shutdown {
			t.Fatal("nobody tells that it is back")
		}
		if _, err := p.MCPCluster(t.Context(), request); err == nil {
			break
		}
	}
}

func TestALocalServerTakesThePlaceOfTheAddress(t *testing.T) {
	w := newWorld(t)
	inside := w.remote.RESTConfig()
	local := inside.Host
	inside.Host = "https://kubernetes.default.svc:6443" // as it is called on the platform's network
	cluster, admin := newCluster(t, "mcp-of-tenant", inside, "mcp")
	cluster.Labels = map[string]string{clusteraccess.TenantLabel: "tenant"}
	admin.Annotations = map[string]string{v1alpha1.LocalServerAnnotation: local}
	w.create(admin, cluster)
	w.localServers = true
	p := w.newProvider(func(c *clusteraccess.ProviderConfig) { c.Workload, c.LocalServers = nil, true })
	remote := w.newProvider(func(c *clusteraccess.ProviderConfig) { c.Workload = nil })
	w.start()
	request := object("db")
	w.done("access is granted", p.Reconcile, request)
	ar, err := p.MCPAccessRequest(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	secret, issued := w.credentials(ar)
	if issued.Host != inside.Host {
		t.Errorf("the kubeconfig leads to %s, want %s, for those on the platform's network", issued.Host, inside.Host)
	}
	c := w.mcp(p, request)
	if err := c.Client().List(t.Context(), &corev1.SecretList{}); !apierrors.IsForbidden(err) {
		t.Errorf("err = %v, want 403 from the cluster", err)
	}
	operatortest.Eventually(t, "without the local form the annotation means nothing", func() error {
		if _, err := remote.MCPCluster(t.Context(), request); !errors.Is(err, target.ErrUnreachable) {
			return fmt.Errorf("err = %w", err)
		}
		return nil
	})

	w.patch(admin, `{"metadata":{"annotations":{"`+v1alpha1.LocalServerAnnotation+`":"::not an address"}}}`)
	w.wants(ar, v1alpha1.PhaseGranted, v1alpha1.ReasonClusterUnreachable) // else the granter would put right what comes now
	w.patch(secret, `{"metadata":{"annotations":{"`+v1alpha1.LocalServerAnnotation+`":"::not an address"}}}`)
	operatortest.Eventually(t, "an address that makes no sense is an error of this cluster", func() error {
		if _, err := p.MCPCluster(t.Context(), request); err == nil || !strings.Contains(err.Error(), v1alpha1.LocalServerAnnotation) || !strings.Contains(err.Error(), "server must be an https:// address") {
			return fmt.Errorf("err = %w", errors.Join(err, errors.New("not that")))
		}
		return nil
	})
	w.patch(admin, `{"metadata":{"annotations":{"`+v1alpha1.LocalServerAnnotation+`":"`+local+`"}}}`)
	w.done("access is granted again", p.Reconcile, request)
	w.done("access is taken away", p.ReconcileDelete, request)
	_ = remote
}

func TestAConfigurationThatLacksSomethingNamesAllOfIt(t *testing.T) {
	_, err := clusteraccess.NewProvider(clusteraccess.ProviderConfig{})
	if !errors.Is(err, framework.ErrInvalidConfig) {
		t.Fatalf("err = %v", err)
	}
	for _, want := range []string{"Provider", "Namespace", "Platform", "Scheme", "Logger"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
}
