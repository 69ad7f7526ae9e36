package guards_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/operatorkit/operatorkit/context/secretscontext"
	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/guards"
)

// cluster has the namespaces by their labels, and counts how often they are read.
type cluster struct {
	client.Reader
	labels map[string]map[string]string
	reads  int
	err    error
}

func (c *cluster) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	c.reads++
	if c.err != nil {
		return c.err
	}
	labels, ok := c.labels[key.Name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, key.Name)
	}
	*o.(*corev1.Namespace) = corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Labels: labels}}
	return nil
}

// one reads the one guard with an expression.
func one(expression string, reader client.Reader) (framework.Guard, error) {
	read, err := guards.Read([]byte("guards:\n- name: g\n  action: deny\n  match: |\n    "+strings.ReplaceAll(expression, "\n", "\n    ")+"\n"), reader)
	if err != nil {
		return framework.Guard{}, err
	}
	return read[0], nil
}

const hidden = "hunter2-hunter2"

// website is an object with what expressions ask for.
func website() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Website",
		"metadata": map[string]any{"name": "home", "namespace": "shop", "labels": map[string]any{"team": "web"}},
		"spec":     map[string]any{"replicas": int64(3), "hosts": []any{"a.example.com", "b.example.com"}, "token": "known-to-be-secret", "long": strings.Repeat("a", 1<<20), "text": strings.Repeat("a", 1<<13)},
	}}
}

// input is the update of a Deployment for a Website.
func input() framework.GuardInput {
	return framework.GuardInput{
		Operator: "sites", Framework: "websites", Resource: "deployment", Object: website(),
		Change: plan.Change{
			Action: plan.Update, Object: plan.Object{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "home", UID: "u1"},
			Labels: map[string]string{"app": "home", "tier": "front"}, Annotations: map[string]string{"owner": "ada"},
			Fields: []plan.FieldChange{
				{Path: "spec.replicas", Old: int64(3), New: int64(1)},
				{Path: "spec.template.spec.containers[name=app].image", Old: "app:1", New: "app:2"},
				{Path: "spec.paused", New: true},
			},
		},
	}
}

func secretInput() framework.GuardInput {
	in := input()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "shop"}, Data: map[string][]byte{"password": []byte(hidden)}}
	in.Object = secret
	in.Change = plan.Describe(plan.Create, secret, nil)[0]
	return in
}

func deletion(kind, namespace string) framework.GuardInput {
	in := input()
	in.Change = plan.Change{Action: plan.Delete, Object: plan.Object{APIVersion: "v1", Kind: kind, Namespace: namespace, Name: "x"}}
	return in
}

