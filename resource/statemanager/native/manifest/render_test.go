package manifest_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// fields are the fields of a change by their paths, without the labels of services.
func fields(change plan.Change) map[string]any {
	all := map[string]any{}
	for _, f := range change.Fields {
		if !strings.Contains(f.Path, "services.operatorkit.io/") {
			all[f.Path] = f.New
		}
	}
	return all
}

func TestValuesReplaceReferences(t *testing.T) {
	k := newKit(t)
	const settings = `{replicas: 3, port: 8080, enabled: true, image: {tag: "1.10", my-name: web}, evil: "x\n  injected: ${port}", list: [1, two], empty: null}`
	for _, row := range []struct {
		name, field string
		want        any
	}{
		{"a number keeps its type", "${replicas}", int64(3)},
		{"quotes do not matter", "'${replicas}'", int64(3)},
		{"a text that looks like a number stays a text", "${image.tag}", "1.10"},
		{"a number as a text", "${port:string}", "8080"},
		{"within a text", "'http://${image.my-name}:${port}/${enabled}'", "http://web:8080/true"},
		{"a default that is not needed", "${replicas:-7}", int64(3)},
		{"a default", "${missing:-7}", int64(7)},
		{"a default that is a text", "${missing:-a b}", "a b"},
		{"an empty default", "${missing:-}", ""},
		{"a default as a text", "${missing:string:-7}", "7"},
		{"what is escaped", "'$${HOME}/${port}'", "${HOME}/8080"},
		{"a dollar alone", "$5 $HOME", "$5 $HOME"},
		{"a value with YAML in it", "${evil}", "x\n  injected: ${port}"},
		{"a list", "${list}", []any{int64(1), "two"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			text := strings.Replace(k.widget("a"), "spec: {size: 1}", "spec:\n  x: "+row.field, 1)
			got := fields(k.compute(k.service(files{"a.yaml": text, "b.yaml": k.widgets()}, values(settings))).Changes[1])
			want := map[string]any{"spec.x": row.want}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaultsOfReferencesNameObjectFileAndField(t *testing.T) {
	k := newKit(t)
	for field, want := range map[string]string{
		"${missing}":           "there is no value missing",
		"'x${list}'":           "${list} is a list or a map, and can't be within a text",
		"${list:string}":       "${list:string} is a list or a map, and no text",
		"'${PATH%%:*}'":        "${PATH%%:*} is no reference",
		"'${port'":             "${ has no end",
		"'${port.deeper}'":     "there is no value port.deeper",
		"'${ port }'":          "is no reference",
		"${replicas:?nothing}": "is no reference",
	} {
		text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: " + field + "\n"
		err := k.refused(k.service(files{"sub.yaml": text}, values("{port: 1, list: [1]}")))
		if !framework.IsPermanent(err) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "sub.yaml: ConfigMap a: data.x: ") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestReferencesStayWithoutValuesAndWhereSwitchedOff(t *testing.T) {
	k := newKit(t)
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a%s}\ndata: {x: '${HOME}'}\n"
	for _, s := range []*carrier.Service{
		k.service(files{"a.yaml": fmt.Sprintf(text, "")}),
		k.service(files{"a.yaml": fmt.Sprintf(text, ", annotations: {services.operatorkit.io/substitute: disabled}")}, values("{x: 1}")),
	} {
		if got := fields(k.compute(s).Changes[0]); got["data.x"] != "${HOME}" {
			t.Errorf("the fields are %v", got)
		}
	}
}

func TestSecretValuesAreNotShown(t *testing.T) {
	k := newKit(t)
	const password = "s3cr3t-p4ssw0rd"
	given := []option{values("{password: " + password + ", port: 80}"), secretValues("{password: true}")}
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {x: '${password}'}}\ndata: {x: 'pw ${password}', y: '${port:string}'}\n"
	s := k.service(files{"a.yaml": text, "b.yaml": configMap("b", "${port:string}")}, given...)
	result := k.compute(s)
	if strings.Contains(fmt.Sprintf("%+v", result.Changes), password) {
		t.Errorf("the password is in the plan: %+v", result.Changes)
	}
	if fields(result.Changes[1])["data.text"] != "80" {
		t.Errorf("what is not secret should be shown: %v", result.Changes[1])
	}

	err := k.refused(k.service(files{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '${password}'}\n"}, given...))
	if strings.Contains(err.Error(), password) || !strings.Contains(err.Error(), "the value password comes from a Secret") {
		t.Errorf("the error is %v", err)
	}
	err = k.refused(k.service(files{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad, labels: {x: '${password} !'}}\n"}, given...))
	if strings.Contains(err.Error(), password) || !strings.Contains(err.Error(), "ConfigMap "+k.namespace+"/bad of a.yaml") {
		t.Errorf("the error is %v", err)
	}

	s = k.service(files{"a.yaml": configMap("c", password)}, func(s *carrier.Service) {
		s.Template.Spec.Resources.LocalSource.Kind = "Secret"
	})
	if result := k.compute(s); strings.Contains(fmt.Sprintf("%+v", result.Changes), password) {
		t.Errorf("a file of a Secret is in the plan: %+v", result.Changes)
	}
	s = k.service(files{"a.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {x: " + password + "}\n"})
	if result := k.compute(s); strings.Contains(fmt.Sprintf("%+v", result.Changes), password) || result.Changes[0].Fields[0].Path != "data.x" {
		t.Errorf("a Secret is in the plan: %+v", result.Changes)
	}
}

func TestWhatWasSecretStaysHiddenWhenItIsTakenOut(t *testing.T) {
	const password = "s3cr3t-p4ssw0rd"
	given := []option{values("{password: " + password + "}"), secretValues("{password: true}")}
	for name, begin := range map[string]func(k *kit, secret, plain *carrier.Service, breaks func(*carrier.Service, string)){
		"after all was put there": func(k *kit, secret, _ *carrier.Service, _ func(*carrier.Service, string)) { k.settle(secret) },
		"after it was begun":      func(_ *kit, secret, _ *carrier.Service, breaks func(*carrier.Service, string)) { breaks(secret, "b") },
		"after it was begun in place of something else": func(k *kit, secret, _ *carrier.Service, breaks func(*carrier.Service, string)) {
			k.settle(k.service(files{"a.yaml": configMap("a", "first")}))
			breaks(secret, "b")
		},
		"after taking it out was begun": func(_ *kit, secret, plain *carrier.Service, breaks func(*carrier.Service, string)) {
			breaks(secret, "b")
			breaks(plain, "a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			secret := k.service(files{"a.yaml": configMap("a", "${password}"), "b.yaml": configMap("b", "1")}, given...)
			plain := k.service(files{"a.yaml": configMap("a", "plain"), "b.yaml": configMap("b", "2")})
			begin(k, secret, plain, func(s *carrier.Service, at string) {
				k.faults.On(func(r operatortest.Request) bool { return r.Name == at && !r.DryRun && r.Method == http.MethodPatch }, operatortest.InternalError()).Times(1)
				if err := k.carrier.CarryOut(t.Context(), k.cluster, s, k.compute(s)); err == nil {
					t.Fatal("it can be carried out")
				}
			})
			if got := k.configMap("a").Data["text"]; got != password {
				t.Fatalf("the cluster has %q", got)
			}
			changes := k.compute(plain).Changes
			if said := fmt.Sprintf("%+v", changes); strings.Contains(said, password) || !strings.Contains(said, "data.text") {
				t.Errorf("the plan is %s", said)
			}
			k.settle(plain)
			next := k.service(files{"a.yaml": configMap("a", "next"), "b.yaml": configMap("b", "2")})
			if got := fields(k.compute(next).Changes[0])["data.text"]; got != "next" {
				t.Errorf("what is not secret any more should be shown: it is %v", got)
			}
		})
	}
}

func TestKustomizationIsBuilt(t *testing.T) {
	k := newKit(t)
	s := k.service(files{
		"base/kustomization.yaml": "resources: [app.yaml]\n",
		"base/app.yaml":           deployment("app", "example.com/app"),
		"prod/kustomization.yaml": "resources: [../base]\nnamePrefix: prod-\nimages: [{name: example.com/app, newTag: '2'}]\n" +
			"configMapGenerator: [{name: conf, files: [conf.txt], options: {disableNameSuffixHash: true}}]\n" +
			"patches: [{path: replicas.yaml, target: {kind: Deployment}}]\n" +
			"replacements: [{source: {kind: ConfigMap, name: conf, fieldPath: metadata.name}, " +
			"targets: [{select: {kind: Deployment}, fieldPaths: [metadata.annotations.conf], options: {create: true}}]}]\n",
		"prod/replicas.yaml":     "- {op: replace, path: /spec/replicas, value: '${replicas}'}\n",
		"prod/conf.txt":          "port=${port}",
		"dev/kustomization.yaml": "resources: [https://example.com/base.yaml]\n", // nobody asks for it
	}, kustomize("prod"), values("{replicas: 5, port: 80}"))
	result := k.compute(s)
	k.wants(result.Changes, "create ConfigMap prod-conf", "create Deployment prod-app")
	if got := fields(result.Changes[0])[`data["conf.txt"]`]; got != "port=80" {
		t.Errorf("the fields are %v", fields(result.Changes[0]))
	}
	if got := fields(result.Changes[1]); got["metadata.annotations.conf"] != "prod-conf" || got["spec.replicas"] != int64(5) || got["spec.template.spec.containers[name=main].image"] != "example.com/app:2" {
		t.Errorf("the fields are %v", got)
	}
	k.carryOut(s, result)
	if found := k.compute(s).Found; found.Type != v1alpha1.ServiceTypeKustomize {
		t.Errorf("found %v", found)
	}
}

func TestComponentsVarsAndBuiltInTransformersDoWhatTheyDoInKustomize(t *testing.T) {
	k := newKit(t)
	s := k.service(files{
		"kustomization.yaml": "resources: [app.yaml, service.yaml]\ncomponents: [metrics]\n" +
			"vars: [{name: HOST, objref: {kind: Service, name: app, apiVersion: v1}, fieldref: {fieldpath: metadata.name}}]\n" +
			"configurations: [fields.yaml]\n" +
			"generators: ['{apiVersion: builtin, kind: ConfigMapGenerator, metadata: {name: made}, files: [page.txt], options: {disableNameSuffixHash: true}}']\n" +
			"transformers: [prefix.yaml, patch.yaml, '{apiVersion: builtin, kind: LabelTransformer, metadata: {name: l}, labels: {team: blue}, " +
			"fieldSpecs: [{path: metadata/labels, create: true}]}']\n",
		"app.yaml":      strings.ReplaceAll(deployment("app", "example.com/app"), "replicas: 1", "replicas: 2"),
		"service.yaml":  "apiVersion: v1\nkind: Service\nmetadata: {name: app, annotations: {host: $(HOST)}}\nspec: {ports: [{port: 80}]}\n",
		"fields.yaml":   "varReference: [{path: data}]\n",
		"page.txt":      "see $(HOST)",
		"prefix.yaml":   "{apiVersion: builtin, kind: PrefixTransformer, metadata: {name: p}, prefix: eu-, fieldSpecs: [{path: metadata/name}]}\n",
		"patch.yaml":    "{apiVersion: builtin, kind: PatchTransformer, metadata: {name: q}, target: {kind: Deployment}, path: replicas.yaml}\n",
		"replicas.yaml": "- {op: replace, path: /spec/replicas, value: 7}\n",
		"metrics/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [m.yaml]\n" +
			"patches: [{target: {kind: Deployment}, patch: '[{\"op\": \"add\", \"path\": \"/metadata/annotations\", \"value\": {\"metrics\": \"on\"}}]'}]\n",
		"metrics/m.yaml": configMap("metrics", "1"),
	}, kustomize("."))
	got := map[string]any{}
	for _, change := range k.compute(s).Changes {
		for path, value := range fields(change) {
			got[change.Object.Kind+" "+change.Object.Name+" "+path] = value
		}
	}
	want := map[string]any{
		"ConfigMap eu-made data[\"page.txt\"]": "see eu-app", "Service eu-app metadata.annotations.host": "eu-app",
		"Deployment eu-app spec.replicas": int64(7), "Deployment eu-app metadata.annotations.metrics": "on", "Deployment eu-app metadata.labels.team": "blue",
		"ConfigMap eu-metrics metadata.labels.team": "blue",
	}
	for path, value := range want {
		if got[path] != value {
			t.Errorf("%s is %v: want %v, of %v", path, got[path], value, got)
		}
	}
}

func TestListsAreTakenApart(t *testing.T) {
	k := newKit(t)
	result := k.compute(k.service(files{"a.json": `{"apiVersion":"v1","kind":"List","items":[
		{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}},{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}]}`,
		"b.yaml": "# nothing\n---\n---\n" + configMap("c", "1")}))
	k.wants(result.Changes, "create ConfigMap a", "create ConfigMap b", "create ConfigMap c")
}

func TestItemsOfATypedListNeedNoKind(t *testing.T) {
	k := newKit(t)
	result := k.compute(k.service(files{"a.yaml": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMapList\n  items: [{metadata: {name: a}}]\n" +
		"- apiVersion: v1\n  kind: SecretList\n  items: [{metadata: {name: b}}, {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}]\n"}))
	k.wants(result.Changes, "create ConfigMap a", "create ConfigMap c", "create Secret b")
}

func TestNullsAmongLabelsAreEmptyTexts(t *testing.T) {
	k := newKit(t)
	text := "apiVersion: v1\nkind: Secret\nmetadata: {name: a, labels: {app: web, tier: }, annotations: }\nstringData: {a: }\n"
	s := k.service(files{"a.yaml": text})
	k.settle(s)
	got := &corev1.Secret{}
	if !k.exists("a", got) {
		t.Fatal("it is not there")
	}
	tier, labelled := got.Labels["tier"]
	data, has := got.Data["a"]
	if !labelled || !has || tier+string(data) != "" || got.Labels["app"] != "web" {
		t.Errorf("its labels are %v, its data %v", got.Labels, got.Data)
	}
	k.wants(k.compute(s).Changes)
}

func TestBuildEndsWithItsContext(t *testing.T) {
	k := newKit(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	s := k.service(files{"kustomization.yaml": "resources: [a.yaml]", "a.yaml": configMap("a", "1")}, kustomize("."))
	s.Source = &canceling{Source: s.Source, cancel: func() { cancel(context.DeadlineExceeded) }}
	_, err := k.carrier.Compute(ctx, k.cluster, k.cluster.client, s)
	if err == nil || framework.IsPermanent(err) {
		t.Errorf("the error is %v", err)
	}
}
