package manifest_test

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// pod is a Deployment with fields of a pod.
func pod(fields string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: refused}\nspec: {selector: {matchLabels: {app: c}}, " +
		"template: {metadata: {labels: {app: c}}, spec: {" + fields + "}}}\n"
}

func TestWhatACreationWouldBeRefusedForIsFoundByThePlan(t *testing.T) {
	k := newKit(t)
	for name, refusal := range map[string]struct{ object, says string }{
		"two variables of one name":   {pod("containers: [{name: c, image: c, env: [{name: A, value: a}, {name: A, value: b}]}]"), "duplicate"},
		"two ports of one number":     {pod("containers: [{name: c, image: c, ports: [{containerPort: 80}, {containerPort: 80, name: b}]}]"), "duplicate"},
		"a number in place of text":   {pod("containers: [{name: c, image: c, env: [{name: A, value: 1}]}]"), "env"},
		"a text in place of a number": {pod("terminationGracePeriodSeconds: soon, containers: [{name: c, image: c}]"), "terminationGracePeriodSeconds"},
		"an unknown field":            {pod("containers: [{name: c, picture: c}]"), "picture"},
		"a value out of its range":    {pod("containers: [{name: c, image: c, ports: [{containerPort: 99999}]}]"), "containerPort"},
	} {
		t.Run(name, func(t *testing.T) {
			k := *k
			k.t = t
			s := k.service(files{"a.yaml": configMap("a", "1"), "b.yaml": refusal.object})
			spaces := []string{k.namespace}
			if !strings.Contains(name, "range") {
				spaces = append(spaces, k.namespace+"-none")
			}
			for _, s.Key.Namespace = range spaces {
				if err := k.refused(s); !strings.Contains(err.Error(), refusal.says) || !strings.Contains(err.Error(), "create Deployment.apps "+s.Key.Namespace+"/refused of b.yaml") {
					t.Errorf("the error is %v", err)
				}
			}
		})
	}
}

func TestWhatIsRefusedInANewNamespaceIsFoundBeforeTheRestIsApplied(t *testing.T) {
	k := newKit(t)
	s := k.service(files{"a.yaml": configMap("a", "1"), "b.yaml": pod("containers: [{name: c, image: c, ports: [{containerPort: 99999}]}]")})
	s.Key.Namespace = k.namespace + "-new"
	err := k.carrier.CarryOut(t.Context(), k.cluster, s, k.compute(s))
	if err == nil || !strings.Contains(err.Error(), "containerPort") {
		t.Errorf("the error is %v", err)
	}
	if err := k.user.Get(t.Context(), keyOf(s.Key.Namespace, "a"), &corev1.ConfigMap{}); err == nil {
		t.Error("an object is there")
	}
	_ = k.refused(s)
}

// gadgets defines a kind in versions of which each has these fields, all of them integers.
func (k *kit) gadgets(versions ...[]string) string {
	text := fmt.Sprintf("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gadgets.%[1]s.example.com}\nspec:\n"+
		"  group: %[1]s.example.com\n  scope: Namespaced\n  names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}\n  versions:\n", k.namespace)
	for i, fields := range versions {
		var properties []string
		for _, field := range fields {
			properties = append(properties, field+": {type: integer}")
		}
		text += fmt.Sprintf("  - {name: v%d, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%s}}}}}}\n",
			i+1, i == 0, strings.Join(properties, ", "))
	}
	return text
}

func (k *kit) gadget(name, version, field string, value any) string {
	return fmt.Sprintf("apiVersion: %s.example.com/%s\nkind: Gadget\nmetadata: {name: %s}\nspec: {%s: %v}\n", k.namespace, version, name, field, value)
}

