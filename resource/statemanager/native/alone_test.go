package native_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
	"github.com/operatorkit/operatorkit/resource/statemanager/native/carrier"
)

// badObjects are manifests of which none can be put onto a cluster.
var badObjects = map[string]string{
	"a number among labels":          "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {version: 1.10}}",
	"a boolean among annotations":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {scrape: true}}",
	"labels that are a list":         "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: [a]}",
	"metadata that is a text":        "apiVersion: v1\nkind: ConfigMap\nmetadata: a",
	"no metadata":                    "apiVersion: v1\nkind: ConfigMap",
	"no kind":                        "apiVersion: v1\nmetadata: {name: a}",
	"a kind that is a number":        "apiVersion: v1\nkind: 5\nmetadata: {name: a}",
	"no API version":                 "kind: ConfigMap\nmetadata: {name: a}",
	"an API version of three parts":  "apiVersion: a/b/c\nkind: ConfigMap\nmetadata: {name: a}",
	"a kind that there is not":       "apiVersion: v1\nkind: Config Map/x\nmetadata: {name: a}",
	"a name that is a number":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 5}",
	"a name that can't be":           "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'A b/ü'}",
	"a namespace that can't be":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: '../x'}",
	"items without kinds":            "apiVersion: v1\nkind: List\nitems: [{metadata: {name: a}}]",
	"items that are no objects":      "apiVersion: v1\nkind: List\nitems: [1, a, null]",
	"a list with numbers for labels": "apiVersion: v1\nkind: ConfigMapList\nitems: [{metadata: {name: a, labels: {a: 1}}}]",
	"a number in the data":           "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: 1}",
	"a number in the text data":      "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: 1}",
	"a field that there is not":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nspec: {a: b}",
	"a definition without a spec":    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.example.com}",
	"a definition of a text": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.example.com}\n" +
		"spec: {group: [], names: 5, versions: a}",
	"no YAML":         "a: b: c",
	"no object":       "a text",
	"a deep document": "a: " + strings.Repeat("[", 3000) + strings.Repeat("]", 3000),
}

// badKustomizations are kustomizations that can't be built.
var badKustomizations = map[string]string{
	"a resource that is not there": "resources: [nowhere.yaml]",
	"a resource from elsewhere":    "resources: ['https://example.com/a.yaml']",
	"itself among its resources":   "resources: [.]",
	"a field that there is not":    "resource: [all.yaml]",
	"a patch that is none":         "resources: [all.yaml]\npatches: [{target: {kind: ConfigMap}, patch: 'a text'}]",
	"a patch of what is not there": "resources: [all.yaml]\npatches: [{patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: none}}'}]",
	"a generator without its file": "configMapGenerator: [{name: a, files: [a]}]",
	"no YAML":                      "a: b: c",
	"a text":                       "a text",
}

// sample is all of them, or in short mode a drawn fifth.
func sample[T any](all map[string]T) map[string]T {
	some := maps.Clone(all)
	for name := range all { // in another order each time
		if testing.Short() && len(some) > len(all)/5 {
			delete(some, name)
		}
	}
	return some
}

// TestABadServiceIsTheTroubleOfItselfAlone holds for whatever a chart or manifests come to.
func TestABadServiceIsTheTroubleOfItselfAlone(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	archives := map[string][]byte{"good-1.0.0.tgz": chartOf(t, "good", "1.0.0", nil), "better-2.0.0.tgz": chartOf(t, "better", "2.0.0", nil)}
	broken := map[string]files{
		"a template that fails": {"templates/bad.yaml": `{{ fail "read tcp: connection reset by peer" }}`},
		"a hook with a number":  {"templates/bad.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {helm.sh/hook: pre-install, helm.sh/hook-weight: 5}}"},
		"a definition in crds/ with a number": {"crds/bad.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n" +
			"metadata: {name: as.example.com, labels: {a: 1}}"},
	}
	for name, text := range badObjects {
		broken["a chart with "+name] = files{"templates/bad.yaml": text + "\n"}
	}
	services, of := []v1alpha1.ServiceWithValues{w.service("good", "good-1.0.0")}, map[string]string{}
	charts := sample(broken)
	// Nothing is in the namespace of the first chart before it, so that an API server would not be asked for its objects before its release is recorded.
	const unaskable = "a chart with a name that can't be"
	charts[unaskable] = broken[unaskable]
	for name, further := range charts {
		chart := fmt.Sprintf("bad%d", len(services))
		archives[chart+"-1.0.0.tgz"] = chartOf(t, chart, "1.0.0", further)
		of[chart] = name
		services = append(services, w.service(chart, chart+"-1.0.0"))
	}
	w.charts(archives)
	for name, text := range sample(badObjects) {
		template := fmt.Sprintf("bad%d", len(services))
		w.manifests(template, text)
		of[template] = name
		services = append(services, w.service(template, template))
	}
	kustomizations := map[string]map[string]string{}
	for name, text := range badObjects {
		if name == "a boolean among annotations" {
			continue // Kustomize makes it a text.
		}
		kustomizations["a kustomization of "+name] = map[string]string{"kustomization.yaml": "resources: [all.yaml]", "all.yaml": text}
	}
	for name, text := range badKustomizations {
		kustomizations["a kustomization with "+name] = map[string]string{"kustomization.yaml": text, "all.yaml": configMapText("a", "1")}
	}
	for name, data := range sample(kustomizations) {
		template := fmt.Sprintf("bad%d", len(services))
		w.configMap(template, data)
		w.template(template, v1alpha1.ServiceTemplateSpec{Kustomize: &v1alpha1.FileSource{LocalSource: &v1alpha1.LocalSource{Kind: "ConfigMap", Name: template}}})
		of[template] = name
		services = append(services, w.service(template, template))
	}
	w.set("a", "east", services...)
	check := func(version string) {
		t.Helper()
		for range 3 {
			_, _ = w.step("a")
		}
		states := map[string]v1alpha1.ServiceState{}
		for _, s := range w.get("a").Status.Services {
			states[s.Name] = s
		}
		if s := states["good"]; s.State != v1alpha1.ServiceStateDeployed || w.onEast("good-page").Data["version"] != version {
			t.Errorf("the good one is %+v", s)
		}
		for name, what := range of {
			s := states[name]
			told := s.FailureMessage + w.condition("a", name, native.ConditionHealthy).Message
			if s.State == v1alpha1.ServiceStateDeployed || s.State == "" || told == "" {
				t.Errorf("%s, %s, is %q: %q", name, what, s.State, told)
			}
		}
	}
	check("1.0.0")
	w.restart()
	w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Services[0].Template = "better-2.0.0" })
	check("2.0.0")

	// What is taken out goes, and leaves nothing.
	w.change("a", func(s *v1alpha1.ServiceSet) { s.Spec.Services = s.Spec.Services[:1] })
	w.settle("a", "good Deployed")
	if err := w.client.Delete(t.Context(), w.get("a")); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	w.settle("a", "")
}

