package helm_test

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

// refusals are objects that an API server does not create, each for another reason, with what its answer says.
var refusals = map[string]struct{ object, says string }{
	"two variables of one name":   {workload("containers: [{name: c, image: c, env: [{name: A, value: a}, {name: A, value: b}]}]"), "duplicate"},
	"two ports of one number":     {workload("containers: [{name: c, image: c, ports: [{containerPort: 80}, {containerPort: 80, name: b}]}]"), "duplicate"},
	"two mounts at one path":      {workload("containers: [{name: c, image: c, volumeMounts: [{name: v, mountPath: /a}, {name: v, mountPath: /a}]}], volumes: [{name: v, emptyDir: {}}]"), "duplicate"},
	"a number in place of text":   {workload("containers: [{name: c, image: c, env: [{name: A, value: 1}]}]"), "env"},
	"a text in place of a number": {workload("terminationGracePeriodSeconds: soon, containers: [{name: c, image: c}]"), "terminationGracePeriodSeconds"},
	"a map in place of a list":    {workload("containers: {name: c, image: c}"), "containers"},
	"an unknown field":            {workload("containers: [{name: c, picture: c}]"), "picture"},
	"a value out of its range":    {workload("containers: [{name: c, image: c, ports: [{containerPort: 99999}]}]"), "containerPort"},
}

// workload is a Deployment with fields of a pod.
func workload(pod string) string {
	return `apiVersion: apps/v1
kind: Deployment
metadata: {name: refused}
spec: {selector: {matchLabels: {app: c}}, template: {metadata: {labels: {app: c}}, spec: {` + pod + "}}}\n"
}

// asHook is a Job with the pod of a workload, as a hook.
func asHook(workload string) string {
	job := strings.Replace(workload, "apps/v1", "batch/v1", 1)
	job = strings.Replace(job, "kind: Deployment", "kind: Job", 1)
	job = strings.Replace(job, "{name: refused}", `{name: refused, annotations: {helm.sh/hook: "pre-install,post-upgrade"}}`, 1)
	return strings.Replace(strings.Replace(job, "selector: {matchLabels: {app: c}}, ", "", 1), "spec: {containers", "spec: {restartPolicy: Never, containers", 1)
}

func TestWhatACreationWouldBeRefusedForIsFoundByThePlan(t *testing.T) {
	k := newKit(t, helm.Config{})
	first, fresh := k.service(pageChart("1.0.0")), k.namespace+"-none"
	k.settle(k.service(pageChart("1.0.0"), named("standing")))
	for name, refusal := range refusals {
		t.Run(name, func(t *testing.T) {
			k := *k
			k.t = t
			for what, object := range map[string]string{"an object": refusal.object, "a hook": asHook(refusal.object)} {
				chart := jobChart(`{"helm.sh/hook": "pre-install,pre-upgrade"}`).with("templates/refused.yaml", object)
				before := k.faults.Count()
				k.fails(k.service(chart), refusal.says)
				k.fails(k.service(chart, named("standing"), takenBack(time.Hour)), refusal.says)
				if !strings.Contains(name, "range") {
					k.fails(serviceIn(t, fresh, chart), refusal.says)
				}
				if n := k.faults.Count() - before; n != 0 {
					t.Errorf("%s: planning wrote %d times", what, n)
				}
			}
		})
	}
	k.settle(first)
}

func TestAHookThatIsThereAndCanNotBeChangedIsNoReasonAgainstTheNext(t *testing.T) {
	k := newKit(t, helm.Config{})
	hook := func(image string) files {
		return pageChart("1.0.0").with("templates/refused.yaml",
			strings.Replace(asHook(workload("containers: [{name: c, image: "+image+"}]")), "pre-install,post-upgrade", "post-install,post-upgrade", 1))
	}
	k.carryOut(k.service(hook("one")), k.compute(k.service(hook("one"))))
	if err := k.user.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: releasePrefix + "web.v1"}}); err != nil {
		t.Fatal(err)
	}
	if result := k.compute(k.service(hook("two"))); len(result.Changes) == 0 {
		t.Errorf("nothing is planned: %+v", result.Health)
	}
}

