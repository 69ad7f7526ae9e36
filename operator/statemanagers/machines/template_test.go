package machines_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/statemanagers/machines"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

func TestValuesAreMergedOverTheSpecOfTheManifest(t *testing.T) {
	w := newWorld(t)
	w.create(
		files("web", manifest("web:1", "  ports: [{containerPort: 1}, {containerPort: 2}]", "  placement: {labels: {disk: ssd, zone: a}}")+
			"\n---\n# nothing\n"),
		&corev1.ConfigMap{ObjectMeta: files("one", "").ObjectMeta, Data: map[string]string{
			"values.yaml": "replicas: 2\ncontainer: {init: true}", "other": "replicas: 3\ncontainer: {user: one}",
		}},
	)
	w.templates(w.set, "web")
	entry := list(w.set, "shop=web")
	entry.ValuesFrom = []v1alpha1.ValuesFrom{
		{Kind: statemanager.KindConfigMap, Name: "one", Key: "other"}, {Kind: statemanager.KindConfigMap, Name: "one"},
	}
	entry.Values = "container: {user: own}\nports: [{containerPort: 3}]\nplacement: {labels: {zone: null}}\nupdate: {healthTimeout: 90s}"
	w.settle(w.set)
	got := w.service("shop")
	spec := got.Spec
	text := fmt.Sprintln(*spec.Replicas, spec.Container.Image, spec.Container.Init, spec.Container.User, spec.Ports, spec.Placement.Labels,
		spec.Update.HealthTimeout.Duration)
	want := "2 web:1 true own [" + api.PortSpec{ContainerPort: 3}.String() + "] map[disk:ssd] 1m30s\n"
	if text != want {
		t.Errorf("the spec is %s, want %s", text, want)
	}
	for name, want := range map[string]string{
		carrier.ServiceLabel: "shop", carrier.ServiceNamespaceLabel: "apps", machines.SetAnnotation: w.namespace + "/prod",
		machines.TemplateAnnotation: "web", machines.VersionAnnotation: "v-web",
	} {
		if got := got.Labels[name] + got.Annotations[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestConfigsOfSecretsCanBeMounted(t *testing.T) {
	w := newWorld(t)
	w.create(files("web", manifest("web:1", "  configsFrom: [{name: tls, secretKeyRef: {name: web-tls, key: tls.crt}}]")))
	w.templates(w.set, "web")
	list(w.set, "web=web").Values = "container: {configMounts: [{config: tls, path: /etc/tls.crt}]}"
	w.settle(w.set)
	got := w.service("web")
	if got == nil || len(got.Spec.ConfigsFrom) != 1 || len(got.Spec.Configs) != 0 || len(got.Spec.Container.ConfigMounts) != 1 {
		t.Errorf("the MachineService is %+v", got)
	}
}

func TestWhatCantBeAMachineServiceIsAnErrorThatSaysWhy(t *testing.T) {
	w := newWorld(t)
	deployment := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
	for name, test := range map[string]struct {
		manifest, values string
		template         *v1alpha1.ServiceTemplateSpec
		// want are parts of the message.
		want []string
	}{
		"a chart": {template: &v1alpha1.ServiceTemplateSpec{Helm: &v1alpha1.HelmChart{Repository: "https://x", Chart: "c", Version: "1.0.0"}},
			want: []string{"it is a Helm chart", "one manifest of kind MachineService"}},
		"a kustomization": {template: &v1alpha1.ServiceTemplateSpec{Kustomize: &v1alpha1.FileSource{
			LocalSource: &v1alpha1.LocalSource{Kind: statemanager.KindConfigMap, Name: "a-kustomization"},
		}}, want: []string{"it is a kustomization", "one manifest of kind MachineService"}},
		"another kind": {manifest: deployment, want: []string{
			`service.yaml: it has an object of kind "Deployment" of "apps/v1"`, "one manifest of kind MachineService of deployment.operatorkit.io/v1alpha1",
		}},
		"two": {manifest: manifest("a") + "\n---\n" + manifest("b"), want: []string{"it has 2 manifests, in service.yaml"}},
		"a number among labels": {manifest: strings.Replace(manifest("a"), "metadata: {", "metadata: {labels: {app: a, version: 1.1}, ", 1),
			want: []string{`service.yaml: metadata.labels is no map of texts: put quotes around the value of "version", the number 1.1`}},
		"no YAML":          {manifest: "a: [", want: []string{"service.yaml", "no YAML"}},
		"an unknown field": {manifest: manifest("a", "  replica: 1"), want: []string{`unknown field "spec.replica"`}},
		"an unknown value": {manifest: manifest("a"), values: "container: {imge: b}", want: []string{`unknown field "spec.container.imge"`}},
		"another type":     {manifest: manifest("a"), values: "replicas: many", want: []string{"replicas", "int32"}},
		"faults":           {manifest: manifest("a"), values: "replicas: -1\ncontainer: {image: A}", want: []string{"replicas: Invalid value: -1", "container.image"}},
		"a huge exponent": {manifest: manifest("a"), values: "container: {resources: {memory: '1e-1000000'}}\nvolumes: [{name: aa, type: tmpfs, size: '1e2147483647'}]",
			want: []string{`spec.container.resources.memory: "1e-1000000" is no quantity`, `spec.volumes[0].size: "1e2147483647" is no quantity`}},
		"no such config": {manifest: manifest("a", "  configsFrom: [{name: tls, secretKeyRef: {name: a, key: b}}]"),
			values: "container: {configMounts: [{config: tls, path: /a}, {config: other, path: /b}]}",
			want:   []string{`spec: container.configMounts[1].config: Not found: "other"`}},
		"a name":            {manifest: manifest("a", "  name: other"), want: []string{`spec.name is "other"`}},
		"what server finds": {manifest: manifest("a", "  strategy: {steps: [{percent: 10}]}"), want: []string{"steps are for canary only"}},
		"no values":         {manifest: manifest("a"), values: "- 1", want: []string{"values of service apps/web are no YAML map"}},
	} {
		t.Run(name, func(t *testing.T) {
			set := w.newSet("prod")
			source := strings.ReplaceAll(name, " ", "-")
			source = strings.ToLower(source)
			set.Templates["t"] = template(source)
			set.Templates["t"].Namespace = w.namespace
			if test.template != nil {
				set.Templates["t"].Spec = *test.template
			}
			w.create(files(source, test.manifest))
			list(set, "web=t").Values = test.values
			work, err := w.manager.Compute(t.Context(), set)
			if err != nil {
				t.Fatal(err)
			}
			if len(work.Operations) != 1 || !framework.IsPermanent(work.Operations[0].Err) || changes(work) > 0 {
				t.Fatalf("the operations are %+v", work.Operations)
			}
			for _, want := range test.want {
				if err := work.Operations[0].Err.Error(); !strings.Contains(err, want) {
					t.Errorf("the error lacks %q: %s", want, err)
				}
				if got := states(work); !strings.HasPrefix(got, "web Failed t: ") {
					t.Errorf("the states are %s", got)
				}
			}
		})
	}
	for _, write := range w.faults.Writes() {
		t.Errorf("%s was sent", write)
	}
}

func TestWhatOnlyTheNativeStateManagerDoesIsRefused(t *testing.T) {
	w := newWorld(t)
	w.create(files("web", manifest("web")))
	for name, ask := range map[string]func(*v1alpha1.ServiceWithValues){
		"adopt":              func(s *v1alpha1.ServiceWithValues) { s.Adopt = true },
		"maxAttempts":        func(s *v1alpha1.ServiceWithValues) { s.MaxAttempts = 1 },
		"patches":            func(s *v1alpha1.ServiceWithValues) { s.Patches = []v1alpha1.Patch{{Patch: "{}"}} },
		"serviceAccountName": func(s *v1alpha1.ServiceWithValues) { s.ServiceAccountName = "x" },
		"healthCheckExprs": func(s *v1alpha1.ServiceWithValues) {
			s.HealthCheckExprs = []v1alpha1.HealthCheckExpr{{APIVersion: "v1", Kind: "Secret", Current: "true"}}
		},
		"ignoreDifferences": func(s *v1alpha1.ServiceWithValues) {
			s.IgnoreDifferences = []v1alpha1.IgnoredDifference{{Kind: "MachineService", Managers: []string{"me"}}}
		},
	} {
		set := w.newSet("prod")
		set.Templates["t"] = template("web")
		set.Templates["t"].Namespace = w.namespace
		ask(list(set, "web=t"))
		work, err := w.manager.Compute(t.Context(), set)
		if err != nil {
			t.Fatal(err)
		}
		if len(work.Operations) != 1 || !framework.IsPermanent(work.Operations[0].Err) || !strings.Contains(work.Operations[0].Err.Error(), name) {
			t.Errorf("%s: the operations are %+v", name, work.Operations)
		}
	}
}

func TestSecretsAreShownNowhere(t *testing.T) {
	w := newWorld(t)
	secret := func(name, key, text string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: files(name, "").ObjectMeta, Data: map[string][]byte{key: []byte(text)}}
	}
	w.create(
		files("web", manifest("web", "  configs: [{name: settings, content: in-a-config}]")),
		secret("values", "values.yaml", "container: {env: {TOKEN: from-values}, secretEnv: {PASSWORD: from-secret}, user: xy}"),
		secret("manifest", "service.yaml", manifest("hidden-image", "  placement: {labels: {zone: hidden-zone}}")),
	)
	w.templates(w.set, "web")
	w.set.Templates["manifest"] = template("manifest")
	w.set.Templates["manifest"].Namespace = w.namespace
	w.set.Templates["manifest"].Spec.Resources.LocalSource.Kind = statemanager.KindSecret
	web := list(w.set, "web=web")
	web.ValuesFrom = []v1alpha1.ValuesFrom{{Kind: statemanager.KindSecret, Name: "values"}}
	list(w.set, "other=manifest")
	check := func(when string) {
		t.Helper()
		work, err := w.manager.Compute(t.Context(), w.set)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, o := range work.Operations {
			if err := plan.WriteChangesText(&text, o.Changes, plan.TextOptions{}); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&text, "%q %v", o.Notes, o.Err)
		}
		fmt.Fprintf(&text, "%+v", work.Services)
		for _, s := range []string{"in-a-config", "from-values", "from-secret", `"xy"`, "hidden-image", "hidden-zone"} {
			if strings.Contains(text.String(), s) {
				t.Errorf("%s: %s is shown in\n%s", when, s, text.String())
			}
		}
		w.carryOut(w.set, work)
	}
	check("creation")
	service := w.service("web")
	spec := &service.Spec
	got := []string{spec.Container.Env["TOKEN"], string(spec.Container.SecretEnv["PASSWORD"]), string(spec.Configs[0].Content)}
	if strings.Join(got, " ") != "from-values from-secret in-a-config" {
		t.Errorf("the MachineService has %s", got)
	}
	w.set.ServiceSet.Spec.Services[0].ValuesFrom = nil
	w.set.ServiceSet.Spec.Services[0].Values = "configs: [{name: other, content: from-secret}]"
	check("update")
	w.set.ServiceSet.Spec.Services[0].ValuesFrom = []v1alpha1.ValuesFrom{{Kind: statemanager.KindSecret, Name: "values"}}
	w.set.ServiceSet.Spec.Services[0].Values = "container: {env: {PASSWORD: x}, stopGracePeriod: from-values}"
	check("faults")
}
