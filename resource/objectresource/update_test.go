package objectresource_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/identity"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/resource/objectresource"
)

func TestObjectsAreCreatedUpdatedAndDeletedAsPlanned(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	var desired []client.Object
	r := k.resource(func() []client.Object { return just(desired...)() })

	desired = []client.Object{k.data("a", map[string]string{"x": "1"}), k.data("b", map[string]string{"x": "1"})}
	k.wantPlan(r, p, "create ConfigMap a", `  data.x: "1"`, "create ConfigMap b", `  data.x: "1"`)
	k.update(r, p)
	k.wantQuiet(r, p)

	desired = []client.Object{k.data("b", map[string]string{"x": "2", "y.txt": "3"}), k.data("c", nil)}
	k.wantPlan(r, p,
		"create ConfigMap c",
		"update ConfigMap b", `  data.x: "1" -> "2"`, `  data["y.txt"]: "3"`,
		"delete ConfigMap a")
	k.update(r, p)
	k.wantQuiet(r, p)

	if _, exists := k.configMap("a"); exists {
		t.Error("what is no longer desired is still there")
	}
	b, _ := k.configMap("b")
	if diff := cmp.Diff(map[string]string{"x": "2", "y.txt": "3"}, b.Data); diff != "" {
		t.Error(diff)
	}
}

// scaler is an object of a kind that is served in several versions.
func (k *kit) scaler(version schema.GroupVersion) client.Object {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"maxReplicas": int64(3), "scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
	}}}
	u.SetGroupVersionKind(version.WithKind("HorizontalPodAutoscaler"))
	u.SetNamespace(k.namespace)
	u.SetName("web")
	return u
}

func TestAnObjectWhoseKindIsNamedInTwoVersionsStays(t *testing.T) {
	former, present := &autoscalingv1.HorizontalPodAutoscaler{}, &autoscalingv2.HorizontalPodAutoscaler{}
	for name, deleting := range map[string]bool{"until it is no longer desired": false, "until its primary goes": true} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			p := k.primary("home")
			k.update(k.resource(just(k.scaler(autoscalingv1.SchemeGroupVersion)), kinds(former)), p)
			before, exists := read(k, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: k.meta("web").ObjectMeta})
			if !exists {
				t.Fatal("it is not there")
			}

			r := k.resource(just(k.scaler(autoscalingv2.SchemeGroupVersion)), kinds(former, present))
			k.update(r, p)
			k.wantQuiet(r, p)
			if after, _ := read(k, before.DeepCopy()); after.UID != before.UID || after.DeletionTimestamp != nil {
				t.Errorf("it was made anew: it has the UID %q, and had %q", after.UID, before.UID)
			}

			writes := len(k.faults.Writes())
			if deleting {
				k.deletionOf(r, p)
			} else {
				none := k.resource(just(), kinds(former, present))
				k.wantPlan(none, p, "delete HorizontalPodAutoscaler web")
				k.update(none, p)
			}
			if _, exists := read(k, before.DeepCopy()); exists {
				t.Error("it is still there")
			}
			if got := k.faults.Writes()[writes:]; len(got) != 1 {
				t.Errorf("it was deleted by %v, want one write", got)
			}
		})
	}
}

func TestEveryObjectSaysWhoseItIs(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	k.update(k.resource(just(k.data("a", nil))), p)

	a, _ := k.configMap("a")
	want := map[string]string{
		objectresource.OwnerAnnotation:     "ConfigMap/" + k.namespace + "/home",
		objectresource.OperatorAnnotation:  identity.Program(),
		objectresource.FrameworkAnnotation: identity.DefaultFramework,
		objectresource.ResourceAnnotation:  "children",
	}
	got := a.DeepCopy().Annotations
	applied := got[objectresource.AppliedAnnotation]
	delete(got, objectresource.AppliedAnnotation)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(applied, k.namespace+"/a#") {
		t.Errorf("%s is %q, want the object's own name and a hash", objectresource.AppliedAnnotation, applied)
	}
	mark := identity.From(t.Context()).Mark("children")
	labels := map[string]string{
		objectresource.OwnerLabel:    mark.Hash("ConfigMap/" + k.namespace + "/home"),
		objectresource.OperatorLabel: identity.LabelValue(identity.Program()),
	}
	if diff := cmp.Diff(labels, a.Labels); diff != "" {
		t.Error(diff)
	}
	if len(a.ManagedFields) != 1 || a.ManagedFields[0].Manager != mark.FieldManager() {
		t.Errorf("its fields are managed by %v", a.ManagedFields)
	}
	if !metav1.IsControlledBy(a, p) {
		t.Errorf("owner references are %v, want the primary as the controller", a.OwnerReferences)
	}
	keys := objectresource.OwnerMap(p.GroupVersionKind().GroupKind())(t.Context(), a)
	if len(keys) != 0 {
		t.Errorf("a primary without a kind got %v", keys)
	}
	keys = objectresource.OwnerMap(corev1.SchemeGroupVersion.WithKind("ConfigMap").GroupKind())(t.Context(), a)
	if len(keys) != 1 || keys[0] != client.ObjectKeyFromObject(p) {
		t.Errorf("mapped to %v, want the primary", keys)
	}
}