// late are the changes of a plan that could not be tried out.
func late(r *carrier.Result) string {
	var lines []string
	for _, c := range r.Changes {
		if c.Description == carrier.AfterDefinition {
			lines = append(lines, fmt.Sprintf("%s %s", c.Action, c.Object.Name))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

func TestADefinitionAndWhatItDefinesChangeTogether(t *testing.T) {
	k := newKit(t)
	field := func(name, version, field string) any {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": k.namespace + ".example.com/" + version, "kind": "Gadget"}}
		value, _, _ := unstructured.NestedFieldNoCopy(fetchAs(k, name, u).Object, "spec", field)
		return value
	}
	service := func(definition string, objects ...string) *carrier.Service {
		return k.service(files{"a.yaml": strings.Join(objects, "---\n"), "b.yaml": definition, "c.yaml": configMap("c", definition)})
	}
	wants := func(s *carrier.Service, want string) {
		t.Helper()
		if got := late(k.compute(s)); got != want {
			t.Errorf("%q can't be tried out, want %q", got, want)
		}
	}
	first := service(k.gadgets([]string{"size"}), k.gadget("one", "v1", "size", 1))
	wants(first, "create one")
	k.settle(first)
	second := service(k.gadgets([]string{"size", "color"}), k.gadget("one", "v1", "color", 2), k.gadget("two", "v1", "color", 3))
	wants(second, "create two, update one")
	k.carryOut(second, k.compute(second))
	k.wants(k.compute(second).Changes)
	if size, color := field("one", "v1", "size"), field("one", "v1", "color"); size != nil || color != int64(2) {
		t.Errorf("the old field is %v, and the new one %v", size, color)
	}
	third := service(k.gadgets([]string{"size", "color"}, []string{"size", "color"}), k.gadget("one", "v2", "color", 4), k.gadget("two", "v1", "color", 3))
	wants(third, "update one")
	k.carryOut(third, k.compute(third))
	k.wants(k.compute(third).Changes)
	if color := field("one", "v2", "color"); color != int64(4) {
		t.Errorf("the field of the new version is %v", color)
	}
	// What the new schema does not take is found when it is there, before anything else is touched, and by each plan then.
	before := k.configMap("c").Data["text"]
	narrow := service(k.gadgets([]string{"color"}, []string{"color"}), k.gadget("one", "v2", "color", 4), k.gadget("two", "v1", "fine", 1))
	if err := k.carrier.CarryOut(t.Context(), k.cluster, narrow, k.compute(narrow)); err == nil || !strings.Contains(err.Error(), "/two of a.yaml") {
		t.Errorf("the error is %v", err)
	}
	if k.configMap("c").Data["text"] != before {
		t.Error("another object is changed")
	}
	_ = k.refused(narrow)
	k.settle(service(k.gadgets([]string{"color"}, []string{"color"}), k.gadget("two", "v1", "color", 5)))
	if color := field("two", "v1", "color"); color != int64(5) {
		t.Errorf("the field at last is %v", color)
	}
}

func TestAnInventoryThatIsTooLargeIsRefusedBeforeAnythingIsMade(t *testing.T) {
	k := newKit(t)
	content, random := files{}, make([]byte, 90)
	for range 4000 {
		if _, err := rand.Read(random); err != nil {
			t.Fatal(err)
		}
		content["a.yaml"] += "---\n" + configMap("a"+hex.EncodeToString(random), "1")
	}
	s := k.service(content)
	if err := k.refused(s); !framework.IsPermanent(err) || !strings.Contains(err.Error(), "its inventory would have") || !strings.Contains(err.Error(), "1032192") {
		t.Errorf("the error is %v", err)
	}
}

// TestWhatCanNotBeChangedOfEachKind has the fields of each kind that API servers never change, and are created with another value.
func TestWhatCanNotBeChangedOfEachKind(t *testing.T) {
	k := newKit(t)
	selected := "spec: {selector: {matchLabels: {app: %s}}, template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: c, image: c}]}}}"
	for kind, tt := range map[string]struct{ object, one, two string }{
		"ConfigMap.v1":                             {"immutable: true, data: {a: %s}", "b", "c"},
		"Secret.v1":                                {"immutable: true, stringData: {a: %s}", "b", "c"},
		"Secret.v1 by type":                        {"type: %s", "example.com/a", "example.com/b"},
		"Service.v1":                               {"spec: {clusterIP: %s, ports: [{port: 80}]}", `""`, "None"},
		"Service.v1 by class":                      {"spec: {type: LoadBalancer, loadBalancerClass: %s, ports: [{port: 80}]}", "example.com/a", "example.com/b"},
		"PersistentVolumeClaim.v1":                 {"spec: {accessModes: [%s], resources: {requests: {storage: 1Gi}}}", "ReadWriteOnce", "ReadWriteMany"},
		"Pod.v1":                                   {"spec: {containers: [{name: c, image: c, command: [%s]}]}", "a", "b"},
		"ResourceQuota.v1":                         {"spec: {hard: {pods: 1}, scopes: [%s]}", "BestEffort", "NotBestEffort"},
		"PersistentVolume.v1":                      {"spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, hostPath: {path: %s}}", "/a", "/b"},
		"Deployment.apps/v1":                       {selected, "a", "b"},
		"ReplicaSet.apps/v1":                       {selected, "a", "b"},
		"DaemonSet.apps/v1":                        {selected, "a", "b"},
		"StatefulSet.apps/v1":                      {selected, "a", "b"},
		"StatefulSet.apps/v1 by name":              {"spec: {serviceName: %s, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: c}]}}}", "a", "b"},
		"Job.batch/v1":                             {"spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: %s}]}}}", "a", "b"},
		"Job.batch/v1 by completions":              {"spec: {completions: %s, template: {spec: {restartPolicy: Never, containers: [{name: c, image: a}]}}}", "1", "2"},
		"RoleBinding.rbac.authorization.k8s.io/v1": {"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %s}", "a", "b"},
		"ClusterRoleBinding.rbac.authorization.k8s.io/v1": {"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}", "a", "b"},
		"StorageClass.storage.k8s.io/v1":                  {"provisioner: example.com/%s", "a", "b"},
		"StorageClass.storage.k8s.io/v1 by policy":        {"provisioner: example.com/a, reclaimPolicy: %s", "Delete", "Retain"},
		"CSIDriver.storage.k8s.io/v1":                     {"spec: {attachRequired: %s}", "true", "false"},
		"IngressClass.networking.k8s.io/v1":               {"spec: {controller: example.com/%s}", "a", "b"},
		"PriorityClass.scheduling.k8s.io/v1":              {"value: %s", "1", "2"},
		"PriorityClass.scheduling.k8s.io/v1 by policy":    {"value: 1, preemptionPolicy: %s", "Never", "PreemptLowerPriority"},
		"RuntimeClass.node.k8s.io/v1":                     {"handler: %s", "a", "b"},
		"EndpointSlice.discovery.k8s.io/v1":               {"addressType: %s, endpoints: []", "IPv4", "IPv6"},
	} {
		t.Run(kind, func(t *testing.T) {
			k := *k
			k.t = t
			gvk, field, _ := strings.Cut(kind, " ")
			short, version, _ := strings.Cut(gvk, ".")
			name := strings.ToLower(k.namespace[len(k.namespace)-5:] + "-" + short + strings.ReplaceAll(field, " ", "-"))
			object := func(value string) files {
				return files{"a.yaml": fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: %s}, ", version, short, name) + fmt.Sprintf(tt.object, value) + "}\n"}
			}
			k.settle(k.service(object(tt.one), named(name)))
			if strings.HasPrefix(short, "PersistentVolume") {
				// Nothing takes the finalizers away here that their admission adds.
				stored := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: short}}
				stored.Namespace, stored.Name = k.namespace, name
				if short == "PersistentVolume" {
					stored.Namespace = ""
				}
				k.patch(stored, `{"metadata":{"finalizers":null}}`)
			}
			if err := k.refused(k.service(object(tt.two), named(name))); !framework.IsPermanent(err) || !strings.Contains(err.Error(), "name its kind in replaceKinds") {
				t.Errorf("without replaceKinds the error is %v", err)
			}
			next := k.service(object(tt.two), named(name), func(s *carrier.Service) { s.Config.ReplaceKinds = []string{short} })
			result := k.compute(next)
			k.wants(result.Changes, "delete "+short+" "+name, "create "+short+" "+name)
			operatortest.Eventually(t, "it is replaced", func() error {
				if result := k.compute(next); len(result.Changes) > 0 {
					return k.carrier.CarryOut(t.Context(), k.cluster, next, result)
				}
				return nil
			})
			k.wants(k.compute(next).Changes)
			k.settle(gone(next))
		})
	}
}

