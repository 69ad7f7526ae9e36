package helm_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

// edit changes a ConfigMap as somebody does with kubectl.
func (k *kit) edit(name, patch string) {
	k.t.Helper()
	page := k.configMap(name)
	if err := k.user.Patch(k.t.Context(), page, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("kubectl-edit")); err != nil {
		k.t.Fatal(err)
	}
}

func TestDriftIsToldAndPutRightWhereAskedFor(t *testing.T) {
	k := newKit(t, helm.Config{})
	chart := pageChart("1.0.0").with("templates/extra.yaml", extraTemplate)
	service := k.service(chart)
	k.settle(service)
	k.edit("web-page", `{"data":{"text":"changed","added":"by somebody"}}`)
	if err := k.user.Delete(t.Context(), k.configMap("web-extra")); err != nil {
		t.Fatal(err)
	}
	result := k.compute(service)
	equal(t, "drift", summary(result.Drift), []string{"create ConfigMap web-extra", "update ConfigMap web-page"})
	equal(t, "changes in the mode Continuous", summary(result.Changes), nil)
	if said := text(result.Drift); !strings.Contains(said, `"changed"`) || strings.Contains(said, "by somebody") {
		t.Errorf("only what the chart sets counts:\n%s", said)
	}
	watched := k.service(chart, mode(v1alpha1.SyncModeContinuousWithDriftDetection))
	k.settle(watched)
	page := k.configMap("web-page")
	if page.Data["text"] != "hello" || page.Data["added"] != "by somebody" || k.configMap("web-extra") == nil {
		t.Errorf("it is not put right: %v", page.Data)
	}
	equal(t, "helm list", k.listed(), []string{"web 1 deployed page-1.0.0"})
}

