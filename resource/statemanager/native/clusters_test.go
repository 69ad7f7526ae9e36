package native_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// TestAClusterIsKilledInMidApplyAndComesBack kills the API server of a cluster before the second of several writes of a release and
// of manifests.
func TestAClusterIsKilledInMidApplyAndComesBack(t *testing.T) {
	w := newPlatform(t)
	far := operatortest.Start(t, operatortest.Dedicated())
	w.deploy("far", far.RESTConfig())
	w.east = newClient(t, far.RESTConfig())
	w.charts(map[string][]byte{"app-1.0.0.tgz": chartOf(t, "app", "1.0.0", files{
		"templates/more.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n",
	})})
	w.manifests("files", configMapText("one", "1")+configMapText("two", "2")+configMapText("three", "3"))
	for _, template := range []string{"app-1.0.0", "files"} {
		service := strings.TrimSuffix(template, "-1.0.0")
		w.set(service, "far", w.service(service, template))
		var writes atomic.Int32
		w.requests.mu.Lock()
		w.requests.before = func(cluster target.Key, r *http.Request) {
			if cluster.Name == "far" && r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == "" && writes.Add(1) == 4 {
				if err := far.KillAPIServer(); err != nil {
					t.Error(err)
				}
			}
		}
		w.requests.mu.Unlock()
		operatortest.Eventually(t, "the cluster is killed in mid-apply", func() error {
			if _, err := w.step(service); writes.Load() < 4 {
				return errors.Join(fmt.Errorf("%d writes", writes.Load()), err)
			}
			return nil
		})
		w.await("far", target.Unreachable)

		// While it is away, its services are as they were, and a condition says why.
		work := w.mustStep(service)
		message, _ := w.reachable(service, string(target.Unreachable))
		says(t, message, far.RESTConfig().Host, "does not answer", "tried again")
		t.Logf("killed: %s", message)
		if got := w.stateOf(service, service); got.State != v1alpha1.ServiceStateProvisioning || got.FailureMessage != "" {
			t.Errorf("the state while the cluster is away: %+v", got)
		}
		says(t, w.condition(service, service, native.ConditionWaiting).Message, "reached")
		if len(work.Operations) > 0 {
			t.Errorf("there is something to do: %+v", work.Operations)
		}
		w.quiet(service)
		if err := far.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.await("far", target.Connected)
		w.settle(service, service+" Deployed")
		w.quiet(service)
	}
	for _, name := range []string{"app-page", "more", "one", "two", "three"} {
		w.onEast(name)
	}
}

// account makes an account of the cluster east with all rights, and returns a kubeconfig with its token.
func (w *world) account(name string) []byte {
	w.t.Helper()
	config := eastern(w.t).RESTConfig()
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.east.Create(w.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}); err != nil {
		w.t.Fatal(err)
	}
	w.grant(name)
	token, err := clientset.CoreV1().ServiceAccounts(w.namespace).CreateToken(w.t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	account := rest.AnonymousClientConfig(config)
	account.BearerToken = token.Status.Token
	return kubeconfigOf(w.t, account)
}

// grant gives an account all rights. The binding is returned, and goes with the test.
func (w *world) grant(account string) *rbacv1.ClusterRoleBinding {
	w.t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-" + account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: account}},
	}
	if err := w.east.Create(w.t.Context(), binding); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = w.east.Delete(context.Background(), binding) })
	return binding
}

// onAccount is a world whose cluster "shared" is reached by an account of the cluster east.
func onAccount(t *testing.T, account string) *world {
	t.Helper()
	w := newPlatform(t)
	w.useEast()
	if err := w.east.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}); err != nil {
		t.Fatal(err)
	}
	w.manifests("files", configMapText("one", "1"))
	w.manifests("more", configMapText("two", "2"))
	w.put(&v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "shared"}})
	w.rotate("shared", w.account(account))
	w.await("shared", target.Connected)
	return w
}

// reachable waits until the condition Reachable of a set has a reason, and returns its message and what there is to do.
func (w *world) reachable(set, reason string) (message string, work *statemanager.Work) {
	w.t.Helper()
	operatortest.Eventually(w.t, "the cluster is "+reason, func() error {
		var err error
		work, err = w.compute(set)
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(work.Conditions, target.ConditionReachable)
		if c == nil || c.Reason != reason {
			return fmt.Errorf("conditions: %+v", work.Conditions)
		}
		message = c.Message
		return nil
	})
	return message, work
}