func TestAnAtomicUpgradeThatFailsAndCanNotBePlannedAgainIsTakenBack(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.settle(k.service(pageChart("1.0.0"), takenBack(time.Hour)))
	k.settle(k.service(pageChart("1.0.0"), takenBack(time.Hour)))
	before := k.configMap("web-page").Data
	next := k.service(pageChart("2.0.0").with("templates/page.yaml", pageTemplate+"  more: here\n").
		with("templates/zextra.yaml", extraTemplate), takenBack(time.Hour))
	k.faults.On(func(r operatortest.Request) bool { return r.Name == "web-extra" && !r.DryRun && r.Method == "PATCH" }, operatortest.InternalError()).Times(1)
	if err := k.carrier.CarryOut(t.Context(), k.cluster, next, k.compute(next)); err == nil {
		t.Fatal("it does not fail")
	}
	equal(t, "the revisions", k.statuses("web"), []string{"1 deployed", "2 failed"})
	refused := k.service(pageChart("3.0.0").with("templates/refused.yaml", refusals["two variables of one name"].object), takenBack(time.Hour))
	result := k.settle(refused)
	equal(t, "the revisions", k.statuses("web"), []string{"1 superseded", "2 failed", "3 deployed"})
	equal(t, "what the upgrade has changed", k.configMap("web-page").Data, before)
	if result.Health.Phase != v1alpha1.ServiceStateFailed || !strings.Contains(result.Health.Message, "duplicate") {
		t.Errorf("it is %+v", result.Health)
	}
}

// gadgets defines a kind in versions of which each has these fields, all of them integers.
func gadgets(group string, versions ...[]string) string {
	text := fmt.Sprintf("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gadgets.%[1]s}\nspec:\n"+
		"  group: %[1]s\n  scope: Namespaced\n  names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}\n  versions:\n", group)
	for i, fields := range versions {
		var properties []string
		for _, field := range fields {
			properties = append(properties, field+": {type: integer, maximum: 9}")
		}
		text += fmt.Sprintf("  - {name: v%d, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%s}}}}}}\n",
			i+1, i == 0, strings.Join(properties, ", "))
	}
	return text
}

func gadget(group, name, version, field string, value any) string {
	return fmt.Sprintf("apiVersion: %s/%s\nkind: Gadget\nmetadata: {name: %s}\nspec: {%s: %v}\n", group, version, name, field, value)
}

// late are the changes of a plan that could not be tried out.
func late(result *carrier.Result) []string {
	var lines []string
	for _, c := range result.Changes {
		if c.Description == carrier.AfterDefinition {
			lines = append(lines, string(c.Action)+" "+c.Object.Kind+" "+c.Object.Name)
		}
	}
	slices.Sort(lines)
	return lines
}

func (k *kit) gadgetField(group, name, version, field string) any {
	k.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/" + version, "kind": "Gadget"}}
	if err := k.user.Get(k.t.Context(), client.ObjectKey{Namespace: k.namespace, Name: name}, u); err != nil {
		return err.Error()
	}
	value, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", field)
	return value
}