func TestARuleOfADefinitionThatForbidsAChangeIsSeen(t *testing.T) {
	k := newKit(t)
	definition := strings.Replace(k.gadgets([]string{"size", "color", "shape"}), "properties: {size: {type: integer}, color: {type: integer}, shape: {type: integer}}",
		"properties: {size: {type: integer, x-kubernetes-validations: [{rule: self == oldSelf, message: Value is immutable}]}, "+
			"color: {type: integer, x-kubernetes-validations: [{rule: self == oldSelf}]}, "+
			"shape: {type: integer, x-kubernetes-validations: [{rule: self >= oldSelf, message: it must not shrink}]}}", 1)
	for _, field := range []string{"size", "color", "shape"} {
		service := func(value int, options ...option) *carrier.Service {
			return k.service(files{"a.yaml": definition, "b.yaml": k.gadget(field, "v1", field, value)}, options...)
		}
		k.settle(service(2))
		err := k.refused(service(1))
		if advises := strings.Contains(err.Error(), "name its kind in replaceKinds"); advises != (field != "shape") {
			t.Errorf("%s: the error is %v", field, err)
		}
		next := service(1, func(s *carrier.Service) { s.Config.ReplaceKinds = []string{"Gadget"} })
		k.wants(k.compute(next).Changes, "delete Gadget "+field, "create Gadget "+field)
		k.settle(next)
	}
}

func TestARightThatIsMissingIsFoundByThePlan(t *testing.T) {
	k := newKit(t)
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets", "configmaps", "namespaces"}, Verbs: []string{"*"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list", "watch", "patch"}},
	}
	k.create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "robot"}, Rules: rules})
	k.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "robot"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "robot"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: k.namespace + "-robot"}},
	})
	cfg := rest.CopyConfig(k.cluster.RESTConfig())
	cfg.Impersonate.UserName = k.namespace + "-robot"
	var err error
	if k.cluster, err = newCluster(cfg); err != nil {
		t.Fatal(err)
	}
	s := k.service(files{"a.yaml": configMap("a", "1"), "b.yaml": pod("containers: [{name: c, image: c}]")}, func(s *carrier.Service) { s.Account = &client.ObjectKey{} })
	operatortest.Eventually(t, "the rights are known", func() bool {
		return apierrors.IsNotFound(k.cluster.client.Get(t.Context(), keyOf(k.namespace, "refused"), &appsv1.Deployment{}))
	})
	if err := k.refused(s); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "cannot create resource") {
		t.Errorf("the error is %v", err)
	}
}
