package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
)

func TestBadObjectsAreRefusedWithASentenceThatHelps(t *testing.T) {
	c, namespace := start(t)
	const (
		cluster  = v1alpha1.ClusterDeploymentKind
		multi    = v1alpha1.MultiClusterServiceKind
		set      = v1alpha1.ServiceSetKind
		template = v1alpha1.ServiceTemplateKind
		chain    = v1alpha1.ServiceTemplateChainKind
		provider = v1alpha1.StateManagementProviderKind
	)
	services := func(list string) string { return "spec: {serviceSpec: {services: [" + list + "]}}" }
	tests := []struct {
		name, kind, document, want string
	}{
		{"a service without a template", cluster, services(`{name: a}`),
			"set template; or set templateChain and version, which name a template together"},
		{"a chain without a version", cluster, services(`{name: a, templateChain: a}`),
			"set template; or set templateChain and version, which name a template together"},
		{"a version without a chain", cluster, services(`{name: a, version: 1.0.0}`),
			"set template; or set templateChain and version, which name a template together"},
		{"a service without a name", cluster, services(`{template: a-1}`),
			"spec.serviceSpec.services[0].name: Required value"},
		{"a service's name with capitals", cluster, services(`{name: CertManager, template: a-1}`),
			"a service's name is lower-case letters, digits and '-'"},
		{"a service's name that is too long for a release", cluster, services(fmt.Sprintf(`{name: %s, template: a-1}`, strings.Repeat("a", 54))),
			"may not be more than 53"},
		{"a namespace with a dot", cluster, services(`{name: a, namespace: a.b, template: a-1}`),
			"a namespace is lower-case letters, digits and '-'"},
		{"a service twice", cluster, services(`{name: a, template: a-1}, {name: a, template: a-2}`),
			`spec.serviceSpec.services[1]: Duplicate value: {"name":"a","namespace":"default"}`},
		{"a service twice, once with the default namespace in words", cluster, services(`{name: a, template: a-1}, {name: a, namespace: default, template: a-2}`),
			`spec.serviceSpec.services[1]: Duplicate value`},
		{"a service that depends on itself", cluster, services(`{name: a, template: a-1, dependsOn: [{name: a}]}`),
			"a service can't depend on itself: remove it from its dependsOn"},
		{"a service that depends on itself, with its namespace in words", cluster, services(`{name: a, template: a-1, dependsOn: [{name: a, namespace: default}]}`),
			"a service can't depend on itself"},
		{"a dependency twice", cluster, services(`{name: a, template: a-1}, {name: b, template: b-1, dependsOn: [{name: a}, {name: a}]}`),
			"spec.serviceSpec.services[1].dependsOn[1]: Duplicate value"},
		{"a field that is misspelt", cluster, services(`{name: a, template: a-1, depends: [{name: b}]}`),
			`unknown field "spec.serviceSpec.services[0].depends"`},
		{"values from a Deployment", cluster, services(`{name: a, template: a-1, valuesFrom: [{kind: Deployment, name: x}]}`),
			`supported values: "ConfigMap", "Secret"`},
		{"a target path with an equals sign", cluster, services(`{name: a, template: a-1, valuesFrom: [{kind: Secret, name: x, targetPath: "a=b"}]}`),
			"valuesFrom[0].targetPath"},
		{"an ignored difference of nothing", cluster, services(`{name: a, template: a-1, ignoreDifferences: [{kind: Deployment}]}`),
			"nothing would be ignored: set jsonPointers or managers"},
		{"an ignored difference that is no JSON pointer", cluster, services(`{name: a, template: a-1, ignoreDifferences: [{kind: Deployment, jsonPointers: [spec.replicas]}]}`),
			"ignoreDifferences[0].jsonPointers[0]"},
		{"an ignored object as a whole", cluster, services(`{name: a, template: a-1, ignoreDifferences: [{kind: Deployment, jsonPointers: [""]}]}`),
			"ignoreDifferences[0].jsonPointers[0]"},
		{"a patch of operations without a target", cluster, services(`{name: a, template: a-1, patches: [{patch: "[{op: remove, path: /a}]"}]}`),
			"a list of operations (RFC 6902) does not say what it changes: set target"},
		{"a patch of operations in lines without a target", cluster, services(`{name: a, template: a-1, patches: [{patch: "- {op: remove, path: /a}"}]}`),
			"a list of operations (RFC 6902) does not say what it changes: set target"},
		{"a patch of nothing", cluster, services(`{name: a, template: a-1, patches: [{patch: ""}]}`),
			"patches[0].patch"},
		{"a patch with an empty target", cluster, services(`{name: a, template: a-1, patches: [{patch: "a: 1", target: {}}]}`),
			"patches[0].target"},
		{"a health expression of no kind", cluster, services(`{name: a, template: a-1, healthCheckExprs: [{apiVersion: v1, current: "true"}]}`),
			"healthCheckExprs[0].kind: Required value"},
		{"a health expression for nothing", cluster, services(`{name: a, template: a-1, healthCheckExprs: [{apiVersion: v1, kind: Secret, failed: "true"}]}`),
			"healthCheckExprs[0].current: Required value"},
		{"a service account of another namespace", cluster, services(`{name: a, template: a-1, serviceAccountName: "kube-system:admin"}`),
			"serviceAccountName"},
		{"an object of a values template without a kind", cluster, services(`{name: a, template: a-1, valuesTemplate: {objects: [{as: x, name: y}]}}`),
			"valuesTemplate.objects[0].kind: Required value"},
		{"an object that a template can't name", cluster, services(`{name: a, template: a-1, valuesTemplate: {objects: [{as: x-y, kind: ConfigMap}]}}`),
			"valuesTemplate.objects[0].as"},
		{"two objects of one name", cluster, services(`{name: a, template: a-1, valuesTemplate: {objects: [{as: x, kind: ConfigMap}, {as: x, kind: Secret}]}}`),
			"valuesTemplate.objects[1]: Duplicate value"},
		{"an unknown action", cluster, services(`{name: a, template: a-1, helmAction: Upgrade}`),
			`supported values: "Install", "Uninstall"`},
		{"a window without a schedule", cluster, `spec: {serviceSpec: {changeWindows: [{schedule: "", duration: 1h}]}}`,
			"a schedule is a minute, an hour, a day of the month, a month and a day of the week"},
		{"a window with six fields", cluster, `spec: {serviceSpec: {changeWindows: [{schedule: "0 0 22 * * MON", duration: 1h}]}}`,
			"a schedule is a minute, an hour, a day of the month, a month and a day of the week"},
		{"a window for no time", cluster, `spec: {serviceSpec: {changeWindows: [{schedule: "0 22 * * MON", duration: 1s}]}}`,
			"a window lasts for a minute at least, and for 744h at most"},
		{"a window of another kind", cluster, `spec: {serviceSpec: {changeWindows: [{kind: Maybe, schedule: "0 22 * * MON", duration: 1h}]}}`,
			`supported values: "Allow", "Deny"`},
		{"an unknown sync mode", cluster, `spec: {serviceSpec: {syncMode: Sometimes}}`,
			`supported values: "OneTime", "Continuous"`},
		{"a priority of zero", cluster, `spec: {serviceSpec: {priority: 0}}`,
			"should be greater than or equal to 1"},
		{"a cluster that manages itself", cluster, `spec: {serviceSpec: {provider: {selfManagement: true}}}`,
			"selfManagement is for services of the management cluster, which a MultiClusterService lists: leave it out here"},
		{"a cluster with a dot in its name", cluster, `metadata: {name: a.b}`,
			"a cluster's name is at most 63 lower-case letters, digits and '-'"},
		{"a cluster with the name of a set of the management cluster", cluster, `metadata: {name: management-0123456789abcdef}`,
			"names like this one belong to the service sets of the management cluster"},

		{"services for no cluster", multi, `spec: {serviceSpec: {services: [{name: a, template: a-1}]}}`,
			"no cluster would get these services: set clusterSelector ({} selects every cluster), or serviceSpec.provider.selfManagement"},
		{"a bad service for many clusters", multi, `spec: {clusterSelector: {}, serviceSpec: {services: [{name: a}]}}`,
			"set template; or set templateChain and version"},

		{"services that come after themselves", multi, `{metadata: {name: self}, spec: {clusterSelector: {}, dependsOn: [other, self]}}`,
			"a MultiClusterService can't depend on itself: remove it from its dependsOn"},
		{"services that come twice after others", multi, `spec: {clusterSelector: {}, dependsOn: [other, other]}`,
			`spec.dependsOn[1]: Duplicate value: "other"`},

		{"a set of nobody", set, `spec: {provider: {name: native}}`,
			"a service set belongs to a cluster, to a multiClusterService, or to both: set one"},
		{"a set without a provider", set, `spec: {cluster: a}`,
			"spec.provider: Required value"},
		{"a set with a service twice", set, `spec: {cluster: a, provider: {name: native}, services: [{name: a, template: a-1}, {name: a, template: a-2}]}`,
			"spec.services[1]: Duplicate value"},

		{"a template of nothing", template, `spec: {}`,
			"a template is one of helm, kustomize and resources: set exactly one"},
		{"a template of two things", template, `spec: {helm: {repository: "oci://r", chart: a, version: 1.0.0}, kustomize: {localSource: {kind: ConfigMap, name: a}}}`,
			"a template is one of helm, kustomize and resources: set exactly one"},
		{"a chart in a folder", template, `spec: {helm: {repository: /srv/charts, chart: a, version: 1.0.0}}`,
			"a repository is an address that begins with https://, http://, oci://, git+https:// or git+http://"},
		{"a chart in Git without a ref", template, `spec: {helm: {repository: "git+https://r/a", chart: a, version: 1.0.0}}`,
			"a repository of Git has a ref, and no other one has"},
		{"a chart of a registry with a ref", template, `spec: {helm: {repository: "oci://r", chart: a, version: 1.0.0, ref: refs/heads/main}}`,
			"a repository of Git has a ref, and no other one has"},
		{"a chart in Git with a short ref", template, `spec: {helm: {repository: "git+https://r/a", chart: a, version: 1.0.0, ref: main}}`,
			"a ref is refs/heads/ and a branch, refs/tags/ and a tag, or the 40 hexadecimal digits of a commit"},
		{"a chart in Git with a digest", template, fmt.Sprintf(`spec: {helm: {repository: "git+https://r/a", chart: a, version: 1.0.0, ref: refs/tags/v1, digest: "sha256:%064d"}}`, 0),
			"is pinned by a commit as its ref, not by a digest"},
		{"a chart of a web server with a signature", template, `spec: {helm: {repository: "https://r", chart: a, version: 1.0.0, verify: {cosignKeys: [x]}}}`,
			"only what is in an OCI registry has signatures"},
		{"files in Git without a ref", template, `spec: {resources: {artifact: {url: "git+https://r/a"}}}`,
			"a repository of Git has a ref, and no other address has"},
		{"files in Git with a digest", template, fmt.Sprintf(`spec: {resources: {artifact: {url: "git+https://r/a", ref: refs/tags/v1, digest: "sha256:%064d"}}}`, 0),
			"is pinned by a commit as its ref, not by a digest"},
		{"files in Git with a signature", template, `spec: {resources: {artifact: {url: "git+https://r/a", ref: refs/tags/v1, verify: {cosignKeys: [x]}}}}`,
			"only what is in an OCI registry has signatures"},
		{"a signature by nobody", template, `spec: {resources: {artifact: {url: "oci://r/a:1", verify: {cosignKeys: []}}}}`,
			"should have at least 1 items"},
		{"a chart without a version", template, `spec: {helm: {repository: "oci://r", chart: a}}`,
			"spec.helm.version: Required value"},
		{"a chart with a range of versions", template, `spec: {helm: {repository: "oci://r", chart: a, version: ">=1.0"}}`,
			"a chart's version is one semantic version like 1.2.3, not a range"},
		{"a chart with a short digest", template, `spec: {helm: {repository: "oci://r", chart: a, version: 1.0.0, digest: "sha256:12"}}`,
			"a digest is sha256: and 64 hexadecimal digits"},
		{"files from nowhere", template, `spec: {resources: {path: a}}`,
			"files come from localSource or from artifact: set exactly one"},
		{"files from two places", template, `spec: {resources: {localSource: {kind: Secret, name: a}, artifact: {url: "oci://r/a:1"}}}`,
			"files come from localSource or from artifact: set exactly one"},
		{"files outside of their source", template, `spec: {kustomize: {path: a/../../b, localSource: {kind: Secret, name: a}}}`,
			"a path is relative to the source and does not lead out of it"},

		{"an empty chain", chain, `spec: {supportedTemplates: []}`,
			"should have at least 1 items"},
		{"a template twice in a chain", chain, `spec: {supportedTemplates: [{name: a-1}, {name: a-1}]}`,
			"spec.supportedTemplates[1]: Duplicate value"},
		{"an upgrade twice", chain, `spec: {supportedTemplates: [{name: a-1, availableUpgrades: [{name: a-2}, {name: a-2, version: 2.0.0}]}, {name: a-2}]}`,
			"spec.supportedTemplates[0].availableUpgrades[1]: Duplicate value"},
		{"an upgrade to a template that is not in the chain", chain, `spec: {supportedTemplates: [{name: a-1, availableUpgrades: [{name: a-2}]}]}`,
			"every template in availableUpgrades has to be listed in supportedTemplates too, if only by its name"},
		{"an upgrade with two versions", chain, `spec: {supportedTemplates: [{name: a-1, availableUpgrades: [{name: a-2}, {name: a-3, version: 3.0.0}]},
			{name: a-2, availableUpgrades: [{name: a-3, version: 3.0.1}]}, {name: a-3}]}`,
			"the chain contradicts itself: a template in availableUpgrades has to have the same version wherever it is listed, written in the same way"},
		{"an upgrade to itself", chain, `spec: {supportedTemplates: [{name: a-1, availableUpgrades: [{name: a-1}]}]}`,
			"a template can't be an upgrade of itself"},

		{"a provider of all service sets", provider, `spec: {selector: {}}`,
			"the selector has to ask for a label, else the state manager would take the service sets of all providers: set matchLabels"},
		{"a provider of all service sets but some", provider, `spec: {selector: {matchExpressions: [{key: a, operator: DoesNotExist}]}}`,
			"the selector has to ask for a label"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := c.Create(t.Context(), object(t, tt.kind, namespace, tt.document), client.DryRunAll)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the object was not refused as it should be:\ngot:  %v\nwant: …%s…", err, tt.want)
			}
		})
	}
}

