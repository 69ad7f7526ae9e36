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
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/granter"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

func TestCredentialsAllowWhatWasGrantedAndNothingElse(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	mine, other := w.remoteNamespace(), w.remoteNamespace()
	ar := newAccess("a", "c", v1alpha1.Permission{Namespace: mine, Rules: []rbacv1.PolicyRule{configMaps("get", "create")}})
	ar.Spec.RoleRefs = []v1alpha1.RoleReference{{Kind: "ClusterRole", Name: "view", Namespace: other}}
	w.create(ar)
	w.start()
	w.granted(ar)
	if ar.Status.ClusterRef == nil || ar.Status.ClusterRef.Name != "c" || ar.Status.ServiceAccount == nil {
		t.Errorf("the status does not say what was granted where: %+v", ar.Status)
	}
	_, config := w.credentials(ar)
	c := w.client(config)
	configMap := func(namespace string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"}}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: mine, Name: "x"}}
	for what, do := range map[string]func(context.Context) error{
		"create in the namespace": func(ctx context.Context) error { return c.Create(ctx, configMap(mine)) },
		"view the other one by the role": func(ctx context.Context) error {
			return c.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(other))
		},
	} {
		// Rights are not in force at once: an API server looks at roles through a cache.
		operatortest.Eventually(t, what, func() error { return do(t.Context()) })
	}
	for what, err := range map[string]error{
		"delete, which is no verb of the rule":        c.Delete(t.Context(), configMap(mine)),
		"list, which is no verb of the rule":          c.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(mine)),
		"create in the other namespace":               c.Create(t.Context(), configMap(other)),
		"create a Secret":                             c.Create(t.Context(), secret),
		"list in the whole cluster":                   c.List(t.Context(), &corev1.ConfigMapList{}),
		"read the Secrets of the other namespace":     c.List(t.Context(), &corev1.SecretList{}, client.InNamespace(other)),
		"read the service accounts of the platform's": c.List(t.Context(), &corev1.ServiceAccountList{}, client.InNamespace(ar.Status.ServiceAccount.Namespace)),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: err = %v, want 403", what, err)
		}
	}
}

func TestChangedPermissionsAreInForceWithTheSameCredentials(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	namespace := w.remoteNamespace()
	ar := newAccess("a", "c", v1alpha1.Permission{Namespace: namespace, Rules: []rbacv1.PolicyRule{configMaps("create")}})
	w.create(ar)
	w.start()
	before, config := w.credentials(w.granted(ar))
	c := w.client(config)
	operatortest.Eventually(t, "create", func() error {
		return c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"}})
	})
	ar.Spec.Permissions = []v1alpha1.Permission{{Namespace: namespace, Rules: []rbacv1.PolicyRule{configMaps("list")}}}
	w.update(ar)
	w.granted(ar)
	operatortest.Eventually(t, "list", func() error { return c.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(namespace)) })
	operatortest.Eventually(t, "create is refused", func() bool {
		return apierrors.IsForbidden(c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "y"}}))
	})
	if after, _ := w.credentials(ar); after.ResourceVersion != before.ResourceVersion {
		t.Error("the credentials were written anew")
	}
}

func TestWhatExceedsThePolicyIsDeniedWithTheRuleThatDoes(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	ar := newAccess("a", "c",
		v1alpha1.Permission{Namespace: "team", Rules: []rbacv1.PolicyRule{configMaps("get")}},
		v1alpha1.Permission{Rules: []rbacv1.PolicyRule{configMaps("get"), {APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "delete"}}}},
	)
	ar.Spec.RoleRefs = []v1alpha1.RoleReference{{Kind: "ClusterRole", Name: "cluster-admin"}}
	w.create(ar)
	w.start()
	w.wants(ar, v1alpha1.PhaseDenied, v1alpha1.ReasonExceedsPolicy)
	for _, want := range []string{
		"spec.permissions[1].rules[0] (get configmaps in the whole cluster)", "spec.permissions[1].rules[1] (get secrets, delete secrets in the whole cluster)",
		"spec.roleRefs[0] (ClusterRole cluster-admin in the whole cluster)",
	} {
		if !strings.Contains(message(ar), want) {
			t.Errorf("the message does not name %q: %s", want, message(ar))
		}
	}
	if strings.Contains(message(ar), "permissions[0]") {
		t.Errorf("the message names what is allowed: %s", message(ar))
	}
	w.wantNothingLeft()

	ar.Spec.Permissions, ar.Spec.RoleRefs = ar.Spec.Permissions[:1], nil
	w.update(ar)
	w.granted(ar)

	ar.Spec.Permissions[0].Rules[0].Resources = []string{"secrets"}
	w.update(ar)
	w.wants(ar, v1alpha1.PhaseDenied, v1alpha1.ReasonExceedsPolicy)
	operatortest.Eventually(t, "what was granted is taken away", func() error {
		left, err := w.remains(w.namespace)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%d objects are left", len(left))
		}
		return err
	})
	settles(w, ar, "there are no credentials any more", func(ar *v1alpha1.AccessRequest) error {
		if ar.Status.SecretRef != nil || ar.Status.ExpirationTime != nil {
			return fmt.Errorf("the status is %+v", ar.Status)
		}
		return nil
	})
}

