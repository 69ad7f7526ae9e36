package target_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// whoAmI asks the cluster who its client is.
func whoAmI(t *testing.T, c *target.Cluster) string {
	t.Helper()
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Client().Create(t.Context(), review); err != nil {
		t.Fatalf("ask who I am: %v", err)
	}
	return review.Status.UserInfo.Username
}

func TestARotatedKubeconfigIsUsedAtOnce(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connected(w.deploy("prod", administrator(t, w.kube, "first")))
	if got := whoAmI(t, c); got != "first" {
		t.Fatalf("the user is %q", got)
	}
	w.watch(c, user, configMaps(w.namespace))
	w.put(configMap(w.namespace, "before", user))
	w.told("the change before the rotation is told", changeOf("before"))
	watchesBefore := w.counts.of(c.Key(), "/configmaps")

	w.rotate("prod", administrator(t, w.kube, "second"))
	operatortest.Eventually(t, "new requests are those of the second user", func() bool { return whoAmI(t, c) == "second" })
	w.await(c, target.Connected)
	operatortest.Eventually(t, "the watch is another one", func() bool { return w.counts.of(c.Key(), "/configmaps") > watchesBefore })
	w.put(configMap(w.namespace, "after", user))
	w.told("a change after the rotation is told", changeOf("after"))
	if n := w.noticed(changeOf("before")); n != 1 {
		t.Errorf("what did not change was told %d times", n)
	}
}

func TestARotationToAnotherClusterTellsWhatIsDifferentThere(t *testing.T) {
	w := newWorld(t, nil)
	elsewhere := w.kube.Namespace(t)
	c := w.connected(w.deploy("prod", administrator(t, w.kube, "first")))
	first, err := c.Identity(t.Context())
	if err != nil || first == "" {
		t.Fatalf("Identity = %q, %v", first, err)
	}
	w.put(configMap(w.namespace, "only-here", user))
	kind := configMaps(w.namespace)
	w.watch(c, user, kind)

	// Somebody who may see nothing at all stands for a cluster where nothing is.
	config, err := w.kube.User("stranger")
	if err != nil {
		t.Fatal(err)
	}
	w.rotate("prod", kubeconfigOf(t, config))
	operatortest.Eventually(t, "the stranger may not read", func() error {
		return apierrorsForbidden(c.Client().Get(t.Context(), client.ObjectKey{Namespace: elsewhere, Name: "x"}, &corev1.ConfigMap{}))
	})
	w.await(c, target.Connected)
	if _, err := c.Identity(t.Context()); !apierrors.IsForbidden(err) {
		t.Errorf("Identity of the first kubeconfig was kept: %v", err)
	}
	objects, ok := c.Objects(kind)
	if !ok {
		t.Fatal("the watch is gone")
	}
	operatortest.Eventually(t, "the watch says that it is not allowed", func() bool { return apierrors.IsForbidden(objects.Status().LastError) })
	if err := w.client.Delete(t.Context(), configMap(w.namespace, "only-here", user)); err != nil {
		t.Fatal(err)
	}

	w.rotate("prod", administrator(t, w.kube, "third"))
	w.told("what is missing now is told", changeOf("only-here"))
	if got := objects.List(); len(got) != 0 {
		t.Errorf("the watch still holds %v", got)
	}
}

// apierrorsForbidden returns nil for an error that says forbidden.
func apierrorsForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err == nil {
		return http.ErrNotSupported
	}
	return err
}