func TestGoodObjectsAreAccepted(t *testing.T) {
	c, namespace := start(t)
	tests := []struct {
		name, kind, document string
	}{
		{"a cluster without services", v1alpha1.ClusterDeploymentKind, `{}`},
		{"a cluster with everything", v1alpha1.ClusterDeploymentKind, `
spec:
  kubeconfig: {secretName: prod, key: kubeconfig}
  serviceSpec:
    provider: {name: sveltos, config: {tier: 3, anything: [1, true]}}
    priority: 300
    changeWindows: [{schedule: "0 22 * * MON-FRI", duration: 8h, timeZone: Europe/Berlin}, {kind: Deny, schedule: "0 0 24 12 *", duration: 72h, removals: true}]
    syncMode: ContinuousWithDriftDetection
    stopOnConflict: true
    continueOnError: true
    reload: true
    services:
    - {name: cert-manager, namespace: cert-manager, templateChain: cert-manager, version: 1.17.1}
    - name: ingress
      template: ingress-4-12-0
      version: "4.12"
      values: "a: {{ .Cluster }}"
      valuesFrom: [{kind: ConfigMap, name: a}, {kind: Secret, name: b, key: c}]
      dependsOn: [{name: cert-manager, namespace: cert-manager}]
      disable: true
      helmOptions: {wait: true, timeout: 5m, atomic: false, labels: {a: b}}
      helmAction: Uninstall
      patches: [{patch: "[{op: remove, path: /a}]", target: {kind: Deployment}}, {patch: "{apiVersion: v1, kind: Service, metadata: {name: a}}"}]
      healthCheckExprs: [{apiVersion: example.com/v1, kind: Shop, current: "status.phase == 'Open'", failed: "has(status.error)", inProgress: "false"}]
    - {name: cert-manager, template: other-1, dependsOn: [{name: cert-manager, namespace: cert-manager}]}`},
		{"services for every cluster", v1alpha1.MultiClusterServiceKind, `spec: {clusterSelector: {}, serviceSpec: {services: [{name: a, template: a-1}]}}`},
		{"services that come after others", v1alpha1.MultiClusterServiceKind, `spec: {clusterSelector: {}, dependsOn: [base, network]}`},
		{"services for the management cluster", v1alpha1.MultiClusterServiceKind, `spec: {serviceSpec: {provider: {selfManagement: true}}}`},
		{"a set", v1alpha1.ServiceSetKind, `spec: {multiClusterService: a, provider: {selfManagement: true}, services: [{name: a, template: a-1, upgradingTo: {template: a-3}}], removing: [{name: b}]}`},
		{"a chart", v1alpha1.ServiceTemplateKind, `spec: {version: "2024-spring", helm: {repository: "https://charts.example.org/stable", chart: a, version: v1.2.3-rc.1+build.5, secretName: s}}`},
		{"a kustomization", v1alpha1.ServiceTemplateKind, `spec: {kustomize: {path: overlays/prod, artifact: {url: "oci://registry.example.org/a:1.0.0"}}}`},
		{"manifests", v1alpha1.ServiceTemplateKind, `spec: {resources: {localSource: {kind: ConfigMap, name: a}}}`},
		{"a chain with a way back", v1alpha1.ServiceTemplateChainKind, `spec: {supportedTemplates: [{name: a-1, availableUpgrades: [{name: a-2, version: 2.0.0}]}, {name: a-2, availableUpgrades: [{name: a-1}]}]}`},
		{"a chain that gives a template its version more than once", v1alpha1.ServiceTemplateChainKind, `spec: {supportedTemplates: [
			{name: a-1, availableUpgrades: [{name: a-2, version: 2.0.0}, {name: a-3, version: 3.0.0}]},
			{name: a-2, availableUpgrades: [{name: a-3, version: 3.0.0}, {name: a-4}]}, {name: a-3, availableUpgrades: [{name: a-4, version: ""}]},
			{name: a-4, availableUpgrades: [{name: a-3}]}]}`},
		{"a provider", v1alpha1.StateManagementProviderKind, `spec: {selector: {matchExpressions: [{key: a, operator: In, values: [p, q]}]}, suspend: true}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := c.Create(t.Context(), object(t, tt.kind, namespace, tt.document), client.DryRunAll); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestWhatMustNotChangeCanNotChange(t *testing.T) {
	c, namespace := start(t)
	tests := []struct {
		name, kind, before, after, want string
	}{
		{"the cluster of a set", v1alpha1.ServiceSetKind,
			`spec: {cluster: a, provider: {name: native}}`, `spec: {cluster: b, provider: {name: native}}`,
			"the cluster can't change: its services would be left behind there"},
		{"the cluster of a set goes away", v1alpha1.ServiceSetKind,
			`spec: {cluster: a, multiClusterService: m, provider: {name: native}}`, `spec: {multiClusterService: m, provider: {name: native}}`,
			"the cluster can't change"},
		{"the owner of a set", v1alpha1.ServiceSetKind,
			`spec: {cluster: a, provider: {name: native}}`, `spec: {cluster: a, multiClusterService: m, provider: {name: native}}`,
			"the owner can't change: delete the service set instead"},
		{"the provider of a set", v1alpha1.ServiceSetKind,
			`spec: {cluster: a, provider: {name: native}}`, `spec: {cluster: a, provider: {name: sveltos}}`,
			"the provider's name can't change once it is set"},
		{"the provider of a cluster", v1alpha1.ClusterDeploymentKind,
			`spec: {serviceSpec: {provider: {name: native}}}`, `spec: {serviceSpec: {provider: {name: sveltos}}}`,
			"the provider's name can't change once it is set: delete this object and create another one"},
		{"the provider of a cluster goes away", v1alpha1.ClusterDeploymentKind,
			`spec: {serviceSpec: {provider: {name: sveltos}}}`, `spec: {serviceSpec: {provider: {config: {a: 1}}}}`,
			"the provider's name can't change once it is set"},
		{"the provider of a cluster that names none", v1alpha1.ClusterDeploymentKind,
			`spec: {serviceSpec: {services: []}}`, `spec: {serviceSpec: {provider: {name: sveltos}}}`,
			"create another one (without a name, it is native)"},
		{"the provider of a cluster whose name for it is empty", v1alpha1.ClusterDeploymentKind,
			`spec: {serviceSpec: {provider: {name: ""}}}`, `spec: {serviceSpec: {provider: {name: sveltos}}}`,
			"the provider's name can't change once it is set"},
		{"the provider of services that name none", v1alpha1.MultiClusterServiceKind,
			`spec: {clusterSelector: {}}`, `spec: {clusterSelector: {}, serviceSpec: {provider: {name: sveltos}}}`,
			"the provider's name can't change once it is set"},
		{"the provider of a set that names none", v1alpha1.ServiceSetKind,
			`spec: {cluster: a, provider: {}}`, `spec: {cluster: a, provider: {name: sveltos}}`,
			"the provider's name can't change once it is set"},
		{"a template", v1alpha1.ServiceTemplateKind,
			`spec: {helm: {repository: "oci://r", chart: a, version: 1.0.0}}`, `spec: {helm: {repository: "oci://r", chart: a, version: 1.0.1}}`,
			"a template can't change, because services that use it would change without a step: create a template with another name"},

		{"but the provider's config may", v1alpha1.ClusterDeploymentKind,
			`spec: {serviceSpec: {provider: {name: native, config: {a: 1}}}}`, `spec: {serviceSpec: {provider: {name: native, config: {a: 2}}}}`, ""},
		{"and the one that it is anyway may be named later", v1alpha1.ClusterDeploymentKind,
			`spec: {serviceSpec: {services: []}}`, `spec: {serviceSpec: {provider: {name: native}}}`, ""},
		{"and be left out", v1alpha1.ClusterDeploymentKind,
			`spec: {serviceSpec: {provider: {name: native}}}`, `spec: {serviceSpec: {provider: {config: {a: 1}}}}`, ""},
		{"and a chain may grow and shrink", v1alpha1.ServiceTemplateChainKind,
			`spec: {supportedTemplates: [{name: a-1}]}`, `spec: {supportedTemplates: [{name: a-2}, {name: a-3}]}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := object(t, tt.kind, namespace, tt.before)
			if err := c.Create(t.Context(), before); err != nil {
				t.Fatal(err)
			}
			after := object(t, tt.kind, namespace, tt.after)
			after.SetName(before.GetName())
			after.SetResourceVersion(before.GetResourceVersion())
			err := c.Update(t.Context(), after)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("the change was refused: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("the change was not refused as it should be:\ngot:  %v\nwant: …%s…", err, tt.want)
			}
		})
	}
}