func TestADefinitionAndWhatItDefinesChangeTogether(t *testing.T) {
	for place, folder := range map[string]string{"crds": "crds/", "templates": "templates/"} {
		t.Run(place, func(t *testing.T) {
			k := newKit(t, helm.Config{})
			group := k.namespace + "." + place + ".example.com"
			chart := func(definition string, objects ...string) files {
				return pageChart("1.0.0").with(folder+"gadgets.yaml", definition).with("templates/gadget.yaml", strings.Join(objects, "---\n"))
			}
			first := k.service(chart(gadgets(group, []string{"size"}), gadget(group, "one", "v1", "size", 1)))
			equal(t, "what can't be tried out", late(k.compute(first)), []string{"create Gadget one"})
			k.settle(first)
			second := k.service(chart(gadgets(group, []string{"size", "color"}), gadget(group, "one", "v1", "color", 2), gadget(group, "two", "v1", "color", 3)))
			equal(t, "what can't be tried out", late(k.compute(second)), []string{"create Gadget two", "update Gadget one"})
			k.settle(second)
			equal(t, "the new field", k.gadgetField(group, "one", "v1", "color"), any(int64(2)))
			equal(t, "the old field", k.gadgetField(group, "one", "v1", "size"), any(nil))
			equal(t, "the new field of a new object", k.gadgetField(group, "two", "v1", "color"), any(int64(3)))
			third := k.service(chart(gadgets(group, []string{"size", "color"}, []string{"size", "color"}), gadget(group, "one", "v2", "color", 4), gadget(group, "two", "v1", "color", 3)))
			equal(t, "what can't be tried out", late(k.compute(third)), []string{"update Gadget one"})
			k.settle(third)
			equal(t, "the field of the new version", k.gadgetField(group, "one", "v2", "color"), any(int64(4)))
			// What the new schema does not take is found when it is there, before anything else of the release is touched, and by each plan then.
			narrow := k.service(chart(gadgets(group, []string{"color"}, []string{"color"}), gadget(group, "one", "v2", "color", 4), gadget(group, "two", "v1", "fine", 10)))
			result := k.compute(narrow)
			err := k.carrier.CarryOut(t.Context(), k.cluster, narrow, result)
			says(t, err, "Gadget "+k.namespace+"/two", "fine")
			k.fails(narrow, "Gadget "+k.namespace+"/two", "fine")
			k.settle(k.service(chart(gadgets(group, []string{"color"}, []string{"color"}), gadget(group, "one", "v2", "color", 5), gadget(group, "two", "v1", "color", 9))))
			equal(t, "the field at last", k.gadgetField(group, "two", "v1", "color"), any(int64(9)))
		})
	}
}

func TestAnAtomicUpgradeWhoseNewDefinitionRefusesItsObjectsIsTakenBack(t *testing.T) {
	k := newKit(t, helm.Config{})
	group := k.namespace + ".refused.example.com"
	k.settle(k.service(pageChart("1.0.0"), takenBack(time.Hour)))
	k.settle(k.service(pageChart("1.0.0"), takenBack(time.Hour)))
	next := k.service(pageChart("2.0.0").with("templates/gadgets.yaml", gadgets(group, []string{"size"})).
		with("templates/gadget.yaml", gadget(group, "one", "v1", "size", "large")).with("templates/extra.yaml", extraTemplate), takenBack(time.Hour))
	err := k.carrier.CarryOut(t.Context(), k.cluster, next, k.compute(next))
	says(t, err, "Gadget "+k.namespace+"/one", "size")
	equal(t, "the revisions", k.statuses("web"), []string{"1 superseded", "2 failed", "3 deployed"})
	if k.configMap("web-extra") != nil {
		t.Error("an object of what was taken back is there still")
	}
}

func TestDefinitionsOfAChartAreThereForItsTemplates(t *testing.T) {
	k := newKit(t, helm.Config{})
	group := k.namespace + ".seen.example.com"
	chart := pageChart("1.0.0").with("crds/gadgets.yaml", gadgets(group, []string{"size"})).with("templates/gadget.yaml",
		"{{ if and (.Capabilities.APIVersions.Has \""+group+"/v1\") (.Capabilities.APIVersions.Has \""+group+"/v1/Gadget\") }}\n"+gadget(group, "one", "v1", "size", 1)+"{{ end }}\n").
		with("templates/extra.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web-extra}\ndata: {one: {{ lookup \""+group+
			"/v1\" \"Gadget\" .Release.Namespace \"none\" | toJson | quote }}, all: {{ (lookup \""+group+"/v1\" \"Gadget\" .Release.Namespace \"\").items | len | quote }}}\n")
	service := k.service(chart)
	equal(t, "the plan", summary(k.compute(service).Changes), []string{"create CustomResourceDefinition gadgets." + group, "create HelmRelease web",
		"create ConfigMap web-extra", "create ConfigMap web-page", "create Gadget one"})
	k.settle(service)
	equal(t, "what was looked up", k.configMap("web-extra").Data, map[string]string{"one": "{}", "all": "0"})
	equal(t, "the object", k.gadgetField(group, "one", "v1", "size"), any(int64(1)))
	// The next version of the kind is looked up in the one that the cluster has.
	next := strings.NewReplacer(group+"/v1\" \"Gadget\"", group+"/v2\" \"Gadget\"", "none", "one")
	chart = chart.with("crds/gadgets.yaml", gadgets(group, []string{"size"}, []string{"size"})).with("templates/extra.yaml", next.Replace(chart["templates/extra.yaml"]))
	k.settle(k.service(chart))
	if found := k.configMap("web-extra").Data; found["all"] != "1" || !strings.Contains(found["one"], `"size":1`) {
		t.Errorf("what is there is not found: %v", found)
	}
}