func TestAnAuthorMaySetTheControllerReferenceToo(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	desired := k.data("a", nil)
	if err := controllerutil.SetControllerReference(p, desired, k.user.Scheme()); err != nil {
		t.Fatal(err)
	}
	r := k.resource(just(desired))
	k.update(r, p)
	a, _ := k.configMap("a")
	if len(a.OwnerReferences) != 1 || !metav1.IsControlledBy(a, p) || !*a.OwnerReferences[0].BlockOwnerDeletion {
		t.Errorf("owner references are %v, want the one that the author gave", a.OwnerReferences)
	}
	k.wantQuiet(r, p)
}

func TestFieldsNoLongerDesiredAreRemovedFromTheObject(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	child := k.data("a", map[string]string{"keep": "1", "drop": "2"})
	child.Labels = map[string]string{"tier": "web"}
	r := k.resource(func() []client.Object { return just(child)() })
	k.update(r, p)

	delete(child.Data, "drop")
	child.Labels = nil
	k.wantPlan(r, p, "update ConfigMap a", `  data.drop: "2" removed`, `  metadata.labels.tier: "web" removed`)
	k.update(r, p)
	k.wantQuiet(r, p)
	a, _ := k.configMap("a")
	if diff := cmp.Diff(map[string]string{"keep": "1"}, a.Data); diff != "" {
		t.Error(diff)
	}
}

func TestFieldsOfOthersAreLeftAlone(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	child := k.data("a", map[string]string{"ours": "1"})
	r := k.resource(func() []client.Object { return just(child)() })
	k.update(r, p)
	k.patch(k.meta("a"), `{"metadata":{"labels":{"theirs":"x"}},"data":{"theirs":"x"}}`)
	k.wantQuiet(r, p)

	child.Data["ours"] = "2"
	k.wantPlan(r, p, "update ConfigMap a", `  data.ours: "1" -> "2"`)
	k.update(r, p)
	a, _ := k.configMap("a")
	if diff := cmp.Diff(map[string]string{"ours": "2", "theirs": "x"}, a.Data); diff != "" {
		t.Error(diff)
	}
	if a.Labels["theirs"] != "x" {
		t.Errorf("labels are %v, want the one of others kept", a.Labels)
	}
}

