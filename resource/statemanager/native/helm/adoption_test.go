package helm_test

import (
	"fmt"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/framework/plan"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/helm"
)

// install installs a chart with Helm's own library into the namespace of the kit, by server-side apply or as Helm 3 does it.
func (k *kit) install(chart files, serverSide bool) {
	k.t.Helper()
	cfg := operatortest.Start(k.t).RESTConfig()
	flags := genericclioptions.NewConfigFlags(false)
	flags.WrapConfigFn = func(*rest.Config) *rest.Config { return cfg }
	flags.Namespace = &k.namespace
	config := action.NewConfiguration()
	if err := config.Init(flags, k.namespace, "secrets"); err != nil {
		k.t.Fatal(err)
	}
	install := action.NewInstall(config)
	install.ReleaseName, install.Namespace, install.WaitStrategy, install.ServerSideApply = "web", k.namespace, kube.HookOnlyStrategy, serverSide
	fetched, err := source{files: chart}.Chart(k.t.Context())
	if err == nil {
		_, err = install.RunWithContext(k.t.Context(), fetched.Chart, map[string]any{})
	}
	if err != nil {
		k.t.Fatal(err)
	}
}

func adopting(s *carrier.Service) { s.Entry.Adopt = true }

// labelledChart has a hook that leaves something behind, and further labels on its page.
func labelledChart(version, labels string) files {
	return hookedChart(version).with("templates/labelled.yaml",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web-labelled, labels: {"+labels+"}}\ndata: {text: same}\n")
}

// marksOnly checks that changes are nothing but marks.
func marksOnly(t *testing.T, changes []plan.Change) {
	t.Helper()
	for _, change := range changes {
		for _, field := range change.Fields {
			if field.Path != "owner" && !strings.Contains(field.Path, "services.operatorkit.io/") {
				t.Errorf("the plan changes %s of %s", field.Path, change.Object)
			}
		}
	}
}

func (k *kit) labelled() *corev1.ConfigMap {
	k.t.Helper()
	return k.configMap("web-labelled")
}

func TestAReleaseOfHelmIsTakenOverAsItIsWhenAskedFor(t *testing.T) {
	for name, serverSide := range map[string]bool{"by server-side apply": true, "as Helm 3 does it": false} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t, helm.Config{})
			k.install(labelledChart("1.0.0", "tier: front"), serverSide)
			page, hook, before := k.configMap("web-page").UID, k.configMap("web-hook"), k.contents(k.namespace)
			k.fails(k.service(labelledChart("1.0.0", "tier: front")), "is not from a service set", "take it over with adopt")

			service := k.service(labelledChart("1.0.0", "tier: front"), adopting)
			result := k.compute(service)
			marksOnly(t, result.Changes)
			equal(t, "the plan", summary(result.Changes),
				[]string{"update HelmRelease web", "update ConfigMap web-labelled", "update ConfigMap web-page", "update ConfigMap web-hook"})
			equal(t, "the notes", result.Notes, []string{"it is taken over as it is: it is what the service wants"})
			k.carryOut(service, result)
			result = k.compute(service)
			if len(result.Changes)+len(result.Drift) > 0 || result.Found == nil || result.Found.Fingerprint != service.Fingerprint {
				t.Errorf("it is %+v with the drift\n%s and the changes\n%s", result.Found, text(result.Drift), text(result.Changes))
			}
			equal(t, "helm list", k.listed(), []string{"web 1 deployed page-1.0.0"})
			equal(t, "the contents", k.contents(k.namespace), before)
			if now := k.configMap("web-hook"); now.UID != hook.UID || k.configMap("web-page").UID != page {
				t.Error("something was made anew, or a hook was run")
			}

			// From here on it is one of ours: what a new chart does not have goes, whoever has written it.
			next := k.service(labelledChart("1.1.0", ""), adopting)
			k.settle(next)
			equal(t, "helm list", k.listed(), []string{"web 2 deployed page-1.1.0"})
			if tier, there := k.labelled().Labels["tier"]; there {
				t.Errorf("the label of the former chart is still %s", tier)
			}
			k.eventually(k.service(nil, gone), "it is gone", func(r *carrier.Result) bool { return r.Found == nil })
			equal(t, "helm list", k.listed(), nil)
		})
	}
}

func TestAReleaseThatIsNotWhatTheServiceWantsIsTakenOverBeforeItIsUpgraded(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.install(labelledChart("1.0.0", "tier: front"), true)
	k.edit("web-page", `{"data":{"text":"by hand"}}`)
	service := k.service(labelledChart("1.1.0", "tier: back"), adopting)
	result := k.compute(service)
	marksOnly(t, result.Changes)
	for _, part := range []string{"upgraded then", "chart page 1.1.0", "ConfigMap " + k.namespace + "/web-labelled"} {
		if !strings.Contains(strings.Join(result.Notes, "\n"), part) {
			t.Errorf("nothing is said of %q: %q", part, result.Notes)
		}
	}
	k.carryOut(service, result)
	equal(t, "helm list", k.listed(), []string{"web 1 deployed page-1.0.0"})
	if got := k.configMap("web-page").Data["text"]; got != "by hand" || k.labelled().Labels["tier"] != "front" {
		t.Errorf("the text is %q, and the tier %q", got, k.labelled().Labels["tier"])
	}
	result = k.compute(service)
	if said := text(result.Changes); !strings.Contains(said, `"back"`) || !strings.Contains(said, "by hand") {
		t.Errorf("the plan is\n%s", said)
	}
	k.settle(service)
	equal(t, "helm list", k.listed(), []string{"web 2 deployed page-1.1.0"})
	if got := k.configMap("web-page").Data["text"]; got != "hello" || k.labelled().Labels["tier"] != "back" {
		t.Errorf("the text is %q, and the tier %q", got, k.labelled().Labels["tier"])
	}
}

