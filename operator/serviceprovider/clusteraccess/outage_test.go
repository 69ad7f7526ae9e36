package clusteraccess_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/granter"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/target"
)

// nowhere is a server that does not answer.
func nowhere(w *world) *rest.Config {
	config := w.remote.RESTConfig()
	config.Host = "https://127.0.0.1:1"
	return config
}

// moveCluster changes where a Cluster is reached.
func (w *world) moveCluster(name string, config *rest.Config) {
	w.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.clusters, Name: name + "-admin"}}
	if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		w.t.Fatal(err)
	}
	secret.Data[v1alpha1.KubeconfigKey] = kubeconfigOf(w.t, config)
	if err := w.user.Update(w.t.Context(), secret); err != nil {
		w.t.Fatal(err)
	}
}

func TestAClusterThatDoesNotAnswerHoldsOnlyItsOwnRequests(t *testing.T) {
	w := newWorld(t)
	w.addCluster("up", "workload")
	down, secret := newCluster(t, "down", nowhere(w), "workload")
	w.create(down, secret)
	waiting, served := newAccess("waiting", "down"), newAccess("served", "up")
	w.create(waiting, served)
	w.start()
	w.granted(served)
	w.wants(waiting, v1alpha1.PhasePending, v1alpha1.ReasonClusterUnreachable)
	if !strings.Contains(message(waiting), "Cluster down can't be reached") {
		t.Errorf("the message does not name the cluster: %s", message(waiting))
	}
	settles(w, down, "the Cluster is not ready", func(c *v1alpha1.Cluster) error {
		if !apimeta.IsStatusConditionFalse(c.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("its conditions are %v", c.Status.Conditions)
		}
		return nil
	})
	w.moveCluster("down", w.remote.RESTConfig())
	w.granted(waiting)
	settles(w, down, "the Cluster is ready", func(c *v1alpha1.Cluster) error {
		if !apimeta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionReady) {
			return fmt.Errorf("its conditions are %v", c.Status.Conditions)
		}
		return nil
	})
}

func TestGoodCredentialsStayGrantedWhileTheClusterDoesNotAnswer(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	ar := newAccess("a", "c")
	w.create(ar)
	w.start()
	w.granted(ar)
	w.moveCluster("c", nowhere(w))
	w.wants(ar, v1alpha1.PhaseGranted, v1alpha1.ReasonClusterUnreachable)
	if ar.Status.SecretRef == nil {
		t.Error("the status does not name the Secret any more")
	}
	w.runOut(ar)
	w.wants(ar, v1alpha1.PhasePending, v1alpha1.ReasonClusterUnreachable)
}

// runOut has the granter look at a request when its credentials have a second to live, and then has them run out. Nobody looks again but the
// granter by itself.
func (w *world) runOut(ar *v1alpha1.AccessRequest) {
	w.t.Helper()
	expiration := ar.Status.ExpirationTime.Time
	w.clock.SetTime(expiration.Add(-time.Second))
	w.looked(ar)
	w.clock.SetTime(expiration)
}

