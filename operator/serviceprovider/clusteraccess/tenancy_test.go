package clusteraccess_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/frameworktest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/granter"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/namespaces"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/clusteraccess/scheduler"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// another gives another provider a namespace.
func (w *world) another(provider string) (namespace string) {
	w.t.Helper()
	namespace = w.kube.Namespace(w.t)
	w.providers[namespace] = provider
	return namespace
}

// createIn creates an object in a namespace.
func (w *world) createIn(namespace string, o client.Object) {
	w.t.Helper()
	o.SetNamespace(namespace)
	if err := w.user.Create(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// asOf has an object carry everything by which the provider postgres marks what it asks for.
func asOf[O client.Object](of client.Object, o O) O {
	o.SetLabels(of.GetLabels())
	o.SetAnnotations(of.GetAnnotations())
	return o
}

func TestWhatIsAskedForInANamespaceOfNoProviderIsDenied(t *testing.T) {
	w := newWorld(t)
	w.tenants()
	elsewhere := w.kube.Namespace(t)
	w.elsewhere = []string{elsewhere}
	w.start()
	mine, _ := w.asked(w.providerOf("a", "postgres", nil), object("db"))
	for _, namespace := range []string{w.clusters, elsewhere} {
		request, ar := asOf(mine, newRequest("r", "workload", nil)), asOf(mine, newAccess("a", "workload", inNamespace("team", "get")))
		byRequest := asOf(mine, newAccess("by-request", ""))
		byRequest.Spec.ClusterRef, byRequest.Spec.RequestRef = nil, &v1alpha1.LocalObjectReference{Name: "r"}
		for _, o := range []client.Object{request, ar, byRequest} {
			w.createIn(namespace, o)
		}
		w.placed(request, v1alpha1.PhaseDenied, v1alpha1.ReasonNoProvider, "")
		w.wants(ar, v1alpha1.PhaseDenied, v1alpha1.ReasonNoProvider)
		w.wants(byRequest, v1alpha1.PhaseDenied, v1alpha1.ReasonNoProvider)
		if want := "Namespace " + namespace + " is no service provider's"; !strings.Contains(message(ar), want) {
			t.Errorf("the message does not say %q: %s", want, message(ar))
		}
		left, err := w.remains(namespace)
		if err != nil || len(left) > 0 || ar.Status.SecretRef != nil {
			t.Errorf("%d objects were made in the cluster, and Secret %v: %v", len(left), ar.Status.SecretRef, err)
		}
		for _, o := range []client.Object{ar, byRequest, request} {
			if err := w.user.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			w.wantGone(o)
		}
	}
	w.granted(mine)
}

func TestWhatANamespaceWasGrantedIsTakenAwayWhenItIsNoProvidersAnyMore(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	namespace := w.another("redis")
	ar := newAccess("a", "c", inNamespace("team", "get"))
	w.createIn(namespace, ar)
	stop := w.start()
	_, config := w.credentials(w.granted(ar))
	stop()
	delete(w.providers, namespace)
	w.elsewhere = []string{namespace}
	w.start()
	w.wants(ar, v1alpha1.PhaseDenied, v1alpha1.ReasonNoProvider)
	w.revoked(config)
	operatortest.Eventually(t, "nothing of it is left in the cluster", func() error {
		left, err := w.remains(namespace)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%d objects are", len(left))
		}
		return err
	})
}

func TestProvidersShareClustersAndHaveTheirOwnCredentials(t *testing.T) {
	w := newWorld(t)
	cluster := w.addPlace("c", "workload", 2, nil)
	second := w.another("redis")
	secrets := map[string]*corev1.Secret{}
	w.start()
	for _, namespace := range []string{w.namespace, second} {
		request, ar := newRequest("r", "workload", nil), newAccess("a", "")
		ar.Spec.ClusterRef, ar.Spec.RequestRef = nil, &v1alpha1.LocalObjectReference{Name: "r"}
		w.createIn(namespace, request)
		w.createIn(namespace, ar)
		w.placed(request, v1alpha1.PhaseGranted, v1alpha1.ReasonGranted, "c")
		secrets[namespace], _ = w.credentials(w.granted(ar))
		if secrets[namespace].Namespace != namespace {
			t.Errorf("the credentials are in namespace %s, and were asked for in %s", secrets[namespace].Namespace, namespace)
		}
	}
	late := newRequest("late", "workload", nil)
	w.createIn(second, late)
	w.placed(late, v1alpha1.PhasePending, v1alpha1.ReasonNoRoom, "") // the room is counted over all providers
	settles(w, cluster, "the Cluster counts the requests of both", func(c *v1alpha1.Cluster) error {
		if c.Status.Requests != 2 {
			return fmt.Errorf("it has %d", c.Status.Requests)
		}
		return nil
	})
	first := newRequest("r", "workload", nil)
	first.Namespace = w.namespace
	access := newAccess("a", "")
	access.Namespace = w.namespace
	if err := errors.Join(w.user.Delete(t.Context(), access), w.user.Delete(t.Context(), first)); err != nil {
		t.Fatal(err)
	}
	w.wantGone(first)
	w.placed(late, v1alpha1.PhaseGranted, v1alpha1.ReasonGranted, "c") // and what one gives back another gets
	access.Namespace = second
	w.granted(access)
	if now, _ := w.credentials(access); now.ResourceVersion != secrets[second].ResourceVersion {
		t.Error("the end of the first provider's access has changed the second's credentials")
	}
}

func TestAPolicyIsForTheProviderWhoseNamespaceItIs(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	trusted, mine := w.policy, w.namespace
	w.change = func(c *granter.Config) {
		c.Policy = func(_ *v1alpha1.Cluster, request *v1alpha1.AccessRequest) granter.Policy {
			if request.Namespace == mine {
				return trusted
			}
			return granter.Policy{}
		}
	}
	own := newAccess("a", "c", inNamespace("team", "get"))
	own.Labels, own.Annotations = map[string]string{clusteraccess.OwnerLabel: "v1-postgres"}, map[string]string{clusteraccess.OwnerAnnotation: "postgres"}
	w.create(own)
	second := w.another("redis")
	forged := asOf(own, newAccess("a", "c", inNamespace("team", "get")))
	w.createIn(second, forged)
	w.start()
	w.granted(own)
	w.wants(forged, v1alpha1.PhaseDenied, v1alpha1.ReasonExceedsPolicy)
}

func TestNoPatternIncludesTheNamespacesOfThePlatformOrOfAProvider(t *testing.T) {
	w := newWorld(t)
	w.addCluster("platform", "workload")
	w.policy = granter.Policy{Permissions: []v1alpha1.Permission{{Namespace: "*", Rules: []rbacv1.PolicyRule{configMaps("get")}}}}
	second := w.another("redis")
	w.change = func(c *granter.Config) { c.ReservedNamespaces = []string{"vault"} }
	w.start()
	for i, namespace := range []string{w.clusters, w.namespace, second, granter.DefaultNamespace, metav1.NamespaceSystem, "vault"} {
		ar := newAccess(fmt.Sprintf("a%d", i), "platform", inNamespace(namespace, "get"))
		w.create(ar)
		w.wants(ar, v1alpha1.PhaseDenied, v1alpha1.ReasonExceedsPolicy)
	}
}

func TestAProviderCanNotAbandonAClusterThatAnswers(t *testing.T) {
	w := newWorld(t)
	cluster := w.addCluster("c", "workload")
	ar, last := newAccess("a", "c", inNamespace("team", "get")), newAccess("last", "c")
	w.create(ar, last)
	w.start()
	_, config := w.credentials(w.granted(ar))
	account := ar.Status.ServiceAccount.Name
	_, lasting := w.credentials(w.granted(last))
	w.patch(ar, `{"metadata":{"annotations":{"`+v1alpha1.AbandonAnnotation+`":"true"}}}`)
	if err := w.user.Delete(t.Context(), ar); err != nil {
		t.Fatal(err)
	}
	w.wantGone(ar)
	w.revoked(config)
	left, err := w.remains(w.namespace)
	for _, o := range left {
		if strings.HasPrefix(o.GetName(), account) {
			t.Errorf("%T %s is left in the cluster, because of the provider's annotation", o, o.GetName())
		}
	}
	if err != nil {
		t.Fatal(err)
	}

	// On the Cluster it is the platform's word.
	w.patch(cluster, `{"metadata":{"annotations":{"`+v1alpha1.AbandonAnnotation+`":"true"}}}`)
	frameworktest.Look(t, w.frameworks["cluster-health"], cluster) // whose source the granter reads
	if err := w.user.Delete(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	w.wantGone(last)
	w.frameworks["cluster-health"].Enqueue(client.ObjectKeyFromObject(cluster))
	operatortest.Eventually(t, "the Cluster was looked at", func() bool {
		s := w.frameworks["cluster-health"].Status()
		return s.Fresh+s.Backlog+s.Active == 0
	})
	if left, err = w.remains(w.namespace); err != nil || len(left) == 0 {
		t.Errorf("%d objects are left in the cluster that the platform has abandoned: %v", len(left), err)
	}
	w.patch(cluster, `{"metadata":{"annotations":{"`+v1alpha1.AbandonAnnotation+`":null}}}`)
	w.revoked(lasting) // what the platform does not abandon any more is cleaned up
}

// TestNoStatusOfAProviderTellsWhereAndHowThePlatformManagesItsClusters looks at all that requests say while something is wrong.
func TestNoStatusOfAProviderTellsWhereAndHowThePlatformManagesItsClusters(t *testing.T) {
	w := newWorld(t)
	good, broken := w.policy, granter.Policy{Permissions: []v1alpha1.Permission{{Namespace: "["}}}
	w.change = func(c *granter.Config) {
		c.Policy = func(_ *v1alpha1.Cluster, request *v1alpha1.AccessRequest) granter.Policy {
			if request.Name == "broken-policy" {
				return broken
			}
			return good
		}
	}
	powerless := w.remote.RESTConfig()
	stranger, err := w.remote.User("stranger")
	if err != nil {
		t.Fatal(err)
	}
	powerless.CertData, powerless.KeyData, powerless.BearerToken = stranger.CertData, stranger.KeyData, ""
	unknown := w.remote.RESTConfig()
	unknown.BearerToken = "wrong"
	w.addCluster("fine", "fine")
	down, downSecret := newCluster(t, "down", nowhere(w), "workload")
	refused, refusedSecret := newCluster(t, "refused", unknown, "workload")
	weak, weakSecret := newCluster(t, "weak", powerless, "workload")
	garbled, garbledSecret := newCluster(t, "garbled", nowhere(w), "workload")
	garbledSecret.Data[v1alpha1.KubeconfigKey] = []byte("server: https://garbled.platform.example")
	bare, _ := newCluster(t, "bare", nowhere(w), "workload")
	w.create(down, downSecret, refused, refusedSecret, weak, weakSecret, garbled, garbledSecret, bare)
	w.addPlace("full", "full", 0, nil)

	reasons := map[string]string{
		"down": v1alpha1.ReasonClusterUnreachable, "refused": v1alpha1.ReasonClusterUnreachable, "garbled": v1alpha1.ReasonClusterUnreachable,
		"bare": v1alpha1.ReasonClusterUnreachable, "weak": v1alpha1.ReasonFailed, "missing": v1alpha1.ReasonClusterMissing,
		"broken-policy": v1alpha1.ReasonPolicyInvalid, "too-much": v1alpha1.ReasonExceedsPolicy, "no-request": v1alpha1.ReasonRequestMissing,
		"no-room": v1alpha1.ReasonRequestPending,
	}
	for name := range reasons {
		ar := newAccess(name, name, inNamespace("team", "get"))
		switch name {
		case "broken-policy":
			ar.Spec.ClusterRef.Name = "fine"
		case "too-much":
			ar.Spec.ClusterRef.Name = "fine"
			ar.Spec.RoleRefs = []v1alpha1.RoleReference{{Kind: "ClusterRole", Name: "cluster-admin"}}
		case "no-request", "no-room":
			ar.Spec.ClusterRef, ar.Spec.RequestRef = nil, &v1alpha1.LocalObjectReference{Name: name}
		}
		w.create(ar)
	}
	w.create(newRequest("no-room", "full", nil), newRequest("no-cluster", "nothing", nil))
	w.start()
	hosts := []string{"127.0.0.1", "platform.example"}
	for _, config := range []string{w.remote.RESTConfig().Host, nowhere(w).Host} {
		host, err := url.Parse(config)
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, host.Host)
	}
	tells := func(o client.Object, conditions []metav1.Condition) {
		t.Helper()
		text, err := json.Marshal(conditions)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range append(hosts, w.clusters, "-admin", "system:", "stranger") {
			if strings.Contains(strings.ReplaceAll(string(text), "cluster-admin", ""), secret) {
				t.Errorf("%T %s tells %q: %s", o, o.GetName(), secret, text)
			}
		}
	}
	for name, reason := range reasons {
		ar := newAccess(name, "")
		ar.Namespace = w.namespace
		settles(w, ar, name+" says "+reason, func(ar *v1alpha1.AccessRequest) error {
			c := apimeta.FindStatusCondition(ar.Status.Conditions, v1alpha1.ConditionGranted)
			if c == nil || c.Reason != reason {
				return fmt.Errorf("it is %+v", ar.Status)
			}
			return nil
		})
		tells(ar, ar.Status.Conditions)
	}
	for _, name := range []string{"no-room", "no-cluster"} {
		r := newRequest(name, "", nil)
		r.Namespace = w.namespace
		settles(w, r, name+" waits", func(r *v1alpha1.ClusterRequest) error {
			if len(r.Status.Conditions) == 0 {
				return errors.New("it says nothing yet")
			}
			return nil
		})
		tells(r, r.Status.Conditions)
	}
	// Those who run the platform are told.
	for _, want := range []string{"bare-admin", "garbled-admin", "127.0.0.1:1"} {
		operatortest.Eventually(t, "the Clusters tell of "+want, func() error {
			list := &v1alpha1.ClusterList{}
			if err := w.user.List(t.Context(), list, client.InNamespace(w.clusters)); err != nil {
				return err
			}
			for _, c := range list.Items {
				if ready := apimeta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady); ready != nil && strings.Contains(ready.Message, want) {
					return nil
				}
			}
			return errors.New("none does")
		})
	}
	operatortest.Eventually(t, "the log tells who is refused", func() bool { return strings.Contains(w.log.String(), "stranger") })
}

func TestALayoutWithClustersInAProvidersNamespaceIsRefused(t *testing.T) {
	layout := namespaces.Layout{Clusters: namespaces.Of("postgres")}
	_, scheduling := scheduler.New(&operator.Dependencies{}, layout)
	_, granting := granter.New(&operator.Dependencies{}, granter.Config{Layout: layout, Policy: func(*v1alpha1.Cluster, *v1alpha1.AccessRequest) granter.Policy {
		return granter.Policy{}
	}})
	for what, err := range map[string]error{"scheduler": scheduling, "granter": granting} {
		if !framework.IsInvalidConfig(err) || !strings.Contains(err.Error(), "choose another one") {
			t.Errorf("%s: err = %v", what, err)
		}
	}
}
