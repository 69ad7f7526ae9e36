package operator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/giantswarm/micrologger"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// crew is several replicas that share labelled ConfigMaps in many namespaces of a real API server.
type crew struct {
	*replicas
	namespaces []string
	round      int
	// logger is the logger of the replicas.
	logger micrologger.Logger

	mu sync.Mutex
	// last is the replica that last reconciled a namespace. atWork is the one that does so now.
	last, atWork map[string]string
}

const crewLabel = "test.operatorkit.io/crew"

func newCrew(t *testing.T, namespaces int) *crew {
	t.Helper()
	c := &crew{replicas: newReplicas(t), logger: quiet(t), last: map[string]string{}, atWork: map[string]string{}}
	for range namespaces {
		namespace := c.instance.Namespace(t)
		c.namespaces = append(c.namespaces, namespace)
		object := configMap(namespace, "object")
		object.Labels = map[string]string{crewLabel: c.namespace}
		if err := c.client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// config returns the config of a replica.
func (c *crew) config(identity string) operator.Config {
	c.t.Helper()
	return c.inspected(identity, nil)
}

// inspected is config for a replica with a page.
func (c *crew) inspected(identity string, page *inspector.Inspector) operator.Config {
	c.t.Helper()
	source, err := informer.NewKubernetes(informer.KubernetesConfig{
		Client: c.client, Object: &corev1.ConfigMap{}, LabelSelector: labels.SelectorFromSet(labels.Set{crewLabel: c.namespace}), Logger: quiet(c.t),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	work := func(_ context.Context, obj any) error {
		c.work(identity, obj.(client.Object).GetNamespace())
		return nil
	}
	var observer framework.Observer
	if page != nil {
		observer = page
	}
	return operator.Config{
		RESTConfig: c.instance.RESTConfig(), Frameworks: []*framework.Framework{newObservedFramework(c.t, "configmaps", source, work, observer)}, Inspector: page,
		LeaderElection: c.election(identity, nil), Sharding: operator.ShardingConfig{Enabled: true}, Registry: prometheus.NewRegistry(),
	}
}

// join starts a replica.
func (c *crew) join(identity string) *running {
	c.t.Helper()
	return run(c.t, newOperator(c.t, c.config(identity)))
}

func (c *crew) work(identity, namespace string) {
	c.mu.Lock()
	if other := c.atWork[namespace]; other != "" {
		c.t.Errorf("%s works on namespace %s at the same time as %s", identity, namespace, other)
	}
	c.atWork[namespace] = identity
	c.mu.Unlock()
	time.Sleep(time.Millisecond) // some work takes a while
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.atWork, namespace)
	c.last[namespace] = identity
}

// touch changes all objects, so that they are reconciled again.
func (c *crew) touch() {
	c.t.Helper()
	c.round++
	c.mu.Lock()
	clear(c.last)
	c.mu.Unlock()
	for _, namespace := range c.namespaces {
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"round":"%d"}}`, c.round))
		if err := c.client.Patch(c.t.Context(), configMap(namespace, "object"), patch); err != nil {
			c.t.Fatal(err)
		}
	}
}

// sharedBy waits until exactly these replicas have reconciled everything since the last touch.
func (c *crew) sharedBy(identities ...string) {
	c.t.Helper()
	operatortest.Eventually(c.t, fmt.Sprintf("the work is that of %q", identities), func() error {
		c.touch()
		var got []string
		operatortest.Eventually(c.t, "all is reconciled", func() error {
			c.mu.Lock()
			defer c.mu.Unlock()
			if len(c.last) < len(c.namespaces) {
				return fmt.Errorf("%d of %d namespaces are reconciled", len(c.last), len(c.namespaces))
			}
			got = slices.Compact(slices.Sorted(maps.Values(c.last)))
			return nil
		})
		if !slices.Equal(got, identities) {
			return fmt.Errorf("it is that of %q", got)
		}
		return nil
	})
}

// forget drops the record of reconciliations, and returns the namespaces of a replica.
func (c *crew) forget(identity string) (namespaces []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for namespace, by := range c.last {
		if by == identity {
			namespaces = append(namespaces, namespace)
		}
	}
	clear(c.last)
	return namespaces
}

// reconciled reports whether each of these namespaces was reconciled.
func (c *crew) reconciled(namespaces []string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.ContainsFunc(namespaces, func(namespace string) bool { return c.last[namespace] == "" })
}

// slots returns the holder and the next holder of each slot.
func (r *replicas) slots() (holders, next []string) {
	r.t.Helper()
	list := &coordinationv1.LeaseList{}
	if err := r.client.List(r.t.Context(), list, client.InNamespace(r.namespace), client.HasLabels{"operatorkit.io/slot"}); err != nil {
		r.t.Fatal(err)
	}
	for _, lease := range list.Items {
		holders = append(holders, *lease.Spec.HolderIdentity)
		next = append(next, lease.Annotations["operatorkit.io/slot-next"])
	}
	return holders, next
}

// replicaLeases returns the number of Leases of replicas.
func (r *replicas) replicaLeases() int {
	r.t.Helper()
	list := &coordinationv1.LeaseList{}
	if err := r.client.List(r.t.Context(), list, client.InNamespace(r.namespace)); err != nil {
		r.t.Fatal(err)
	}
	return len(slices.DeleteFunc(list.Items, func(l coordinationv1.Lease) bool { return !strings.HasPrefix(l.Name, "test-shards-") }))
}

func TestReplicasShareTheObjectsByNamespaceAndTakeOverWhatOthersLeave(t *testing.T) {
	c := newCrew(t, 12)
	a := c.join("a")
	c.sharedBy("a")
	b := c.join("b")
	c.sharedBy("a", "b")
	d := c.join("d")
	c.sharedBy("a", "b", "d")
	// A new holder also reconciles unchanged objects. The replica that leads is one of several.
	left := c.forget("a")
	if err := a.stop(); err != nil {
		t.Error(err)
	}
	operatortest.Eventually(t, "others have reconciled what a had", func() bool { return c.reconciled(left) })
	c.sharedBy("b", "d")
	if got := c.replicaLeases(); got != 2 {
		t.Errorf("there are Leases of %d replicas, want 2", got)
	}
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	c.sharedBy("d")
	if err := d.stop(); err != nil {
		t.Error(err)
	}
	if got := c.replicaLeases(); got != 0 {
		t.Errorf("there are Leases of %d replicas after the last one has stopped", got)
	}
}

func TestReplicasThatRenewTheLeaseThatTheyHoldTogetherDoNotFailForThat(t *testing.T) {
	c := newCrew(t, 6)
	log := &journal{}
	registries := map[string]*prometheus.Registry{}
	for _, identity := range []string{"a", "b", "c"} {
		config := c.config(identity)
		config.Logger = logTo(t, log)
		registries[identity] = config.Registry
		run(t, newOperator(t, config))
	}
	c.sharedBy("a", "b", "c")
	for identity, registry := range registries {
		operatortest.Eventually(t, identity+" has renewed it often", func() error {
			if got := renewals(t, registry, "success"); got < 10 {
				return fmt.Errorf("%v times", got)
			}
			return nil
		})
		if got := renewals(t, registry, "failure"); got > 0 {
			t.Errorf("%s has failed to renew it %v times", identity, got)
		}
	}
	if log.contains("Failed to update lease") {
		t.Errorf("a failure is told: %q", log.all())
	}
}

func TestWithShardingRunnablesRunOnOneReplicaAndOnTheNextOneWhenThatHasGone(t *testing.T) {
	c := newCrew(t, 1)
	var work journal
	join := func(identity string) *running {
		config := c.config(identity)
		config.Runnables = []operator.Runnable{{Name: "work", Run: func(ctx context.Context) error {
			work.add(identity + " begins")
			<-ctx.Done()
			work.add(identity + " ends")
			return nil
		}}}
		return run(t, newOperator(t, config))
	}
	a := join("a")
	operatortest.Eventually(t, "a works", func() bool { return work.contains("a begins") })
	b := join("b")
	operatortest.Eventually(t, "b is a replica", func() bool { return c.replicaLeases() == 2 })
	if err := a.stop(); err != nil {
		t.Error(err)
	}
	operatortest.Eventually(t, "b works", func() bool { return work.contains("b begins") })
	if err := b.stop(); err != nil {
		t.Error(err)
	}
	if got, want := work.all(), []string{"a begins", "a ends", "b begins", "b ends"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAReplicaThatOwnsNothingIsReadyAndTellsSo(t *testing.T) {
	c := newCrew(t, 1)
	c.join("a")
	c.sharedBy("a")
	config := c.config("b")
	config.ListenAddress = "127.0.0.1:0"
	b := newOperator(t, config)
	run(t, b)
	operatortest.Eventually(t, "b is a replica", func() bool { return c.replicaLeases() == 2 })
	operatortest.Eventually(t, "b tells of no objects", func() error {
		if status, body := get(t, b, "/readyz"); status != 200 {
			return fmt.Errorf("it is not ready: %s", body)
		}
		_, metrics := get(t, b, "/metrics")
		for _, want := range []string{`operatorkit_operator_shard_objects{operator="test"} 0`, `operatorkit_operator_leading{operator="test"} 0`} {
			if !strings.Contains(metrics, want) {
				return fmt.Errorf("there is no %s", want)
			}
		}
		return nil
	})
}

func TestAReplicaWhoseLeaseIsTakenAwayEndsAndWritesNothingMore(t *testing.T) {
	c := newCrew(t, 2)
	config := c.config("a")
	deps := newDependencies(t, operator.DependenciesConfig{RESTConfig: c.instance.RESTConfig()})
	config.RESTConfig = deps.RESTConfig
	a := run(t, newOperator(t, config))
	c.sharedBy("a")
	if err := deps.Fence.Check(); err != nil {
		t.Errorf("the fence of a replica that works: %v", err)
	}
	if err := c.client.DeleteAllOf(t.Context(), &coordinationv1.Lease{}, client.InNamespace(c.namespace), client.HasLabels{"operatorkit.io/shards"}); err != nil {
		t.Fatal(err)
	}
	err := a.wait()
	for _, got := range []error{err, deps.Fence.Check(), deps.Client.Create(t.Context(), configMap(c.namespace, "late"))} {
		if got == nil || !strings.Contains(got.Error(), operator.ErrLeaseLost.Error()) {
			t.Errorf("want ErrLeaseLost, got %v", got)
		}
	}
}

func TestShardingWithoutALeaderElectionOnKubernetesIsRefused(t *testing.T) {
	config := operator.Config{
		Name: "test", Logger: quiet(t), Frameworks: []*framework.Framework{newFramework(t, "f", pushed(t, "objects"), nil)},
		Sharding: operator.ShardingConfig{Enabled: true},
	}
	_, err := operator.New(config)
	if want := "Sharding must not be enabled without LeaderElection on Kubernetes"; !framework.IsInvalidConfig(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("want an error with %q, got %v", want, err)
	}
}

func TestTheRightsOfAnOperatorWithShardingAreEnoughForItsLeases(t *testing.T) {
	c := newCrew(t, 1)
	deps := newDependencies(t, operator.DependenciesConfig{RESTConfig: c.instance.RESTConfig()})
	config := c.config("a")
	config.Name = "test"
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "test"}, Rules: deps.Rights(config).Own}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: c.namespace}},
	}
	for _, object := range []client.Object{role, binding} {
		if err := c.client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	log := &journal{}
	config.Logger = logTo(t, log)
	config.RESTConfig = c.instance.RESTConfig()
	config.RESTConfig.Impersonate.UserName = c.namespace
	operatortest.EventuallyAllowed(t, c.client, authorizationv1.SubjectAccessReviewSpec{
		User: c.namespace, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: c.namespace, Verb: "list", Group: coordinationv1.GroupName, Resource: "leases",
		},
	})
	a := run(t, newOperator(t, config))
	c.sharedBy("a")
	if err := a.stop(); err != nil {
		t.Error(err)
	}
	if got := c.replicaLeases(); got != 0 {
		t.Errorf("the replica has left %d Leases", got)
	}
	if log.contains("forbidden") {
		t.Errorf("the API server refused something: %q", log.all())
	}
}

func TestEachReplicaTellsWhoHasWhichObjectAndWhatWasDoneWithIt(t *testing.T) {
	c := newCrew(t, 6)
	var pages []*operator.Operator
	join := func(identity string) {
		page, err := inspector.New(inspector.Config{Name: "test", Address: "127.0.0.1:0", Logger: quiet(t)})
		if err != nil {
			t.Fatal(err)
		}
		o := newOperator(t, c.inspected(identity, page))
		run(t, o)
		pages = append(pages, o)
	}
	join("a")
	join("b")
	c.sharedBy("a", "b")
	for _, o := range pages {
		operatortest.Eventually(t, "its page says the same as the work", func() error {
			for _, namespace := range c.namespaces {
				var object inspector.Object
				path := fmt.Sprintf("object?framework=configmaps&namespace=%s&name=object", namespace)
				if err := ask(plain, "http", o, path, "", &object); err != nil {
					return err
				}
				if want := c.by(namespace); object.Owner != want {
					return fmt.Errorf("%s is said to be %q's, and is %q's", namespace, object.Owner, want)
				}
				if len(object.Reconciliations) == 0 || object.Unreached != "" {
					return fmt.Errorf("of %s, which is %q's, %d reconciliations are told: %s", namespace, object.Owner, len(object.Reconciliations), object.Unreached)
				}
			}
			var overview inspector.Overview
			if err := ask(plain, "http", o, "overview", "", &overview); err != nil {
				return err
			}
			var list inspector.ObjectList
			if err := ask(plain, "http", o, "objects?state=fine", "", &list); err != nil {
				return err
			}
			if list.Total != len(c.namespaces) || len(list.Unreached) > 0 {
				return fmt.Errorf("%d objects are fine, %q", list.Total, list.Unreached)
			}
			if len(overview.Replicas) != 2 || overview.Replicas[0].Objects+overview.Replicas[1].Objects != len(c.namespaces) {
				return fmt.Errorf("the replicas are %+v", overview.Replicas)
			}
			return nil
		})
	}
}

// renewals returns the number of attempts to renew a lease that had a result.
func renewals(t *testing.T, registry prometheus.Gatherer, result string) (n float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "operatorkit_operator_lease_renewals_total" && slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetValue() == result }) {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// by returns the replica that last reconciled a namespace.
func (c *crew) by(namespace string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last[namespace]
}

// plain is a client for pages on loopback.
var plain = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// ask reads from the page of a replica, with a token if there is one.
func ask(asker *http.Client, scheme string, o *operator.Operator, path, token string, into any) error {
	port := o.InspectorAddr().(*net.TCPAddr).Port
	request, err := http.NewRequest(http.MethodGet, fmt.Sprintf("%s://127.0.0.1:%d%sapi/v1/%s", scheme, port, inspector.Path, path), http.NoBody)
	if err != nil {
		return err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := asker.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s is answered %s", path, answer.Status)
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

func TestPagesByTLSAskEachOtherWithTheTokenOfWhoAsksAndForNobodyElse(t *testing.T) {
	c := newCrew(t, 6)
	certFile, keyFile, asker := certificate(t)
	var pages []*operator.Operator
	for _, identity := range []string{"a", "b"} {
		page, err := inspector.New(inspector.Config{
			Name: "test", Address: ":0", CertFile: certFile, KeyFile: keyFile, RESTConfig: c.instance.RESTConfig(), Logger: quiet(t),
		})
		if err != nil {
			t.Fatal(err)
		}
		o := newOperator(t, c.inspected(identity, page))
		run(t, o)
		pages = append(pages, o)
	}
	c.sharedBy("a", "b")
	looker, nobody := token(t, c.client, c.namespace, "looker", inspector.Path+"*"), token(t, c.client, c.namespace, "nobody")
	for _, o := range pages {
		for _, namespace := range c.namespaces {
			path := fmt.Sprintf("object?framework=configmaps&namespace=%s&name=object", namespace)
			operatortest.Eventually(t, "its page tells of every object", func() error {
				var object inspector.Object
				if err := ask(asker, "https", o, path, looker, &object); err != nil {
					return err
				}
				if want := c.by(namespace); object.Owner != want || len(object.Reconciliations) == 0 || object.Unreached != "" {
					return fmt.Errorf("%s, which is %q's, is said to be %q's, with %d reconciliations: %s",
						namespace, want, object.Owner, len(object.Reconciliations), object.Unreached)
				}
				return nil
			})
			for token, want := range map[string]string{nobody: "403 Forbidden", "": "401 Unauthorized"} {
				err := ask(asker, "https", o, path, token, &inspector.Object{})
				if err == nil || !strings.HasSuffix(err.Error(), want) {
					t.Errorf("with a token %.5q: want %s, got %v", token, want, err)
				}
			}
		}
	}
}

func TestAReplicaThatStopsEndsTheReconciliationsUnderWayAndMayWriteForThem(t *testing.T) {
	c := newCrew(t, 1)
	deps := newDependencies(t, operator.DependenciesConfig{RESTConfig: c.instance.RESTConfig()})
	config := c.config("a")
	started, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	wrote := make(chan error, 1)
	config.RESTConfig = deps.RESTConfig
	config.Frameworks = []*framework.Framework{newFramework(t, "configmaps", configMaps(t, c.client, c.namespaces[0]), func(ctx context.Context, obj any) error {
		if obj.(client.Object).GetName() != "object" {
			return nil
		}
		once.Do(func() {
			close(started)
			waitFor(t, release)
			wrote <- deps.Client.Create(ctx, configMap(c.namespaces[0], "late"))
		})
		return nil
	})}
	a := run(t, newOperator(t, config))
	waitFor(t, started)
	a.cancel()
	operatortest.Eventually(t, "it leaves", func() error {
		list := &coordinationv1.LeaseList{}
		if err := c.client.List(t.Context(), list, client.InNamespace(c.namespace)); err != nil {
			return err
		}
		for _, lease := range list.Items {
			if strings.Contains(lease.Annotations["operatorkit.io/shard-member"], `"leaving":true`) {
				return nil
			}
		}
		return fmt.Errorf("none of %d leases says so", len(list.Items))
	})
	close(release)
	if err := <-wrote; err != nil {
		t.Errorf("the reconciliation under way could not write: %v", err)
	}
	if err := a.stop(); err != nil {
		t.Error(err)
	}
}