func TestAKubeconfigIsRevokedAndRotated(t *testing.T) {
	w := onAccount(t, "first")
	w.set("a", "shared", w.service("one", "files"))
	w.settle("a", "one Deployed")

	if err := w.east.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "first"}}); err != nil {
		t.Fatal(err)
	}
	w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Services = append(s.Spec.Services, w.service("two", "more")) })
	operatortest.Eventually(t, "the revocation is noticed", func() error {
		_, err := w.step("a")
		if c, _ := w.clusters.Acquire(target.Key{Namespace: w.namespace, Name: "shared"}, target.Key{Namespace: w.namespace, Name: "a"}); c.Health().State != target.CredentialRefused {
			return errors.Join(fmt.Errorf("it is %s", c.Health().State), err)
		}
		return nil
	})
	w.mustStep("a")
	message, _ := w.reachable("a", string(target.CredentialRefused))
	says(t, message, "does not accept the credentials", "401", "Put a valid kubeconfig into", w.namespace+"/shared-kubeconfig")
	t.Logf("revoked: %s", message)
	if got := states(w.get("a")); !strings.HasPrefix(got, "one Deployed, two ") || strings.Contains(got, "Failed") {
		t.Errorf("states: %s", got)
	}
	w.quiet("a")

	w.rotate("shared", []byte("apiVersion: v1\nkind: List\n"))
	w.await("shared", target.KubeconfigInvalid)
	message, _ = w.reachable("a", string(target.KubeconfigInvalid))
	says(t, message, w.namespace+"/shared-kubeconfig")
	t.Logf("no kubeconfig: %s", message)

	w.rotate("shared", w.account("second"))
	w.await("shared", target.Connected)
	w.settle("a", "one Deployed, two Deployed")
	w.quiet("a")
}

// TestAKubeconfigLosesItsRightsAndGetsThemBack takes the rights of the account away, to which the cluster still answers.
func TestAKubeconfigLosesItsRightsAndGetsThemBack(t *testing.T) {
	w := onAccount(t, "robot")
	w.set("a", "shared", w.service("one", "files"))
	w.settle("a", "one Deployed")
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-robot"}}
	if err := w.east.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the API server knows that the rights are gone", func() error {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + w.namespace + ":robot",
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: w.namespace, Verb: "create", Resource: "configmaps"},
		}}
		err := w.east.Create(t.Context(), review)
		if err == nil && review.Status.Allowed {
			err = errors.New(review.Status.Reason)
		}
		return err
	})
	w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Services = append(s.Spec.Services, w.service("two", "more")) })
	w.settle("a", "one Deployed, two Failed")
	says(t, w.stateOf("a", "two").FailureMessage, "system:serviceaccount:"+w.namespace+":robot", "cannot", "forbidden")
	t.Logf("a service: %s", w.stateOf("a", "two").FailureMessage)
	says(t, w.condition("a", "one", native.ConditionResolved).Message, "forbidden")

	// Nothing is known to somebody who begins anew: all stays as it was told.
	w.restart()
	message, work := w.reachable("a", native.ReasonForbidden)
	says(t, message, "rights", "system:serviceaccount:"+w.namespace+":robot", "cannot list")
	t.Logf("the set: %s", message)
	if len(work.Operations) != 1 || work.Operations[0].Err == nil || framework.IsPermanent(work.Operations[0].Err) {
		t.Errorf("it is not tried again: %+v", work.Operations)
	}
	if _, err := w.step("a"); err == nil {
		t.Error("it is not told that something is wrong")
	}
	if got := states(w.get("a")); got != "one Deployed, two Failed" {
		t.Errorf("states: %s", got)
	}
	says(t, w.condition("a", "one", native.ConditionWaiting).Message, "rights")

	w.grant("robot")
	w.settle("a", "one Deployed, two Deployed")
	w.quiet("a")
	if c := meta.FindStatusCondition(w.mustStep("a").Conditions, target.ConditionReachable); c == nil || c.Status != metav1.ConditionTrue {
		t.Errorf("the condition is %+v", c)
	}
}