// works waits until credentials are accepted.
func (w *world) works(config *rest.Config) {
	w.t.Helper()
	c := w.client(config)
	operatortest.Eventually(w.t, "the credentials are accepted", func() error {
		err := c.List(w.t.Context(), &corev1.SecretList{})
		if apierrors.IsForbidden(err) { // it is known who asks
			return nil
		}
		return fmt.Errorf("err = %w, want 403", errors.Join(err, errors.New("not refused")))
	})
}

// revoked waits until the cluster knows the credentials no more. It may take requests with them for some seconds yet, because it remembers
// for that long whom it has accepted; refused waits for that too.
func (w *world) revoked(config *rest.Config) {
	w.t.Helper()
	operatortest.Eventually(w.t, "the credentials are revoked", func() error {
		review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{
			Token: config.BearerToken,
			// An answer is remembered for its audiences: nobody has asked for these before.
			Audiences: []string{"https://kubernetes.default.svc", string(uuid.NewUUID())},
		}}
		if err := w.admin.Create(w.t.Context(), review); err != nil {
			return err
		}
		if review.Status.Authenticated {
			return fmt.Errorf("they are those of %s", review.Status.User.Username)
		}
		return nil
	})
}

// refused waits until requests with the credentials are refused.
func (w *world) refused(config *rest.Config) {
	w.t.Helper()
	c := w.client(config)
	operatortest.Eventually(w.t, "the credentials are refused", func() error {
		if err := c.List(w.t.Context(), &corev1.SecretList{}); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("err = %w, want 401", err)
		}
		return nil
	})
}

func (w *world) update(ar *v1alpha1.AccessRequest) {
	w.t.Helper()
	spec := ar.Spec
	operatortest.Eventually(w.t, "the request is updated", func() error {
		if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(ar), ar); err != nil {
			return err
		}
		ar.Spec = spec
		return w.user.Update(w.t.Context(), ar)
	})
}

// renewed waits until a request has another Secret than that.
func (w *world) renewed(ar *v1alpha1.AccessRequest, before *corev1.Secret) (*corev1.Secret, *rest.Config) {
	w.t.Helper()
	operatortest.Eventually(w.t, "the credentials are replaced", func() error {
		now := &corev1.Secret{}
		if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(before), now); err != nil {
			return err
		}
		if string(now.Data[v1alpha1.KubeconfigKey]) == string(before.Data[v1alpha1.KubeconfigKey]) {
			return errors.New("they are the same")
		}
		return nil
	})
	return w.credentials(w.granted(ar))
}

func TestCredentialsAreRenewedBeforeTheyRunOut(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	ar := newAccess("a", "c")
	ar.Spec.TokenLifetime = &metav1.Duration{Duration: 20 * time.Minute}
	w.create(ar)
	w.start()
	before, _ := w.credentials(w.granted(ar))
	issued := w.clock.Now()
	life := ar.Status.ExpirationTime.Sub(issued)
	if life < 20*time.Minute-2*time.Second || life > 20*time.Minute {
		t.Errorf("the credentials live %s, want 20m", life)
	}
	if pause := ar.Status.RenewalTime.Sub(issued); pause < 14*time.Minute-2*time.Second || pause > 16*time.Minute {
		t.Errorf("they are renewed after %s, want 70 to 80 %% of 20m", pause)
	}

	w.clock.SetTime(ar.Status.RenewalTime.Add(-time.Second))
	w.looked(ar)
	if now, _ := w.credentials(ar); now.ResourceVersion != before.ResourceVersion {
		t.Error("the credentials were written before their time")
	}

	first := ar.Status.ExpirationTime.DeepCopy()
	w.clock.SetTime(ar.Status.RenewalTime.Time)
	w.look(ar)
	_, config := w.renewed(ar, before)
	settles(w, ar, "the status tells the new times", func(ar *v1alpha1.AccessRequest) error {
		if !ar.Status.ExpirationTime.After(first.Time) {
			return fmt.Errorf("it says %s", ar.Status.ExpirationTime)
		}
		return nil
	})
	w.works(config)
	w.neverFailed()
}