// panicking is a carrier that panics for a service named bad, where refuses has nothing for it.
type panicking struct{ *recorder }

func (p panicking) Compute(ctx context.Context, cluster carrier.Cluster, live client.Reader, s *carrier.Service) (*carrier.Result, error) {
	if s.Key.Name == "bad" && p.refuses["bad"] == nil {
		var nothing *carrier.Service
		s.Key = nothing.Key
	}
	return p.recorder.Compute(ctx, cluster, live, s)
}

// TestWhatLooksLikeALostClusterIsTheTroubleOfItsServiceAlone holds while the cluster answers: an API of it, or a webhook, may say whatever an API
// server says.
func TestWhatLooksLikeALostClusterIsTheTroubleOfItsServiceAlone(t *testing.T) {
	charts, manifests := newRecorder(v1alpha1.ServiceTypeHelm), newRecorder(v1alpha1.ServiceTypeResource)
	w := newWorld(t, panicking{charts}, manifests)
	w.useEast()
	w.template("t", v1alpha1.ServiceTemplateSpec{Helm: &v1alpha1.HelmChart{Repository: "https://example.com", Chart: "t", Version: "1.0.0"}})
	w.set("a", "east", w.service("bad", "t"), w.service("good", "t"))
	for name, err := range map[string]error{
		"a panic":            nil,
		"a text":             errors.New("read tcp: connection reset by peer"),
		"a webhook's 401":    apierrors.NewUnauthorized("no"),
		"a webhook's 429":    apierrors.NewTooManyRequests("slow down", 1),
		"an API that is off": apierrors.NewServiceUnavailable("off"),
		"a torn archive":     fmt.Errorf("read the release: %w", io.ErrUnexpectedEOF),
		"a lost connection":  &url.Error{Op: "Get", URL: "https://example.com", Err: errors.New("http: server closed idle connection")},
		"a context":          fmt.Errorf("read it: %w", context.Canceled),
	} {
		t.Run(name, func(t *testing.T) {
			w.restart()
			delete(charts.has, client.ObjectKey{Namespace: w.namespace, Name: "good"})
			charts.refuses["bad"] = err
			for range 3 {
				_, _ = w.step("a")
			}
			if got := w.stateOf("a", "good").State; got != v1alpha1.ServiceStateDeployed {
				t.Errorf("the good one is %q", got)
			}
			if s, told := w.stateOf("a", "bad"), w.condition("a", "bad", native.ConditionResolved); s.State != v1alpha1.ServiceStateFailed || told.Message == "" {
				t.Errorf("the bad one is %q: %q, %q", s.State, s.FailureMessage, told.Message)
			}
		})
	}
}

// TestKindsThatCanNotBeAreNotWatched holds for what a release says of itself, which anybody may have changed.
func TestKindsThatCanNotBeAreNotWatched(t *testing.T) {
	w, charts, _ := decisions(t)
	w.set("a", "east", w.service("good", "chart-1"))
	w.settle("a", "good Deployed")
	charts.has[client.ObjectKey{Namespace: w.namespace, Name: "good"}].Kinds = []schema.GroupVersionKind{{}, {Kind: "ConfigMap"}, {Version: "v1"}}
	w.mustStep("a")
}