func TestAProviderThatCarriesNothingOutMayChange(t *testing.T) {
	c, namespace := start(t)
	for kind, spec := range map[string]string{
		v1alpha1.ClusterDeploymentKind:   `{serviceSpec: {provider: {name: sveltos}}}`,
		v1alpha1.MultiClusterServiceKind: `{clusterSelector: {}, serviceSpec: {provider: {name: sveltos}}}`,
	} {
		o := object(t, kind, namespace, "spec: "+spec)
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		for _, is := range []struct {
			status, reason string
			mayChange      bool
		}{
			{"False", v1alpha1.ReasonNotBlocked, false}, {"True", v1alpha1.ReasonFailed, false},
			{"True", v1alpha1.ReasonInvalid, true}, {"True", v1alpha1.ReasonProviderMissing, true},
		} {
			status := object(t, kind, namespace, fmt.Sprintf(
				`status: {conditions: [{type: Blocked, status: %q, reason: %s, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}`, is.status, is.reason))
			status.SetName(o.GetName())
			if err := c.Status().Patch(t.Context(), status, client.Merge); err != nil {
				t.Fatal(err)
			}
			back := object(t, kind, namespace, `spec: {serviceSpec: {provider: {name: native}}}`)
			back.SetName(o.GetName())
			if err := c.Patch(t.Context(), back, client.Merge, client.DryRunAll); (err == nil) != is.mayChange {
				t.Errorf("%s with Blocked=%s %s: %v", kind, is.status, is.reason, err)
			}
		}
	}
}