func TestDriftIsPutRight(t *testing.T) {
	for name, tc := range map[string]struct {
		patch string
		want  []string
	}{
		"a changed value":     {`{"data":{"x":"drifted"}}`, []string{`  data.x: "drifted" -> "1"`}},
		"a removed value":     {`{"data":{"x":null}}`, []string{`  data.x: "1"`}},
		"no data at all":      {`{"data":null}`, []string{`  data.x: "1"`}},
		"a removed reference": {`{"metadata":{"ownerReferences":null}}`, nil},
		"a removed label":     {`{"metadata":{"labels":null}}`, nil},
		"removed annotations": {`{"metadata":{"annotations":null}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			p := k.primary("home")
			r := k.resource(just(k.data("a", map[string]string{"x": "1"})))
			k.update(r, p)
			before, _ := k.configMap("a")
			k.patch(k.meta("a"), tc.patch)

			changes := k.plan(r, p)
			if len(changes) != 1 || changes[0].Action != plan.Update || len(changes[0].Fields) == 0 {
				t.Fatalf("got %v, want one update", lines(changes))
			}
			if diff := cmp.Diff(tc.want, lines(changes)[1:]); diff != "" && tc.want != nil {
				t.Error(diff)
			}
			k.update(r, p)
			k.wantQuiet(r, p)
			after, _ := k.configMap("a")
			for _, o := range []*corev1.ConfigMap{before, after} {
				o.ResourceVersion, o.ManagedFields = "", nil
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// web is a deployment that leaves most fields to their defaults.
func (k *kit) web() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Volumes: []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
					Containers: []corev1.Container{{
						Name: "web", Image: "web:1",
						Ports:     []corev1.ContainerPort{{ContainerPort: 80}},
						Env:       []corev1.EnvVar{{Name: "MODE", Value: "fast"}},
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": quantity.MustParse("1000m")}},
					}},
				},
			},
		},
	}
}

func TestDefaultedObjectsGiveAnEmptyPatchTheSecondTime(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	deployment := k.web()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "web"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80)}}},
	}
	r := k.resource(func() []client.Object { return just(deployment, service)() })
	k.update(r, p)
	k.wantQuiet(r, p)

	deployment.Spec.Template.Spec.Containers[0].Image = "web:2"
	service.Spec.Ports[0].TargetPort = intstr.FromString("http")
	k.wantPlan(r, p,
		"update Deployment web", `  spec.template.spec.containers[name=web].image: "web:1" -> "web:2"`,
		"update Service web", `  spec.ports[port=80,protocol=TCP].targetPort: 80 -> "http"`)
	k.update(r, p)
	k.wantQuiet(r, p)
}

// manifest is a deployment as somebody writes it by hand: in other words than the server's.
func (k *kit) manifest(t *testing.T) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: unstructuredOf(t, k.web())}
	u.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	containers[0].(map[string]any)["resources"] = map[string]any{
		"requests": map[string]any{"cpu": "1000m", "memory": "1024Mi"},
	}
	_ = unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers")
	u.Object["spec"].(map[string]any)["replicas"] = 2 // an int, which no JSON decoder makes
	return u
}

func TestOtherNotationsOfAValueAreNoChange(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	manifest := k.manifest(t)
	r := k.resource(func() []client.Object { return []client.Object{manifest} })
	k.update(r, p)
	k.wantQuiet(r, p)

	k.patch(k.web(), `{"spec":{"replicas":5}}`)
	k.wantPlan(r, p, "update Deployment web", "  spec.replicas: 5 -> 2")
	k.update(r, p)
	k.wantQuiet(r, p)

	t.Run("and are asked about once", func(t *testing.T) {
		k.patch(k.web(), `{"spec":{"replicas":5}}`)
		k.wantPlan(r, p, "update Deployment web", "  spec.replicas: 5 -> 2") // not forgotten by what was settled before
	})
}

func TestAnUnchangedObjectTakesNoRequestButTheList(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	manifest := k.manifest(t)
	r := k.resource(func() []client.Object { return append(just(k.data("a", map[string]string{"x": "1"}))(), manifest) })
	k.update(r, p)
	k.wantPlan(r, p) // the deployment is asked about

	current, err := r.GetCurrentState(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	desired, err := r.GetDesiredState(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	k.faults.Cut()
	defer k.faults.Restore()
	patch, err := r.NewUpdatePatch(t.Context(), p, current, desired)
	if err != nil || patch != nil {
		t.Errorf("got %v and %v with the server out of reach, want nothing to do", patch, err)
	}
}

func TestObjectsOfAnotherPrimaryAreLeftAlone(t *testing.T) {
	k := newKit(t)
	home, blog := k.primary("home"), k.primary("blog")
	r := k.resource(nil, func(c *config) {
		c.Desired = func(_ context.Context, p primary) ([]client.Object, error) {
			return []client.Object{k.data("of-"+p.Name, nil)}, nil
		}
	})
	k.update(r, home)
	k.update(r, blog)
	k.wantQuiet(r, home)

	if err := framework.ProcessDelete(t.Context(), home, []framework.Resource{r}); err != nil {
		t.Fatal(err)
	}
	if _, exists := k.configMap("of-home"); exists {
		t.Error("the object of the deleted primary is still there")
	}
	if _, exists := k.configMap("of-blog"); !exists {
		t.Error("the object of the other primary is gone")
	}
}

func TestTwoResourcesOfOnePrimaryDoNotFight(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	first := k.resource(just(k.data("a", nil)))
	second := k.resource(just(k.data("b", nil)), func(c *config) { c.Name = "others" })
	for range 2 {
		k.update(first, p)
		k.update(second, p)
	}
	k.wantQuiet(first, p)
	k.wantQuiet(second, p)

	clash := k.resource(just(k.data("a", nil)), func(c *config) { c.Name = "others"; c.Adopt = true })
	_, err := k.tryPlan(clash, p)
	var refused *objectresource.RefusedError
	if !errors.As(err, &refused) || refused.Adoptable || !strings.Contains(err.Error(), `"children"`) {
		t.Errorf("got %v, want a refusal that names the other resource", err)
	}
}

func TestANilOfAGoTypeClaimsNothing(t *testing.T) {
	k := newKit(t)
	p := k.primary("home")
	// The rules of a role are written as null when there are none.
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: k.namespace + "-role"}}
	r := k.resource(just(role))
	k.update(r, p)
	k.patch(role.DeepCopy(), `{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`)
	k.wantQuiet(r, p)

	r = k.resource(just(), func(c *config) { c.Namespaces = func(primary) []string { return nil } })
	k.update(r, p)
	if _, exists := read(k, role.DeepCopy()); exists {
		t.Error("the role is still there")
	}
}