func TestARevokedTokenIsReplaced(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	ar := newAccess("a", "c")
	w.create(ar)
	w.start()
	before, old := w.credentials(w.granted(ar))
	w.works(old)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ar.Status.ServiceAccount.Namespace, Name: ar.Status.ServiceAccount.Name}}
	if err := w.admin.Delete(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	_, config := w.renewed(ar, before) // nobody has told the granter: it watches
	w.works(config)
	w.revoked(old)
	w.neverFailed()
}

func TestWhatSomebodyElseChangesIsPutRight(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	namespace := w.remoteNamespace()
	ar := newAccess("a", "c", v1alpha1.Permission{Namespace: namespace, Rules: []rbacv1.PolicyRule{configMaps("get")}})
	w.create(ar)
	w.start()
	secret, _ := w.credentials(w.granted(ar))

	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ar.Status.ServiceAccount.Name}}
	if err := w.admin.Get(t.Context(), client.ObjectKeyFromObject(role), role); err != nil {
		t.Fatal(err)
	}
	role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}
	if err := w.admin.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the role has its rules again", func() error {
		if err := w.admin.Get(t.Context(), client.ObjectKeyFromObject(role), role); err != nil {
			return err
		}
		if len(role.Rules) != 1 || role.Rules[0].Resources[0] != "configmaps" {
			return fmt.Errorf("they are %v", role.Rules)
		}
		return nil
	})

	if err := w.user.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	_, config := w.renewed(ar, secret)
	w.works(config)
}

func TestNothingRemainsOfDeletedAccess(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	ar := newAccess("a", "c",
		v1alpha1.Permission{Namespace: w.remoteNamespace(), Rules: []rbacv1.PolicyRule{configMaps("get")}},
		v1alpha1.Permission{Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}}}},
	)
	ar.Spec.RoleRefs = []v1alpha1.RoleReference{{Kind: "ClusterRole", Name: "view", Namespace: w.remoteNamespace()}}
	w.create(ar)
	w.start()
	secret, config := w.credentials(w.granted(ar))
	if left, err := w.remains(w.namespace); err != nil || len(left) != 6 {
		t.Fatalf("%d objects were made in the cluster, want a service account, a Role, a ClusterRole and three bindings: %v", len(left), err)
	}
	if err := w.user.Delete(t.Context(), ar); err != nil {
		t.Fatal(err)
	}
	w.wantGone(ar)
	w.wantNothingLeft()
	w.wantGone(secret)
	w.revoked(config)
}