func TestAValueThatTheServerWritesInAnotherWayIsNoDriftAndIsAskedForOnce(t *testing.T) {
	k := newKit(t, helm.Config{})
	service := k.service(serverChart("1.0.0"))
	result := k.settle(service)
	equal(t, "drift", summary(result.Drift), nil)
	k.compute(service)
	before := k.requests.Load()
	k.compute(service)
	if n := k.requests.Load() - before; n != 2 {
		t.Errorf("%d requests and not 2", n)
	}
	server := &appsv1.Deployment{}
	if err := k.user.Get(t.Context(), client.ObjectKey{Namespace: k.namespace, Name: "server"}, server); err != nil {
		t.Fatal(err)
	}
	server.Spec.Replicas = pointer(int32(3))
	server.Spec.Template.Spec.Containers[0].Image = "other"
	if err := k.user.Update(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	said := text(k.compute(service).Drift)
	if !strings.Contains(said, "image") || strings.Contains(said, "replicas") {
		t.Errorf("the drift is:\n%s", said)
	}
}

func TestWhatIsSetToNothingIsDriftWhereItIsMissing(t *testing.T) {
	k := newKit(t, helm.Config{})
	service := k.service(pageChart("1.0.0").with("templates/policy.yaml", `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: own}
spec: {podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}
`))
	equal(t, "drift", summary(k.settle(service).Drift), nil)
	policy := &networkingv1.NetworkPolicy{}
	if err := k.user.Get(t.Context(), client.ObjectKey{Namespace: k.namespace, Name: "own"}, policy); err != nil {
		t.Fatal(err)
	}
	policy.Spec.Ingress[0].From[0] = networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{}}
	if err := k.user.Update(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	equal(t, "drift", summary(k.compute(service).Drift), []string{"update NetworkPolicy own"})
}

func TestAServiceInTheModeOneTimeStaysAsItWasPutThere(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.settle(k.service(pageChart("1.0.0"), mode(v1alpha1.SyncModeOneTime)))
	result := k.compute(k.service(pageChart("1.1.0"), mode(v1alpha1.SyncModeOneTime)))
	if len(result.Changes) > 0 || result.Found.Version != "1.0.0" || len(result.Notes) != 1 {
		t.Errorf("it is %+v", result)
	}
}

func TestAnUnreachableRegistryChangesNothingForWhatIsThere(t *testing.T) {
	k := newKit(t, helm.Config{})
	service := k.service(pageChart("1.0.0"))
	k.settle(service)
	broken := *service
	broken.Source = source{err: context.DeadlineExceeded}
	if result := k.compute(&broken); result.Health.Phase != v1alpha1.ServiceStateDeployed || len(result.Changes) > 0 {
		t.Errorf("it is %+v", result)
	}
	next := k.service(pageChart("1.1.0"))
	next.Source = source{err: context.DeadlineExceeded}
	result, err := k.carrier.Compute(t.Context(), k.cluster, k.cluster.client, next)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
	if result == nil || result.Health.Phase != v1alpha1.ServiceStateDeployed || result.Found.Version != "1.0.0" {
		t.Errorf("what is there is not told: %+v", result)
	}
}

func TestAnObjectThatIsToBeKeptStays(t *testing.T) {
	for _, annotation := range []string{"helm.sh/resource-policy: keep", carrier.PruneAnnotation + ": disabled"} {
		t.Run(strings.ReplaceAll(annotation, "/", "_"), func(t *testing.T) {
			k := newKit(t, helm.Config{})
			kept := strings.Replace(extraTemplate, "data: {}", "  annotations: {"+annotation+"}\ndata: {}", 1)
			k.settle(k.service(pageChart("1.0.0").with("templates/extra.yaml", kept)))
			k.settle(k.service(pageChart("1.1.0")))
			if k.configMap("web-extra") == nil {
				t.Error("an upgrade has deleted it")
			}
			k.settle(k.service(pageChart("1.2.0").with("templates/extra.yaml", kept)))
			k.edit("web-extra", `{"metadata":{"annotations":{"helm.sh/resource-policy":null,"services.operatorkit.io/prune":null}}}`)
			k.eventually(k.service(nil, gone), "the release is gone", func(r *carrier.Result) bool { return r.Found == nil })
			if k.configMap("web-extra") == nil {
				t.Error("the removal has deleted it")
			}
		})
	}
}

func TestWhatAFailedRevisionHasLeftIsDeletedWithTheNext(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.settle(k.service(pageChart("1.0.0").with("templates/first.yaml", strings.ReplaceAll(extraTemplate, "-extra", "-first"))))
	bad := k.service(pageChart("1.1.0").with("templates/a.yaml", extraTemplate).with("templates/z.yaml", strings.ReplaceAll(extraTemplate, "-extra", "-last")))
	result := k.compute(bad)
	k.faults.On(func(r operatortest.Request) bool { return r.Verb == "patch" && r.Name == "web-last" }, operatortest.InternalError())
	says(t, k.carrier.CarryOut(t.Context(), k.cluster, bad, result), "apply ConfigMap "+k.namespace+"/web-last")
	if k.configMap("web-extra") == nil {
		t.Fatal("the failed revision has left nothing")
	}
	next := k.service(pageChart("1.2.0"))
	result = k.compute(next)
	want := []string{"update ConfigMap web-page", "delete ConfigMap web-extra", "delete ConfigMap web-first"}
	equal(t, "the plan", objectsIn(result.Changes), want)
	objects, _ := k.done(next, result)
	equal(t, "what was done", objects, want)
	if k.configMap("web-extra") != nil {
		t.Error("it is there still")
	}
}

func TestUninstallTakesAwayAServiceThatStaysListed(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.settle(k.service(pageChart("1.0.0")))
	off := k.service(pageChart("1.0.0"), func(s *carrier.Service) { s.Entry.HelmAction = v1alpha1.HelmActionUninstall })
	result := k.eventually(off, "it is gone", func(r *carrier.Result) bool { return r.Found == nil })
	equal(t, "health", result.Health, carrier.Health{Phase: v1alpha1.ServiceStateDeleted})
	equal(t, "helm list", k.listed(), nil)
}

func TestARemovalWaitsUntilItsObjectsAreGone(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.settle(k.service(pageChart("1.0.0")))
	k.edit("web-page", `{"metadata":{"finalizers":["example.com/wait"]}}`)
	removal := k.service(nil, gone)
	result := k.settle(removal)
	if result.Found == nil || result.Health.Phase != v1alpha1.ServiceStateDeleting || !strings.Contains(result.Health.Message, "web-page") {
		t.Errorf("it is %+v", result)
	}
	equal(t, "the revisions", k.statuses("web"), []string{"1 uninstalled"})
	again := k.service(pageChart("1.0.0"))
	if result := k.compute(again); len(result.Changes) > 0 || !strings.Contains(result.Health.Message, "waits until ConfigMap") {
		t.Errorf("it does not wait for what is going: %+v", result)
	}
	k.edit("web-page", `{"metadata":{"finalizers":null}}`)
	k.eventually(removal, "it is gone", func(r *carrier.Result) bool { return r.Found == nil })
}
