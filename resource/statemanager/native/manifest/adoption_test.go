package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

func adopting(s *carrier.Service) { s.Entry.Adopt = true }

// others puts a ConfigMap there with each of the tools that are known, named after it, with an entry that the service does not have.
func (k *kit) others() map[string]types.UID {
	k.t.Helper()
	uids := map[string]types.UID{}
	for _, tool := range []struct{ name, metadata, manager string }{
		{"flux", `"labels":{"kustomize.toolkit.fluxcd.io/name":"infra","kustomize.toolkit.fluxcd.io/namespace":"flux"}`, "kustomize-controller"},
		{"argo", `"annotations":{"argocd.argoproj.io/tracking-id":"shop:x"}`, "argocd-controller"},
		{"kubectl", `"labels":{}`, "kubectl"},
	} {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: tool.name}}
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":%q,%s},"data":{"text":"1","old":"x"}}`,
			tool.name, k.namespace, tool.metadata)
		if err := k.user.Patch(k.t.Context(), object, client.RawPatch(types.ApplyPatchType, []byte(body)), client.FieldOwner(tool.manager)); err != nil {
			k.t.Fatal(err)
		}
		uids[tool.name] = object.UID
	}
	plain := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: k.namespace, Name: "client-side",
			Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"},
		},
		Data: map[string]string{"text": "1", "old": "x"},
	}
	if err := k.user.Create(k.t.Context(), plain, client.FieldOwner("kubectl-client-side-apply")); err != nil {
		k.t.Fatal(err)
	}
	uids[plain.Name] = plain.UID
	return uids
}

// ofOthers are manifests for these, and one of its own.
func ofOthers(text string) files {
	all := files{"own.yaml": configMap("own", text)}
	for _, name := range []string{"flux", "argo", "kubectl", "client-side"} {
		all[name+".yaml"] = configMap(name, text)
	}
	return all
}

func TestObjectsOfOthersAreTakenOverAsTheyAreWhenAskedFor(t *testing.T) {
	k := newKit(t)
	uids := k.others()
	_ = k.refused(k.service(ofOthers("1")))
	service := k.service(ofOthers("1"), adopting)
	result := k.compute(service)
	k.wants(result.Changes, "update ConfigMap argo", "update ConfigMap client-side", "update ConfigMap flux", "update ConfigMap kubectl")
	for _, change := range result.Changes {
		if !strings.Contains(change.Description, "taken over as it is") {
			t.Errorf("the plan says %q of %s", change.Description, change.Object)
		}
		for _, field := range change.Fields {
			if !strings.Contains(field.Path, "services.operatorkit.io/") {
				t.Errorf("the plan changes %s of %s", field.Path, change.Object)
			}
		}
	}
	if len(result.Notes) > 0 {
		t.Errorf("they are as they should be, but: %q", result.Notes)
	}
	k.carryOut(service, result)
	for name := range uids {
		if is := k.configMap(name); is.Data["text"] != "1" || is.Data["old"] != "x" || !service.Owner.Marked(is) {
			t.Errorf("%s is %v with the labels %v", name, is.Data, is.Labels)
		}
	}

	// What the service does not have goes with the first application, marks of the others too, and so does the plan say.
	result = k.compute(service)
	if said := textOf(result.Changes); strings.Count(said, "data.old") != len(uids) || !strings.Contains(said, "kustomize.toolkit.fluxcd.io/name") {
		t.Errorf("the plan is\n%s", said)
	}
	k.settle(service)
	for name, uid := range uids {
		if is := k.configMap(name); is.UID != uid || len(is.Data) != 1 || is.Labels["kustomize.toolkit.fluxcd.io/name"] != "" || len(is.Annotations) != 1 {
			t.Errorf("%s is %v with the labels %v and the annotations %v", name, is.Data, is.Labels, is.Annotations)
		}
	}
	k.settle(k.service(ofOthers("2"), adopting))
	if got := k.configMap("flux").Data["text"]; got != "2" {
		t.Errorf("the text is %s", got)
	}
}

func TestWhatDiffersIsSaidBeforeItIsTakenOver(t *testing.T) {
	k := newKit(t)
	k.others()
	service := k.service(ofOthers("2"), adopting)
	result := k.compute(service)
	if said := strings.Join(result.Notes, "\n"); !strings.Contains(said, "ConfigMap "+k.namespace+"/flux gets another data.text when it is taken over") {
		t.Errorf("the notes are\n%s", said)
	}
	k.carryOut(service, result)
	if got := k.configMap("flux").Data["text"]; got != "1" {
		t.Errorf("the text is %s already", got)
	}
	k.settle(service)
	if got := k.configMap("flux").Data["text"]; got != "2" {
		t.Errorf("the text is %s", got)
	}
}

func TestWhatControllersReleasesAndServicesHaveIsNotTakenOver(t *testing.T) {
	k := newKit(t)
	k.settle(k.service(files{"a.yaml": configMap("of-service", "1")}, named("first")))
	controlled := true
	boss := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "boss"}}
	k.create(boss)
	for name, metadata := range map[string]metav1.ObjectMeta{
		"of-release":    {Annotations: map[string]string{"meta.helm.sh/release-name": "redis"}},
		"of-controller": {OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "boss", UID: boss.UID, Controller: &controlled}}},
	} {
		metadata.Namespace, metadata.Name = k.namespace, name
		k.create(&corev1.ConfigMap{ObjectMeta: metadata})
	}
	for _, name := range []string{"of-service", "of-release", "of-controller"} {
		if err := k.refused(k.service(files{"x.yaml": configMap(name, "1")}, adopting)); !carrier.IsConflict(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTakingObjectsOverEndsWellAfterACrashAtEveryWrite(t *testing.T) {
	for n := 1; ; n++ {
		k := newKit(t)
		uids := k.others()
		rule := k.faults.At(k.faults.Count()+n, operatortest.InternalError())
		service := k.service(ofOthers("1"), adopting)
		for rule.Hits() == 0 {
			result := k.compute(service)
			if len(result.Changes) == 0 {
				break
			}
			_ = k.carrier.CarryOut(t.Context(), k.cluster, service, result)
		}
		k.settle(service)
		for name, uid := range uids {
			if is := k.configMap(name); is.UID != uid || len(is.Data) != 1 || !service.Owner.Marked(is) {
				t.Errorf("after write %d %s is %v with the labels %v", n, name, is.Data, is.Labels)
			}
		}
		if rule.Hits() == 0 {
			return
		}
	}
}

// TestTheWayBackOfObjects is what the documentation of package native says.
func TestTheWayBackOfObjects(t *testing.T) {
	k := newKit(t)
	uids := k.others()
	service := k.service(ofOthers("1"), adopting)
	k.settle(service)
	for name := range uids {
		k.patch(k.configMap(name), `{"metadata":{"annotations":{"services.operatorkit.io/prune":"disabled"}}}`)
	}
	k.settle(gone(service))
	for name, uid := range uids {
		if is := k.configMap(name); is.UID != uid || is.Data["text"] != "1" || service.Owner.Marked(is) {
			t.Errorf("%s is %v with the labels %v", name, is.Data, is.Labels)
		}
	}
	if k.exists("own", &corev1.ConfigMap{}) {
		t.Error("what had no annotation is left")
	}
}