func TestAChartMayRenderTheNamespaceOfItsRelease(t *testing.T) {
	k := newKit(t, helm.Config{})
	name := k.namespace + "-own"
	chart := pageChart("1.0.0").with("templates/namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: {{ .Release.Namespace }}, labels: {tier: gold}}\n")
	service := serviceIn(t, name, chart)
	equal(t, "the plan", summary(k.compute(service).Changes), []string{"create Namespace " + name, "create HelmRelease web", "create ConfigMap web-page"})
	if result := k.settle(service); result.Health.Phase != v1alpha1.ServiceStateDeployed {
		t.Errorf("it is %+v", result.Health)
	}
	made := &corev1.Namespace{}
	if err := k.user.Get(t.Context(), client.ObjectKey{Name: name}, made); err != nil || made.Labels["tier"] != "gold" || made.Annotations["meta.helm.sh/release-name"] != "web" {
		t.Errorf("the namespace is not the release's: %v, %v", made.ObjectMeta, err)
	}
	k.settle(serviceIn(t, name, chart.with("templates/namespace.yaml", strings.Replace(chart["templates/namespace.yaml"], "gold", "iron", 1))))
	if err := k.user.Get(t.Context(), client.ObjectKey{Name: name}, made); err != nil || made.Labels["tier"] != "iron" {
		t.Errorf("the namespace is not changed: %v, %v", made.Labels, err)
	}
	// One that somebody has made is not taken.
	k.fails(k.service(chart), "Namespace "+k.namespace+" is there already and not from this release")
	k.eventually(serviceIn(t, name, nil, gone), "it is gone", func(r *carrier.Result) bool { return r.Found == nil })
}

func TestAReleaseThatIsTooLargeIsRefusedBeforeAnythingIsMade(t *testing.T) {
	k := newKit(t, helm.Config{})
	random := make([]byte, 1<<20)
	if _, err := rand.Read(random); err != nil {
		t.Fatal(err)
	}
	chart := pageChart("1.0.0").with("crds/gadgets.yaml", gadgets(k.namespace+".large.example.com", []string{"size"})).
		with("files/large.txt", base64.StdEncoding.EncodeToString(random))
	before := k.faults.Count()
	err := k.failure(serviceIn(t, k.namespace+"-none", chart), "the release has 1", "bytes compressed", "takes 1044480 at most")
	if !framework.IsPermanent(err) {
		t.Errorf("it is tried again and again: %v", err)
	}
	if n := k.faults.Count() - before; n != 0 {
		t.Errorf("planning wrote %d times", n)
	}
}

func TestAServiceWithAnotherAddressIsReplaced(t *testing.T) {
	k := newKit(t, helm.Config{})
	chart := func(ip string) files {
		return chartOf("service", "1.0.0", files{"service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: front}\n" +
			"spec: {type: NodePort, clusterIP: " + ip + ", ports: [{port: 80, nodePort: 31547}]}\n"})
	}
	k.settle(k.service(chart(`""`)))
	other := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "other"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	if err := k.user.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	free := other.Spec.ClusterIP
	if err := k.user.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	k.fails(k.service(chart(free)), "may not change once set", "replaceKinds")
	next := k.service(chart(free), replacing("Service"))
	equal(t, "the plan", summary(k.compute(next).Changes), []string{"update HelmRelease web", "delete Service front", "create Service front"})
	k.settle(next)
	front := &corev1.Service{}
	if err := k.user.Get(t.Context(), client.ObjectKey{Namespace: k.namespace, Name: "front"}, front); err != nil || front.Spec.ClusterIP != free || front.Spec.Ports[0].NodePort != 31547 {
		t.Errorf("the service is %v, %v", front.Spec, err)
	}
}