func TestARevokedTokenShowsInTheConditionAndIsMendedByAnotherOne(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connected(w.deploy("prod", w.account("robot")))
	if got := whoAmI(t, c); !strings.HasSuffix(got, ":robot") {
		t.Fatalf("the user is %q", got)
	}
	if err := w.client.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "robot"}}); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the credential is refused", func() bool {
		_ = c.Client().Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "x"}, &corev1.ConfigMap{})
		return c.Health().State == target.CredentialRefused
	})
	w.told("the refusal is told", func(n target.Notice) bool { return n.State == target.CredentialRefused && n.Cluster == c.Key() })
	condition := c.Condition()
	if condition.Status != metav1.ConditionFalse || !strings.Contains(condition.Message, "prod-kubeconfig") {
		t.Errorf("condition = %+v", condition)
	}
	sent := w.counts.of(c.Key(), "configmaps")
	err := c.Client().Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "x"}, &corev1.ConfigMap{})
	if unreachable(t, err).State != target.CredentialRefused || w.counts.of(c.Key(), "configmaps") != sent {
		t.Errorf("err = %v, %d requests", err, w.counts.of(c.Key(), "configmaps")-sent)
	}

	w.rotate("prod", w.account("robot"))
	w.await(c, target.Connected)
	if got := whoAmI(t, c); !strings.HasSuffix(got, ":robot") {
		t.Errorf("the user is %q", got)
	}
}

func TestRevokedRightsAreErrorsOfRequestsOnly(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connected(w.deploy("prod", w.account("robot")))
	key := client.ObjectKey{Namespace: w.namespace, Name: "x"}
	operatortest.Eventually(t, "the rights are there", func() bool {
		return apierrors.IsNotFound(c.Client().Get(t.Context(), key, &corev1.ConfigMap{}))
	})
	if err := w.client.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "robot"}}); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the rights are gone", func() error {
		return apierrorsForbidden(c.Client().Get(t.Context(), key, &corev1.ConfigMap{}))
	})
	if err := c.Err(); err != nil {
		t.Errorf("Err = %v, want none: the cluster answers", err)
	}
}

func TestNothingIsSentWithoutAKubeconfigThatCanBeUsed(t *testing.T) {
	w := newWorld(t, nil)
	good := administrator(t, w.kube, "first")
	c := w.connected(w.deploy("prod", good))
	w.watch(c, user, configMaps(w.namespace))
	refused := func(state target.State) {
		t.Helper()
		w.await(c, state)
		w.told("the state is told", func(n target.Notice) bool { return n.State == state })
		sent := w.counts.of(c.Key(), "")
		err := c.Client().Create(t.Context(), configMap(w.namespace, "never", user))
		if unreachable(t, err).State != state || w.counts.of(c.Key(), "") != sent {
			t.Errorf("%s: err = %v, %d requests were sent", state, err, w.counts.of(c.Key(), "")-sent)
		}
	}

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "prod-kubeconfig"}}
	if err := w.client.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	refused(target.SecretMissing)
	w.put(configMap(w.namespace, "meanwhile", user))
	w.rotate("prod", []byte("nonsense"))
	refused(target.KubeconfigInvalid)

	w.rotate("prod", good)
	w.await(c, target.Connected)
	w.told("what happened meanwhile is told", changeOf("meanwhile"))
}

// overtaken is a source of Secrets that is asked for one right before it comes.
type overtaken struct {
	informer.Source
	once sync.Once
	come func()
}

func (o *overtaken) Get(key informer.Key) (any, bool, error) {
	obj, exists, err := o.Source.Get(key)
	if !exists {
		o.once.Do(o.come)
	}
	return obj, exists, err
}

func TestASecretThatComesWhileItIsLookedForIsNotMissed(t *testing.T) {
	secrets := &overtaken{}
	w := newWorld(t, func(c *target.Config) { secrets.Source, c.Secrets = c.Secrets, secrets })
	w.put(&v1alpha1.ClusterDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "prod"}})
	kubeconfig := administrator(t, w.kube, "first")
	secrets.come = func() {
		seen := make(chan struct{}, 100)
		defer secrets.Subscribe(func(e informer.Event) {
			if e.Key.Name == "prod"+target.DefaultSecretSuffix {
				seen <- struct{}{}
			}
		})()
		w.rotate("prod", kubeconfig)
		<-seen
	}
	w.connected(w.key("prod"))
}