func TestAClusterThatIsGoneForGoodIsLetGo(t *testing.T) {
	for _, annotated := range []string{"the ServiceSet", "the ClusterDeployment"} {
		w := newPlatform(t)
		w.useEast()
		w.manifests("files", configMapText("one", "1"))
		w.set("a", "east", w.service("one", "files"))
		w.settle("a", "one Deployed")
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "east" + target.DefaultSecretSuffix}}
		if err := w.client.Delete(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		if err := w.client.Delete(t.Context(), w.get("a")); err != nil {
			t.Fatal(err)
		}
		w.await("east", target.SecretMissing)
		work := w.mustStep("a")
		if !work.Left || len(work.Operations) > 0 {
			t.Errorf("work: %+v", work)
		}
		says(t, strings.Join(work.Notes, "\n"), "can't be reached", statemanager.LetGoAnnotation, "Secret "+w.namespace+"/east-kubeconfig")
		w.quiet("a")

		let := map[string]string{statemanager.LetGoAnnotation: "true"}
		if annotated == "the ServiceSet" {
			w.change("a", func(s *v1alpha1.ServiceSet) { s.Annotations = let })
		} else {
			cluster := w.input("a").Cluster
			cluster.Annotations = let
			if err := w.client.Update(t.Context(), cluster); err != nil {
				t.Fatal(err)
			}
		}
		work = w.mustStep("a")
		if work.Left || len(work.Services) > 0 {
			t.Errorf("%s is annotated, and something is left: %+v", annotated, work)
		}
		says(t, strings.Join(work.Notes, "\n"), "let go", "stays there")
		w.onEast("one")
	}
}

func TestAClusterThatMayBeThereIsNotLetGo(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	w.manifests("files", configMapText("one", "1"))
	w.set("a", "east", w.service("one", "files"))
	w.settle("a", "one Deployed")
	w.change("a", func(s *v1alpha1.ServiceSet) { s.Annotations = map[string]string{statemanager.LetGoAnnotation: "true"} })
	if err := w.client.Delete(t.Context(), w.get("a")); err != nil {
		t.Fatal(err)
	}
	isKept := func(work *statemanager.Work) {
		t.Helper()
		if !work.Left || !work.Stale || len(work.Services) != 1 {
			t.Errorf("work: %+v", work)
		}
		notes := strings.Join(work.Notes, "\n")
		says(t, notes, "1 services are still on the cluster")
		if strings.Contains(notes, "let go") || strings.Contains(notes, statemanager.LetGoAnnotation) {
			t.Errorf("notes: %s", notes)
		}
	}

	// With another kubeconfig, the cluster swallows all requests for now.
	quiet := make(chan struct{})
	w.requests.mu.Lock()
	w.requests.before = func(_ target.Key, r *http.Request) {
		select {
		case <-quiet:
		case <-r.Context().Done():
		}
	}
	w.requests.mu.Unlock()
	w.rotate("east", w.account("robot"))
	w.await("east", target.Connecting)
	w.restart()
	isKept(w.mustStep("a"))
	close(quiet)
	w.await("east", target.Connected)

	// It answers, and does not let us look.
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-robot"}}
	if err := w.east.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	_, work := w.reachable("a", native.ReasonForbidden)
	isKept(work)

	w.grant("robot")
	operatortest.Eventually(t, "its services are taken away", func() error {
		work, err := w.step("a")
		if err == nil && work.Left {
			err = fmt.Errorf("there is: %+v", work.Services)
		}
		return err
	})
	if err := w.east.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "one"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestAClusterThatWasNeverReachedHoldsNoDeletion(t *testing.T) {
	w := newPlatform(t)
	w.manifests("files", configMapText("one", "1"))
	w.set("a", "nowhere", w.service("one", "files"))
	work := w.mustStep("a")
	if got := states(w.get("a")); got != "one Pending" {
		t.Errorf("states: %s", got)
	}
	if c := meta.FindStatusCondition(work.Conditions, target.ConditionReachable); c == nil || c.Reason != string(target.ClusterMissing) {
		t.Errorf("conditions: %+v", work.Conditions)
	}
	if err := w.client.Delete(t.Context(), w.get("a")); err != nil {
		t.Fatal(err)
	}
	if work := w.mustStep("a"); work.Left {
		t.Errorf("something is left of a set that was never begun: %+v", work)
	}
}
