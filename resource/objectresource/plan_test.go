package objectresource_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/operatortest/plantest"
)

// planRounds is how many states each check of the property goes through.
func planRounds() int {
	if testing.Short() {
		return 5
	}
	return 10
}

// The plan of an update or deletion is what is written then, whatever there is and whatever is desired: after drift, beside
// objects of others, with defaults and other notations, and while objects wait for their deletion.
func TestThePlanIsWhatIsDoneThen(t *testing.T) {
	k := newKit(t)
	world := &plantest.Cluster{
		Client: k.user, Faults: k.faults, Namespace: k.namespace,
		Kinds: []client.Object{
			&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Service{}, &appsv1.Deployment{}, &rbacv1.ClusterRole{},
		},
		Defaulted: map[string][]string{"Secret": {"type"}, "Service": {"spec"}, "Deployment": {"spec"}},
	}
	seen := map[plan.Action]int{}
	failed, run := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		p := k.primary(fmt.Sprintf("p%d", run))
		g := &generator{k: k, rt: rt, prefix: fmt.Sprintf("r%d-", run)}
		var desired []client.Object
		r := k.resource(nil, func(c *config) {
			c.Desired = func(context.Context, primary) ([]client.Object, error) { return just(desired...)(), nil }
			c.Adopt = rapid.Bool().Draw(rt, "adopt")
			c.Namespaces = func(primary) []string { return []string{k.namespace} }
		})
		if g.bool("somebody has an object of one of the names") { // without which hardly any sequence has a refusal
			k.create(k.data(g.prefix+"a", map[string]string{"x": "theirs"}))
		}
		for range planRounds() {
			desired = g.desired()
			for range rapid.IntRange(0, 2).Draw(rt, "edits") {
				g.edit()
			}
			made := plantest.Update(rt, world, p, r)
			count(seen, made)
			if made.Outcome == plan.Failed {
				failed++
				continue
			}
			left, err := framework.PlanUpdate(t.Context(), p, []framework.Resource{r})
			if err != nil || left.Counts().Any() {
				rt.Fatalf("left to do after the plan was applied: %v, %v", left, err)
			}
		}
		g.release()
		count(seen, plantest.Delete(rt, world, p, r))
	})
	t.Logf("%d sequences, changes by action: %v, refusals: %d", run, seen, failed)
	if !testing.Short() && (seen[plan.Create] == 0 || seen[plan.Update] == 0 || seen[plan.Delete] == 0 || failed == 0) { // a sample need not have them all
		t.Error("the states were not various enough to prove anything")
	}
}

func count(seen map[plan.Action]int, p *plan.Plan) {
	n := p.Counts()
	seen[plan.Create] += n.Create
	seen[plan.Update] += n.Update
	seen[plan.Delete] += n.Delete
}

// generator makes states up.
type generator struct {
	k      *kit
	rt     *rapid.T
	prefix string
}

var (
	texts = rapid.SampledFrom([]string{"", "1", "two", "a\nb\n", "ä\u202e<>", `{"a":1}`})
	words = rapid.SampledFrom([]string{"x", "y.z", "a-b", "Key_1"})
	pairs = rapid.MapOfN(words, texts, 0, 3)
)

func (g *generator) bool(what string) bool { return rapid.Bool().Draw(g.rt, what) }

func (g *generator) meta(name string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: g.k.namespace, Name: g.prefix + name}
	if g.bool("has labels") {
		m.Labels = rapid.MapOfN(words, rapid.SampledFrom([]string{"", "web", "db"}), 0, 2).Draw(g.rt, "labels")
	}
	if g.bool("has annotations") {
		m.Annotations = rapid.MapOfN(words, texts, 0, 2).Draw(g.rt, "annotations")
	}
	return m
}

// desired makes up what should be there.
func (g *generator) desired() []client.Object {
	var objects []client.Object
	for _, name := range []string{"a", "b", "c"} {
		if g.bool("wants config map " + name) {
			objects = append(objects, &corev1.ConfigMap{ObjectMeta: g.meta(name), Data: pairs.Draw(g.rt, "data")})
		}
	}
	if g.bool("wants secret") {
		objects = append(objects, &corev1.Secret{ObjectMeta: g.meta("s"), StringData: pairs.Draw(g.rt, "secret data")})
	}
	if g.bool("wants role") {
		role := &rbacv1.ClusterRole{ObjectMeta: g.meta("role")}
		role.Namespace, role.Name = "", g.k.namespace+"-"+role.Name
		if g.bool("has rules") {
			verbs := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"get", "list", "watch"}), 1, 3, rapid.ID[string]).Draw(g.rt, "verbs")
			role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: verbs}}
		}
		objects = append(objects, role)
	}
	if g.bool("wants deployment") {
		objects = append(objects, g.deployment())
	}
	if g.bool("wants service") {
		port := rapid.Int32Range(80, 82).Draw(g.rt, "port")
		objects = append(objects, &corev1.Service{
			ObjectMeta: g.meta("web"),
			Spec: corev1.ServiceSpec{
				Selector: map[string]string{"app": "web"},
				Ports:    []corev1.ServicePort{{Port: port, TargetPort: intstr.FromInt32(port)}},
			},
		})
	}
	return rapid.Permutation(objects).Draw(g.rt, "order")
}