// TestAClusterThatIsGoneForGoodIsToldToNotAnswerWhenItsCredentialsHaveRunOut: so that nobody waits for it for ever. One that refuses them answers.
func TestAClusterThatIsGoneForGoodIsToldToNotAnswerWhenItsCredentialsHaveRunOut(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	p := w.newProvider(func(c *clusteraccess.ProviderConfig) { c.Workload = nil })
	w.start()
	request := object("db")
	w.done("access is granted", p.Reconcile, request)
	ar, err := p.MCPAccessRequest(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	w.moveCluster("mcp-of-tenant", nowhere(w))
	w.wants(ar, v1alpha1.PhaseGranted, v1alpha1.ReasonClusterUnreachable)
	secret, config := w.credentials(ar)
	become := func(host, token string) {
		t.Helper()
		config.Host, config.BearerToken = host, token
		secret.Data[v1alpha1.KubeconfigKey] = kubeconfigOf(t, config)
		if err := w.user.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	tells := func(what string, states ...target.State) {
		t.Helper()
		operatortest.Eventually(t, what, func() error {
			_, err := p.MCPCluster(t.Context(), request)
			if err == nil || !strings.Contains(err.Error(), "is not granted: AccessRequest "+client.ObjectKeyFromObject(ar).String()+" is Pending: Cluster mcp-of-tenant can't be reached") {
				return fmt.Errorf("it does not tell what the request waits for: %w", err)
			}
			var told *target.UnreachableError
			if errors.As(err, &told) != (len(states) > 0) || told != nil && told.State != states[0] {
				return fmt.Errorf("it does not tell whether the cluster answers: %w", err)
			}
			return nil
		})
	}
	host := config.Host
	w.clock.SetTime(ar.Status.ExpirationTime.Time)
	w.look(ar)
	w.wants(ar, v1alpha1.PhasePending, v1alpha1.ReasonClusterUnreachable)
	tells("one that answers is not granted, and no more")
	become("https://127.0.0.1:1", config.BearerToken)
	tells("it is told that the cluster does not answer", target.Unreachable)
	become(host, "run-out")
	tells("it is told that the cluster refuses the credentials", target.CredentialRefused)
	w.moveCluster("mcp-of-tenant", w.remote.RESTConfig())
	w.done("access is granted again", p.Reconcile, request)
	operatortest.Eventually(t, "the cluster is reached again", func() error { _, err := p.MCPCluster(t.Context(), request); return err })
	w.done("access is taken away", p.ReconcileDelete, request)
}

// grantedOutOfReach grants access to a cluster that does not answer any more then. What was granted works where it answers.
func (w *world) grantedOutOfReach() (*v1alpha1.AccessRequest, *rest.Config) {
	w.t.Helper()
	w.named("databases")
	w.addCluster("c", "workload")
	ar := newAccess("a", "c", inNamespace("team", "get"))
	w.create(ar)
	w.start()
	_, config := w.credentials(w.granted(ar))
	w.moveCluster("c", nowhere(w))
	w.wants(ar, v1alpha1.PhaseGranted, v1alpha1.ReasonClusterUnreachable)
	return ar, config
}

func TestWhatIsDeniedWhileTheClusterDoesNotAnswerIsToldToWorkThereStill(t *testing.T) {
	w := newWorld(t)
	ar, config := w.grantedOutOfReach()
	ar.Spec.Permissions[0].Rules[0].Resources = []string{"secrets"}
	w.update(ar)
	w.wants(ar, v1alpha1.PhaseDenied, v1alpha1.ReasonExceedsPolicy)
	if !strings.Contains(message(ar), "still works in the cluster") || !strings.Contains(message(ar), "Cluster c can't be reached") {
		t.Errorf("the message does not say that the access works still: %s", message(ar))
	}
	w.works(config)
	w.lingers(ar)
	w.moveCluster("c", w.remote.RESTConfig())
	w.revoked(config)
	w.lingersNoMore(ar)
}

func TestWhatIsDeletedWhileTheClusterDoesNotAnswerIsToldToWorkThereStill(t *testing.T) {
	w := newWorld(t)
	ar, config := w.grantedOutOfReach()
	if err := w.user.Delete(t.Context(), ar); err != nil {
		t.Fatal(err)
	}
	w.wants(ar, v1alpha1.PhasePending, v1alpha1.ReasonClusterUnreachable)
	w.works(config)
	w.lingers(ar)
	w.moveCluster("c", w.remote.RESTConfig())
	w.wantGone(ar)
	w.revoked(config)
	w.lingersNoMore(ar)
}

// lingers waits until it is told everywhere that access still works in its cluster which should have ended.
func (w *world) lingers(ar *v1alpha1.AccessRequest) {
	w.t.Helper()
	settles(w, ar, "the condition Revoked says that the access works still", func(ar *v1alpha1.AccessRequest) error {
		c := apimeta.FindStatusCondition(ar.Status.Conditions, v1alpha1.ConditionRevoked)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonClusterUnreachable || ar.Status.ExpirationTime == nil || ar.Status.Policy != "databases" {
			return fmt.Errorf("the status is %+v", ar.Status)
		}
		return nil
	})
	since := apimeta.FindStatusCondition(ar.Status.Conditions, v1alpha1.ConditionRevoked).LastTransitionTime
	operatortest.Eventually(w.t, "metrics tell of it", func() error {
		revoked, _ := w.measured("operatorkit_access_revoked_timestamp_seconds")
		granted, _ := w.measured("operatorkit_access_granted_timestamp_seconds")
		if key := w.namespace + "/a"; revoked[key] != float64(since.Unix()) || granted[key] != 0 {
			return fmt.Errorf("revoked are %v, granted %v", revoked, granted)
		}
		return nil
	})
}

// lingersNoMore waits until nothing is told any more.
func (w *world) lingersNoMore(ar *v1alpha1.AccessRequest) {
	w.t.Helper()
	operatortest.Eventually(w.t, "nothing is told of access that is gone", func() error {
		revoked, _ := w.measured("operatorkit_access_revoked_timestamp_seconds")
		if len(revoked) > 0 {
			return fmt.Errorf("revoked are %v", revoked)
		}
		return nil
	})
	if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(ar), ar); client.IgnoreNotFound(err) != nil {
		w.t.Error(err)
	} else if s := ar.Status; err == nil && (apimeta.FindStatusCondition(s.Conditions, v1alpha1.ConditionRevoked) != nil || s.Policy != "" || s.ExpirationTime != nil) {
		w.t.Errorf("the status still says so: %+v", s)
	}
}

func TestADeletionWaitsForItsClusterUntilThatIsLetGo(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	ar := newAccess("a", "c")
	w.create(ar)
	w.start()
	secret, _ := w.credentials(w.granted(ar))
	w.moveCluster("c", nowhere(w))
	w.wants(ar, v1alpha1.PhaseGranted, v1alpha1.ReasonClusterUnreachable)
	if err := w.user.Delete(t.Context(), ar); err != nil {
		t.Fatal(err)
	}
	w.wantGone(secret) // nobody gets these credentials any more
	w.wants(ar, v1alpha1.PhasePending, v1alpha1.ReasonClusterUnreachable)
	if !strings.Contains(message(ar), v1alpha1.AbandonAnnotation) {
		t.Errorf("the message does not say how to let go: %s", message(ar))
	}

	w.patch(ar, `{"metadata":{"annotations":{"`+v1alpha1.AbandonAnnotation+`":"yes, please"}}}`) // means nothing
	w.patch(ar, `{"metadata":{"annotations":{"`+v1alpha1.AbandonAnnotation+`":"true"}}}`)
	w.wantGone(ar)
	operatortest.Eventually(t, "an event names the cluster", func() error {
		events := &corev1.EventList{}
		if err := w.user.List(t.Context(), events, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == "Abandoned" && strings.Contains(e.Message, "Cluster c ") {
				return nil
			}
		}
		return errors.New("there is none")
	})
	left, err := w.remains(w.namespace)
	if err != nil || len(left) == 0 {
		t.Errorf("%d objects are left in the cluster (%v); nobody could take them away", len(left), err)
	}
	for _, o := range left {
		_ = w.admin.Delete(t.Context(), o)
	}
}

func TestARequestForNoClusterAtAllCanBeDeleted(t *testing.T) {
	w := newWorld(t)
	ar := newAccess("a", "missing")
	w.create(ar)
	w.start()
	w.wants(ar, v1alpha1.PhasePending, v1alpha1.ReasonClusterMissing)
	if err := w.user.Delete(t.Context(), ar); err != nil {
		t.Fatal(err)
	}
	w.wantGone(ar)
}

func TestADeletionFinishesWhenItsClusterIsBack(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	ar := newAccess("a", "c")
	w.create(ar)
	w.start()
	w.granted(ar)
	w.moveCluster("c", nowhere(w))
	w.wants(ar, v1alpha1.PhaseGranted, v1alpha1.ReasonClusterUnreachable)
	if err := w.user.Delete(t.Context(), ar); err != nil {
		t.Fatal(err)
	}
	w.wants(ar, v1alpha1.PhasePending, v1alpha1.ReasonClusterUnreachable)
	w.moveCluster("c", w.remote.RESTConfig())
	w.wantGone(ar)
	w.wantNothingLeft()
}

// reviewed remembers the tokens that each server was asked about, in whatever requests.
type reviewed struct {
	http.RoundTripper

	mu   *sync.Mutex
	asks map[string][]byte // by the server's address
}

func (r reviewed) RoundTrip(request *http.Request) (*http.Response, error) {
	if strings.HasSuffix(request.URL.Path, "/tokenreviews") {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, err
		}
		request = request.Clone(request.Context())
		request.Body = io.NopCloser(bytes.NewReader(body))
		r.mu.Lock()
		r.asks[request.URL.Host] = append(r.asks[request.URL.Host], body...)
		r.mu.Unlock()
	}
	return r.RoundTripper.RoundTrip(request)
}