// TestTheLabelsOfFluxAreNoReasonForAnUpgrade holds that a release which Flux has made of the same chart is what the service wants.
func TestTheLabelsOfFluxAreNoReasonForAnUpgrade(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.install(labelledChart("1.0.0", "tier: front, helm.toolkit.fluxcd.io/name: web, helm.toolkit.fluxcd.io/namespace: shop"), true)
	k.settle(k.service(labelledChart("1.0.0", "tier: front"), adopting))
	equal(t, "helm list", k.listed(), []string{"web 1 deployed page-1.0.0"})
	k.settle(k.service(labelledChart("1.1.0", "tier: front"), adopting))
	if labels := k.labelled().Labels; labels["helm.toolkit.fluxcd.io/name"] != "" || labels["tier"] != "front" {
		t.Errorf("after an upgrade the labels are %v", labels)
	}
}

func TestTakingAReleaseOfHelmOverEndsWellAfterACrashAtEveryWrite(t *testing.T) {
	for n := 1; ; n++ {
		k := newKit(t, helm.Config{})
		k.install(labelledChart("1.0.0", "tier: front"), false)
		uid := k.configMap("web-page").UID
		rule := k.faults.At(k.faults.Count()+n, operatortest.InternalError())
		service := k.service(labelledChart("1.0.0", "tier: front"), adopting)
		_ = k.carrier.CarryOut(t.Context(), k.cluster, service, k.compute(service))
		k.settle(service)
		equal(t, fmt.Sprintf("helm list after write %d", n), k.listed(), []string{"web 1 deployed page-1.0.0"})
		if k.configMap("web-page").UID != uid || !service.Owner.Marked(k.configMap("web-page")) || !service.Owner.Marked(k.configMap("web-hook")) {
			t.Errorf("after write %d: %v", n, k.configMap("web-page").ObjectMeta)
		}
		if rule.Hits() == 0 {
			return
		}
	}
}

func TestWhatIsNotARestingReleaseOfNobodyIsNotTakenOver(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.settle(k.service(pageChart("1.0.0"), keptBy(keeper("one", "here"))))
	k.fails(k.service(pageChart("1.0.0"), keptBy(keeper("two", "here")), adopting), `belongs to`, `operator "one"`)

	k = newKit(t, helm.Config{})
	k.install(pageChart("1.0.0"), true)
	k.touch(k.revision("1"), `{"metadata":{"labels":{"status":"failed"}}}`)
	err := k.failure(k.service(pageChart("1.0.0"), adopting), "can't be taken over while its latest revision, 1, is failed")
	if !carrier.IsConflict(err) {
		t.Errorf("it is no conflict: %v", err)
	}
}

// TestTheWayBackOfARelease is what the documentation of package native says.
func TestTheWayBackOfARelease(t *testing.T) {
	k := newKit(t, helm.Config{})
	k.install(labelledChart("1.0.0", "tier: front"), true)
	k.settle(k.service(labelledChart("1.0.0", "tier: front"), adopting))
	k.settle(k.service(labelledChart("1.1.0", "tier: front"), adopting))
	secrets := &corev1.SecretList{}
	if err := k.user.List(t.Context(), secrets, client.InNamespace(k.namespace), client.MatchingLabels{"owner": "helm", "name": "web"}); err != nil {
		t.Fatal(err)
	}
	for i := range secrets.Items {
		k.touch(&secrets.Items[i], fmt.Sprintf(`{"metadata":{"labels":{%q:null,%q:null,%q:null}}}`, carrier.OwnerLabel, carrier.ServiceLabel, carrier.ServiceNamespaceLabel))
	}
	before := map[string]types.UID{"web-page": k.configMap("web-page").UID, "web-hook": k.configMap("web-hook").UID}
	k.fails(k.service(labelledChart("1.1.0", "tier: front")), "is not from a service set")
	if result := k.compute(k.service(nil, gone)); result.Found != nil || len(result.Changes) > 0 {
		t.Errorf("it would be taken away: %s", text(result.Changes))
	}
	equal(t, "helm list", k.listed(), []string{"web 2 deployed page-1.1.0"})
	for name, uid := range before {
		if k.configMap(name).UID != uid {
			t.Errorf("%s is another one", name)
		}
	}
	// And forth again.
	k.settle(k.service(labelledChart("1.1.0", "tier: front"), adopting))
	equal(t, "helm list", k.listed(), []string{"web 2 deployed page-1.1.0"})
}