func TestExpressionsGiveTheRightAnswers(t *testing.T) {
	const yes, no = "yes", "no"
	update, secret, claim, namespace := input(), secretInput(), deletion("PersistentVolumeClaim", "shop"), deletion("Namespace", "")
	for _, test := range []struct {
		expression string
		in         framework.GuardInput
		// want is yes, no, or a part of the error of the evaluation.
		want string
	}{
		{"true", update, yes},
		{"false", update, no},
		{"change.action == 'update'", update, yes},
		{"change.action == 'delete'", update, no},
		{"change.action == 'delete' && change.kind == 'PersistentVolumeClaim'", claim, yes},
		{"change.kind in ['Deployment', 'StatefulSet'] && change.apiVersion.startsWith('apps/')", update, yes},
		{"change.namespace + '/' + change.name == 'shop/home' && change.uid == 'u1'", update, yes},
		{"change.labels['app'] == 'home'", update, yes},
		{"change.labels['env'] == 'prod'", update, "no such key: env"},
		{"'env' in change.labels && change.labels['env'] == 'prod'", update, no},
		{"change.labels[?'env'].orValue('') == 'prod'", update, no},
		{"change.labels[?'tier'].orValue('') == 'front'", update, yes},
		{"has(change.labels.tier) && change.annotations.exists(k, k == 'owner')", update, yes},
		{"size(change.labels) == 0 && size(change.fields) == 0 && change.description == ''", claim, yes},
		{"change.fields.exists(f, f.path == 'spec.replicas' && f.to < f.from)", update, yes},
		{"change.fields.exists(f, f.path == 'spec.replicas' && int(f.to) == 1)", update, yes},
		{"change.fields.all(f, f.path.startsWith('spec.'))", update, yes},
		{"change.fields.exists(f, f.path.matches('containers.*image$'))", update, yes},
		{"change.fields.filter(f, f.from == null).map(f, f.path) == ['spec.paused']", update, yes},
		{"change.replaces", update, no},
		{"object.kind == 'Website' && object.spec.replicas >= 3", update, yes},
		{"object.spec.missing == 1", update, "no such key: missing"},
		{"has(object.spec.missing) && object.spec.missing == 1", update, no},
		{"object.?spec.?missing.orValue(0) == 0", update, yes},
		{"object.spec.hosts.all(h, h.endsWith('.example.com'))", update, yes},
		{"object.spec.replicas == 'three'", update, no},
		{"object.spec.replicas > 'two'", update, "no such overload"},
		{"object.spec.replicas / (object.spec.replicas - 3) == 1", update, "division by zero"},
		{"object.spec.hosts[7] == 'x'", update, "index out of bounds"},
		{"operator.name == 'sites' && operator.framework == 'websites' && operator.resource == 'deployment'", update, yes},
		{"namespaceObject.metadata.labels['env'] == 'prod'", update, yes},
		{"namespaceObject.metadata.labels[?'env'].orValue('') == 'prod'", deletion("HelmRelease", "blog"), no},
		{"namespaceObject.metadata.labels['env'] == 'prod'", deletion("HelmRelease", "blog"), "no such key: env"},
		{"namespaceObject == null", namespace, yes},
		{"namespaceObject == null", deletion("HelmRelease", "gone"), yes},
		{"quantity('1Gi').isGreaterThan(quantity('500Mi'))", update, yes},
		{"semver('1.2.3').major() == 1", update, yes},
		{"url('https://a.example.com/x').getHost() == 'a.example.com'", update, yes},
		// Values of Secrets.
		{"object.data.password == '" + hidden + "'", secret, no},
		{"object.data.password == 'aHVudGVyMi1odW50ZXIy'", secret, no},
		{"object.data.password == '(sensitive)'", secret, yes},
		{"change.fields.exists(f, string(f.to).contains('hunter2'))", secret, no},
		{"change.fields.exists(f, f.path == 'data.password' && f.sensitive)", secret, yes},
		{"object.spec.token == 'known-to-be-secret'", update, no},
		{"int(object.data.password) == 1", secret, "type conversion error"},
		// What would take long, or much.
		{"[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a+b+c+d+e+f > 0))))))", update, "cost limit exceeded"},
		{"object.spec.text.matches('(a*)*(a*)*(a*)*b') || object.spec.text.matches('((a?){10}){10}b')", update, no},
		{"(object.spec.long + object.spec.long + object.spec.long).replace('a', 'aaaaaaaaaa').replace('a', 'aaaaaaaaaa') == ''", update, "cost limit exceeded"},
	} {
		guard, err := one(test.expression, &cluster{labels: map[string]map[string]string{"shop": {"env": "prod"}, "blog": {"team": "web"}}})
		if err != nil {
			t.Errorf("%s\nis not read: %v", test.expression, err)
			continue
		}
		ctx := secretscontext.NewContext(t.Context())
		secretscontext.Add(ctx, "known-to-be-secret")
		start := time.Now()
		matches, err := guard.Match(ctx, test.in)
		got := map[bool]string{true: yes, false: no}[matches]
		if err != nil {
			got = err.Error()
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s\ntook %s", test.expression, took)
		}
		if err == nil && got != test.want || err != nil && (test.want == yes || test.want == no || !strings.Contains(got, test.want)) {
			t.Errorf("%s\nis %q, want %q", test.expression, got, test.want)
		}
		if strings.Contains(got, "hunter2") {
			t.Errorf("%s\nshows a Secret: %s", test.expression, got)
		}
	}
}

func TestExpressionsThatCannotBeRightAreRefused(t *testing.T) {
	for expression, want := range map[string]string{
		"chang.action == 'delete'":                                   "undeclared reference to 'chang'",
		"change.acton == 'delete'":                                   "undefined field 'acton'",
		"change.action == 1":                                         "no matching overload",
		"change.action":                                              "it is a string: make it a bool",
		"object.spec.enabled":                                        "it is a dyn: make it a bool",
		"change.fields.exists(f, f.old==1)":                          "undefined field 'old'",
		"change.action == 'delete' &&":                               "Syntax error",
		"change.kind.matches('(')":                                   "invalid matches argument",
		"open('/etc/passwd') == ''":                                  "undeclared reference to 'open'",
		strings.Repeat("(", 500) + "true" + strings.Repeat(")", 500): "recursion",
	} {
		if _, err := one(expression, nil); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `line 2: guard "g": match: `) {
			t.Errorf("%.80s\nwas read with %v, want %q", expression, err, want)
		}
	}
}

func TestANamespaceIsReadOnlyIfItIsAskedForAndRemembered(t *testing.T) {
	c := &cluster{labels: map[string]map[string]string{"shop": {"env": "prod"}}}
	guard, err := one("change.action == 'delete' && namespaceObject.metadata.labels['env'] == 'prod'", c)
	if err != nil {
		t.Fatal(err)
	}
	if len(guard.Rights) != 1 || guard.Rights[0].Kind.Kind != "Namespace" || !guard.Rights[0].ClusterScoped {
		t.Errorf("rights %v, want to get namespaces", guard.Rights)
	}
	if matches, err := guard.Match(t.Context(), input()); matches || err != nil || c.reads != 0 {
		t.Errorf("got %t, %v after %d reads for an update", matches, err, c.reads)
	}
	for range 3 {
		if matches, err := guard.Match(t.Context(), deletion("Service", "shop")); !matches || err != nil || c.reads != 1 {
			t.Errorf("got %t, %v after %d reads", matches, err, c.reads)
		}
	}
	c.err = context.DeadlineExceeded
	if _, err := guard.Match(t.Context(), deletion("Service", "other")); err == nil || !strings.Contains(err.Error(), `read namespace "other"`) {
		t.Errorf("got %v for a namespace that can't be read", err)
	}
	if guard, err = one("change.action == 'delete'", c); err != nil || len(guard.Rights) != 0 {
		t.Errorf("rights %v, error %v", guard.Rights, err)
	}
}