func TestATokenIsNotShownToAnotherServer(t *testing.T) {
	w := newWorld(t)
	mu, asks := &sync.Mutex{}, map[string][]byte{}
	w.change = func(c *granter.Config) {
		c.WrapTransport = func(_ informer.Key, next http.RoundTripper) http.RoundTripper { return reviewed{next, mu, asks} }
	}
	w.addCluster("c", "workload")
	ar := newAccess("a", "c", v1alpha1.Permission{Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}},
	}})
	w.create(ar)
	w.start()
	w.granted(ar)
	_, before := w.credentials(ar)

	another := w.kube.RESTConfig()
	w.moveCluster("c", another)
	operatortest.Eventually(t, "the credentials are those of the other server", func() error {
		if _, now := w.credentials(ar); now.Host != another.Host {
			return fmt.Errorf("they lead to %s", now.Host)
		}
		return nil
	})
	// They are looked at once more, so that questions are seen.
	w.patch(ar, `{"metadata":{"labels":{"looked":"at"}}}`)
	address := strings.TrimPrefix(another.Host, "https://")
	operatortest.Eventually(t, "the other server is asked about its own token", func() bool {
		_, now := w.credentials(ar)
		mu.Lock()
		defer mu.Unlock()
		return bytes.Contains(asks[address], []byte(now.BearerToken))
	})
	mu.Lock()
	defer mu.Unlock()
	if bytes.Contains(asks[address], []byte(before.BearerToken)) {
		t.Error("the other server was shown a token that is good elsewhere")
	}
}