func TestPatternsIncludeNeitherRightsToBecomeSomebodyElseNorTheNamespacesOfThePlatform(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	all := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}
	w.policy = granter.Policy{
		Permissions: []v1alpha1.Permission{{Namespace: "*", Rules: []rbacv1.PolicyRule{all}}},
		RoleRefs:    []v1alpha1.RoleReference{{Kind: "ClusterRole", Name: "*", Namespace: "*"}, {Kind: "Role", Name: "*", Namespace: "*"}},
	}
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	in := func(namespace string, rules ...rbacv1.PolicyRule) v1alpha1.Permission {
		return v1alpha1.Permission{Namespace: namespace, Rules: rules}
	}
	requests := map[string]*v1alpha1.AccessRequest{}
	for name, permission := range map[string]v1alpha1.Permission{
		"tokens":          in("team", rule("", "serviceaccounts/token", "create")),
		"one-token":       in("team", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"}, ResourceNames: []string{"x"}}),
		"every-token":     in("team", rule("", "*/token", "create")),
		"impersonation":   in("team", rule("", "serviceaccounts", "*")),
		"binding":         in("team", rule(rbacv1.GroupName, "roles", "bind")),
		"escalation":      in("team", rule("*", "*", "get", "escalate")),
		"all":             in("team", all),
		"granter":         in(granter.DefaultNamespace, configMaps("get")),
		"kube-system":     in(metav1.NamespaceSystem, configMaps("get")),
		"namespace-of-us": in(w.namespace, configMaps("get")),
		"clusters":        in(w.clusters, configMaps("get")),
	} {
		requests[name] = newAccess(name, "c", permission)
	}
	for name, ref := range map[string]v1alpha1.RoleReference{
		"role-cluster-admin": {Kind: "ClusterRole", Name: "cluster-admin", Namespace: "team"},
		"role-edit":          {Kind: "ClusterRole", Name: "edit", Namespace: "team"},
		"role-of-a-node":     {Kind: "ClusterRole", Name: "system:node", Namespace: "team"},
		"role-there":         {Kind: "Role", Name: "any", Namespace: granter.DefaultNamespace},
	} {
		requests[name] = newAccess(name, "c")
		requests[name].Spec.RoleRefs = []v1alpha1.RoleReference{ref}
	}
	for _, ar := range requests {
		w.create(ar)
	}
	harmless := newAccess("harmless", "c", in("team", rule("", "serviceaccounts", "get"), rule(rbacv1.GroupName, "roles", "get"), configMaps("*")))
	harmless.Spec.RoleRefs = []v1alpha1.RoleReference{{Kind: "ClusterRole", Name: "view", Namespace: "team"}}
	w.create(harmless)
	w.start()
	for _, ar := range requests {
		w.wants(ar, v1alpha1.PhaseDenied, v1alpha1.ReasonExceedsPolicy)
	}
	w.granted(harmless)

	// What a policy names in full it allows.
	full := w.policy
	full.Permissions = append(full.Permissions,
		in("team", rule("", "serviceaccounts/token", "create")), in(granter.DefaultNamespace, configMaps("get")))
	for _, name := range []string{"tokens", "one-token", "granter"} {
		if err := full.Check(&requests[name].Spec, granter.DefaultNamespace); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOfAPolicyWithAFaultNothingFollows(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	good := newAccess("good", "c", inNamespace("team", "get"))
	w.create(good)
	var policy atomic.Pointer[granter.Policy]
	policy.Store(&w.policy)
	w.change = func(c *granter.Config) {
		c.Policy = func(*v1alpha1.Cluster, *v1alpha1.AccessRequest) granter.Policy { return *policy.Load() }
	}
	w.start()
	w.granted(good)
	_, config := w.credentials(good)

	broken := w.policy
	broken.Permissions = append([]v1alpha1.Permission{{Namespace: "[team", Rules: []rbacv1.PolicyRule{configMaps("get")}}}, broken.Permissions[1:]...)
	policy.Store(&broken)
	late := newAccess("late", "c", inNamespace("team", "get"))
	w.create(late)
	w.wants(late, v1alpha1.PhasePending, v1alpha1.ReasonPolicyInvalid)
	if strings.Contains(message(late), "[team") {
		t.Errorf("the requester is told of the policy: %s", message(late))
	}
	operatortest.Eventually(t, "the fault is told to those who run the platform", func() bool {
		return strings.Contains(w.log.String(), `Permissions[0].Namespace`) && strings.Contains(w.log.String(), "[team")
	})
	w.look(good)
	w.wants(good, v1alpha1.PhaseGranted, v1alpha1.ReasonPolicyInvalid)
	w.works(config)

	renewal := good.Status.RenewalTime.DeepCopy()
	w.clock.SetTime(renewal.Time)
	w.look(good)
	settles(w, good, "the credentials are renewed", func(ar *v1alpha1.AccessRequest) error {
		if !ar.Status.RenewalTime.After(renewal.Time) {
			return fmt.Errorf("the status is %+v", ar.Status)
		}
		return nil
	})
	_, renewed := w.credentials(w.wants(good, v1alpha1.PhaseGranted, v1alpha1.ReasonPolicyInvalid))
	if renewed.BearerToken == config.BearerToken {
		t.Error("the token is the old one")
	}
	w.works(renewed)
	w.moveCluster("c", nowhere(w))
	settles(w, good, "the status tells that the cluster is in the way too", func(ar *v1alpha1.AccessRequest) error {
		if !strings.Contains(message(ar), "Cluster c can't be reached") {
			return errors.New(message(ar))
		}
		return nil
	})
	w.runOut(good)
	w.wants(good, v1alpha1.PhasePending, v1alpha1.ReasonPolicyInvalid)
	w.moveCluster("c", w.remote.RESTConfig())

	policy.Store(&w.policy)
	w.look(late)
	w.look(good)
	w.granted(late)
	w.granted(good)
}

func TestARequestThatIsDeniedFromTheStartWatchesNothing(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	watches := w.countWatches()
	ar := newAccess("a", "c", inNamespace("team", "get"))
	ar.Spec.RoleRefs = []v1alpha1.RoleReference{{Kind: "ClusterRole", Name: "cluster-admin"}}
	w.create(ar)
	w.start()
	w.wants(ar, v1alpha1.PhaseDenied, v1alpha1.ReasonExceedsPolicy)
	if err := w.user.Delete(t.Context(), ar); err != nil {
		t.Fatal(err)
	}
	w.wantGone(ar)
	if n := watches.Load(); n != 0 {
		t.Errorf("%d watches were opened for what was denied", n)
	}
	w.wantWatches(watches)
}

func TestARequestThatIsDeletedBeforeItIsClaimedWatchesNothing(t *testing.T) {
	w := newWorld(t)
	cluster := w.addCluster("c", "workload")
	watches := w.countWatches()
	w.start()
	settles(w, cluster, "the cluster answers", func(c *v1alpha1.Cluster) error {
		if !apimeta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("it is %+v", c.Status)
		}
		return nil
	})
	// The request waits for its cluster and is paused; it goes on when there is one and it is being deleted.
	request, ar, tooMuch := newRequest("r", "workload", nil), newAccess("a", "", inNamespace("team", "get")), newAccess("b", "")
	for _, waiting := range []*v1alpha1.AccessRequest{ar, tooMuch} {
		waiting.Spec.ClusterRef, waiting.Spec.RequestRef = nil, &v1alpha1.LocalObjectReference{Name: request.Name}
	}
	tooMuch.Spec.RoleRefs = []v1alpha1.RoleReference{{Kind: "ClusterRole", Name: "cluster-admin"}}
	w.create(ar)
	w.wants(ar, v1alpha1.PhasePending, v1alpha1.ReasonRequestMissing)
	w.patch(ar, `{"metadata":{"annotations":{"operatorkit.io/paused":"true"}}}`)
	w.create(tooMuch)
	w.wants(tooMuch, v1alpha1.PhasePending, v1alpha1.ReasonRequestMissing) // so the granter knows that a is paused
	w.create(request)
	w.wants(tooMuch, v1alpha1.PhaseDenied, v1alpha1.ReasonExceedsPolicy) // so it knows the cluster
	if err := w.user.Delete(t.Context(), ar); err != nil {
		t.Fatal(err)
	}
	w.patch(ar, `{"metadata":{"annotations":{"operatorkit.io/paused":null}}}`)
	w.wantGone(ar)
	if n := watches.Load(); n != 0 {
		t.Errorf("%d watches were opened for what was never claimed", n)
	}
	w.wantWatches(watches)
}

// countWatches counts the watches of roles and bindings that the granter opens in clusters.
func (w *world) countWatches() *atomic.Int64 {
	watches := &atomic.Int64{}
	w.change = func(c *granter.Config) {
		c.WrapTransport = func(_ informer.Key, next http.RoundTripper) http.RoundTripper {
			return counting{next, watches}
		}
	}
	return watches
}

// wantWatches waits until watches are counted for a request that is granted.
func (w *world) wantWatches(watches *atomic.Int64) {
	w.t.Helper()
	granted := newAccess("granted", "c", inNamespace("team", "get"))
	w.create(granted)
	w.granted(granted)
	operatortest.Eventually(w.t, "what was granted is watched", func() bool { return watches.Load() > 0 })
}

// counting counts the watches of roles and bindings.
type counting struct {
	http.RoundTripper

	watches *atomic.Int64
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Has("watch") && strings.Contains(r.URL.Path, rbacv1.GroupName) {
		c.watches.Add(1)
	}
	return c.RoundTripper.RoundTrip(r)
}

func TestTheClusterOfARequestDoesNotGoFromItsStatus(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	request, ar := newRequest("r", "workload", nil), newAccess("a", "c", inNamespace("team", "get"))
	w.create(request, ar)
	w.start()
	w.granted(ar)
	settles(w, request, "the ClusterRequest has its cluster", func(r *v1alpha1.ClusterRequest) error {
		if r.Status.ClusterRef == nil {
			return fmt.Errorf("it is %+v", r.Status)
		}
		return nil
	})
	for _, o := range []client.Object{request, ar} {
		for _, document := range []string{`{"status":{"clusterRef":null}}`, `{"status":{"clusterRef":{"name":"other"}}}`, `{"status":null}`} {
			patched := o.DeepCopyObject().(client.Object)
			err := w.user.Status().Patch(t.Context(), patched, client.RawPatch(types.MergePatchType, []byte(document)))
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "does not change") {
				t.Errorf("%T with %s: %v", o, document, err)
			}
		}
	}
}