func (g *generator) deployment() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	d := &appsv1.Deployment{
		ObjectMeta: g.meta("web"),
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
		},
	}
	if g.bool("has replicas") {
		replicas := rapid.Int32Range(0, 3).Draw(g.rt, "replicas")
		d.Spec.Replicas = &replicas
	}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"web", "proxy", "log"}), 1, 3, rapid.ID[string]).Draw(g.rt, "containers") {
		c := corev1.Container{Name: name, Image: rapid.SampledFrom([]string{"web:1", "web:2"}).Draw(g.rt, "image")}
		for _, variable := range rapid.SliceOfNDistinct(words, 0, 2, rapid.ID[string]).Draw(g.rt, "env") {
			c.Env = append(c.Env, corev1.EnvVar{Name: variable, Value: texts.Draw(g.rt, "value")})
		}
		if g.bool("has requests") {
			c.Resources.Requests = corev1.ResourceList{
				"cpu": quantity.MustParse(rapid.SampledFrom([]string{"1", "1000m", "0.5"}).Draw(g.rt, "cpu")),
			}
		}
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, c)
	}
	return d
}

// edit is something that a user, or somebody else's controller, does.
func (g *generator) edit() {
	name := g.prefix + rapid.SampledFrom([]string{"a", "b", "c"}).Draw(g.rt, "edited")
	object, exists := g.k.configMap(name)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: g.k.namespace, Name: g.prefix + "web"}}
	edits := map[string]func(){
		"create a foreign object": func() {
			if !exists {
				g.k.create(g.k.data(name, map[string]string{"x": "theirs"}))
			}
		},
		"delete": func() { g.delete(object) },
		"change data": func() {
			g.patch(object, exists, fmt.Sprintf(`{"data":{%q:"drifted"}}`, words.Draw(g.rt, "key")))
		},
		"remove data":         func() { g.patch(object, exists, `{"data":null}`) },
		"add a label":         func() { g.patch(object, exists, `{"metadata":{"labels":{"theirs":"1"}}}`) },
		"remove labels":       func() { g.patch(object, exists, `{"metadata":{"labels":null}}`) },
		"remove annotations":  func() { g.patch(object, exists, `{"metadata":{"annotations":null}}`) },
		"remove the owner":    func() { g.patch(object, exists, `{"metadata":{"ownerReferences":null}}`) },
		"hold the deletion":   func() { g.patch(object, exists, `{"metadata":{"finalizers":["example.com/hold"]}}`) },
		"release the holding": func() { g.patch(object, exists, `{"metadata":{"finalizers":null}}`) },
		"scale": func() {
			_, exists := read(g.k, deployment)
			g.patch(deployment, exists, `{"spec":{"replicas":7,"paused":true}}`)
		},
	}
	edits[rapid.SampledFrom(slices.Sorted(maps.Keys(edits))).Draw(g.rt, "edit")]()
}

func (g *generator) patch(o client.Object, exists bool, patch string) {
	if exists {
		g.k.patch(o, patch)
	}
}

func (g *generator) delete(o client.Object) {
	if err := client.IgnoreNotFound(g.k.user.Delete(g.k.t.Context(), o)); err != nil {
		g.rt.Fatal(err)
	}
}

// release takes the holds away, so that nothing stays.
func (g *generator) release() {
	for _, name := range []string{"a", "b", "c"} {
		object, exists := g.k.configMap(g.prefix + name)
		g.patch(object, exists, `{"metadata":{"finalizers":null}}`)
	}
}

func TestThePlanOfACreationLeavesOutStructsThatSayNothing(t *testing.T) {
	k := newKit(t)
	labels := map[string]string{"app": "web"}
	r := k.resource(func() []client.Object {
		return []client.Object{&appsv1.Deployment{ObjectMeta: k.meta("web").ObjectMeta, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "web", Image: "web:1"}},
				Volumes:    []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			}},
		}}}
	})
	p := k.primary("p")
	k.wantPlan(r, p, "create Deployment web",
		`  spec.selector.matchLabels.app: "web"`,
		`  spec.template.metadata.labels.app: "web"`,
		`  spec.template.spec.containers[name=web].image: "web:1"`,
		`  spec.template.spec.containers[name=web].name: "web"`,
		`  spec.template.spec.volumes[name=scratch].emptyDir: {}`,
		`  spec.template.spec.volumes[name=scratch].name: "scratch"`)
}

func TestThePlanOfFieldsThatAreSetToWhatIsThereShowsNoHash(t *testing.T) {
	k := newKit(t)
	p := k.primary("p")
	service := func(kind corev1.ServiceType) *resource {
		return k.resource(just(&corev1.Service{
			ObjectMeta: k.meta("web").ObjectMeta, Spec: corev1.ServiceSpec{Type: kind, Ports: []corev1.ServicePort{{Port: 80}}},
		}))
	}
	k.update(service(""), p)
	explicit := service(corev1.ServiceTypeClusterIP)
	changes := k.plan(explicit, p)
	if got := lines(changes); !slices.Equal(got, []string{"update Service web"}) {
		t.Fatalf("the plan is %q, want an update without fields", got)
	}
	if got, want := changes[0].Description, "other fields are set than before, and no value changes"; got != want {
		t.Errorf("it is described as %q, want %q", got, want)
	}
	k.update(explicit, p)
	k.wantQuiet(explicit, p)
}
