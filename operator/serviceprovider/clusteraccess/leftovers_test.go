package clusteraccess_test

import (
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/serviceprovider/v1alpha1"
)

// asProvider returns a client of providerConfig.
func (w *world) asProvider() client.Client {
	w.t.Helper()
	return w.client(w.providerConfig())
}

// providerConfig is a configuration with a token of an account in the provider's namespace, with the rights that package clusteraccess
// documents and no others.
func (w *world) providerConfig() *rest.Config {
	w.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "provider"}}
	verbs := []string{"get", "list", "watch", "create", "patch", "delete"}
	w.create(account,
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "provider"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"accessrequests", "clusterrequests"}, Verbs: verbs},
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: verbs[:3]},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "provider"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "provider"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.namespace, Name: "provider"}},
		},
	)
	token := &authenticationv1.TokenRequest{}
	if err := w.user.SubResource("token").Create(w.t.Context(), account, token); err != nil {
		w.t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(w.kube.RESTConfig())
	config.QPS, config.BearerToken = -1, token.Status.Token
	provider := w.client(config)
	operatortest.Eventually(w.t, "the provider's rights are in force", func() error {
		return provider.List(w.t.Context(), &v1alpha1.AccessRequestList{}, client.InNamespace(w.namespace))
	})
	return config
}

// snatch deletes a request without the granter: its finalizers are taken off.
func (w *world) snatch(as client.Client, ar *v1alpha1.AccessRequest) {
	w.t.Helper()
	operatortest.Eventually(w.t, "the request goes without being let go", func() error {
		taken := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := as.Delete(w.t.Context(), ar.DeepCopy()); client.IgnoreNotFound(err) != nil {
			return err
		}
		if err := as.Patch(w.t.Context(), ar.DeepCopy(), taken); client.IgnoreNotFound(err) != nil {
			return err
		}
		left := &v1alpha1.AccessRequest{}
		err := as.Get(w.t.Context(), client.ObjectKeyFromObject(ar), left)
		if err == nil && left.UID == ar.UID {
			return fmt.Errorf("its finalizers are %v", left.Finalizers)
		}
		return client.IgnoreNotFound(err)
	})
}

// wantNothingOf waits until nothing is in the cluster of requests of the world with that name.
func (w *world) wantNothingOf(name string) {
	w.t.Helper()
	operatortest.Eventually(w.t, "nothing of "+name+" is left in the cluster", func() error {
		left, err := w.remains(w.namespace)
		for _, o := range left {
			if strings.HasSuffix(o.GetAnnotations()["operatorkit.io/owner"], "/"+name) {
				err = fmt.Errorf("%T %s/%s is", o, o.GetNamespace(), o.GetName())
			}
		}
		return err
	})
}

// ofAnotherPlatform makes a service account as a granter of the same names would for a Cluster of another platform.
func (w *world) ofAnotherPlatform(like *v1alpha1.ServiceAccountReference) *corev1.ServiceAccount {
	w.t.Helper()
	account := &corev1.ServiceAccount{}
	if err := w.admin.Get(w.t.Context(), client.ObjectKey{Namespace: like.Namespace, Name: like.Name}, account); err != nil {
		w.t.Fatal(err)
	}
	owner := "AccessRequest.clusters.operatorkit.io/" + w.namespace + "/stranger"
	account.ObjectMeta = metav1.ObjectMeta{Namespace: account.Namespace, Name: w.namespace + "-stranger", Labels: account.Labels, Annotations: account.Annotations}
	account.Labels["operatorkit.io/owner"] = identity.Mark{Operator: w.operator, Framework: "granter", Resource: "access"}.Hash(owner)
	account.Labels["clusters.operatorkit.io/cluster"] = "another"
	account.Annotations["operatorkit.io/owner"] = owner
	account.Annotations["operatorkit.io/applied"] = account.Namespace + "/" + account.Name + "#"
	if err := w.admin.Create(w.t.Context(), account); err != nil {
		w.t.Fatal(err)
	}
	return account
}

func TestWhatAProviderWasGrantedEndsWhenItTakesTheFinalizersOffItsRequest(t *testing.T) {
	w := newWorld(t)
	w.addCluster("c", "workload")
	w.addCluster("other", "workload") // which is the same API server
	provider := w.asProvider()
	wide := newAccess("running", "c", inNamespace(w.remoteNamespace(), "get"))
	wide.Spec.RoleRefs = []v1alpha1.RoleReference{{Kind: "ClusterRole", Name: "view", Namespace: w.remoteNamespace()}}
	down, again, unreachable := newAccess("down", "c", inNamespace("team", "get")), newAccess("again", "c", inNamespace("team", "get")), newAccess("unreachable", "c", inNamespace("team", "get"))
	kept, elsewhere := newAccess("kept", "c", inNamespace("team", "get")), newAccess("elsewhere", "other", inNamespace("team", "get"))
	for _, ar := range []*v1alpha1.AccessRequest{wide, down, again, unreachable, kept, elsewhere} {
		ar.Namespace = w.namespace
		if err := provider.Create(t.Context(), ar); err != nil {
			t.Fatal(err)
		}
	}
	stop := w.start()
	configs := map[*v1alpha1.AccessRequest]*rest.Config{}
	for _, ar := range []*v1alpha1.AccessRequest{wide, down, again, unreachable, kept, elsewhere} {
		_, configs[ar] = w.credentials(w.granted(ar))
	}
	foreign := w.ofAnotherPlatform(wide.Status.ServiceAccount)

	w.snatch(provider, wide)
	w.wantNothingOf("running")
	w.revoked(configs[wide])

	stop()
	w.snatch(provider, down)
	w.snatch(provider, again)
	for _, ar := range []*v1alpha1.AccessRequest{down, again} {
		w.works(configs[ar]) // nobody is there who could take it away
	}
	namesake := newAccess("again", "missing")
	namesake.Namespace = w.namespace
	if err := provider.Create(t.Context(), namesake); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.wantNothingOf("down")
	w.wantNothingOf("again")
	w.revoked(configs[down])
	w.revoked(configs[again])
	w.wants(namesake, v1alpha1.PhasePending, v1alpha1.ReasonClusterMissing)

	w.moveCluster("c", nowhere(w))
	w.wants(unreachable, v1alpha1.PhaseGranted, v1alpha1.ReasonClusterUnreachable)
	w.snatch(provider, unreachable)
	w.works(configs[unreachable])
	w.moveCluster("c", w.remote.RESTConfig())
	w.wantNothingOf("unreachable")
	w.revoked(configs[unreachable])

	for _, ar := range []*v1alpha1.AccessRequest{kept, elsewhere} {
		w.works(configs[ar])
		if uid := ar.UID; w.granted(ar).UID != uid {
			t.Errorf("%s is another one", ar.Name)
		}
	}
	if err := w.admin.Delete(t.Context(), foreign); err != nil {
		t.Errorf("what another platform has made is gone: %v", err)
	}
	operatortest.Eventually(t, "events at the Cluster name the requests", func() error {
		events := &corev1.EventList{}
		if err := w.user.List(t.Context(), events, client.InNamespace(w.clusters)); err != nil {
			return err
		}
		for _, want := range []string{"down", "again"} { // of the others the granter knows still that they went
			found := false
			for _, e := range events.Items {
				found = found || e.Reason == "LeftAccess" && strings.Contains(e.Message, "AccessRequest "+w.namespace+"/"+want+" is gone")
			}
			if !found {
				return fmt.Errorf("none names %s", want)
			}
		}
		return nil
	})
}
