package native_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/serviceset/v1alpha1"
	"github.com/operatorkit/operatorkit/resource/statemanager/native"
)

// page returns what the ConfigMap of a chart says on the cluster.
func (w *world) page(service string) map[string]string {
	w.t.Helper()
	return w.onEast(service + "-page").Data
}

func TestChartsOfRegistriesAndRepositoriesWithTLSAndLogins(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	archive := chartOf(t, "app", "1.0.0", nil)

	store := newRegistry()
	plain := serve(t, false, store)
	digest := push(t, strings.TrimPrefix(plain.URL, "http://"), archive, "app", "1.0.0")
	oci := serve(t, true, login("ann", "open-sesame", store))
	web := serve(t, true, login("ann", "open-sesame", repository(map[string][]byte{"app-1.0.0.tgz": archive})))

	w.secret("oci-login", map[string]string{"username": "ann", "password": "open-sesame", "ca.crt": certificate(oci)})
	w.secret("web-login", map[string]string{"username": "ann", "password": "open-sesame", "ca.crt": certificate(web)})
	w.template("oci", v1alpha1.ServiceTemplateSpec{Helm: &v1alpha1.HelmChart{
		Repository: strings.Replace(oci.URL, "https://", "oci://", 1) + "/charts", Chart: "app", Version: "1.0.0", SecretName: "oci-login", Digest: digest,
	}})
	w.template("web", v1alpha1.ServiceTemplateSpec{Helm: &v1alpha1.HelmChart{
		Repository: web.URL, Chart: "app", Version: "1.0.0", SecretName: "web-login", Digest: "sha256:" + digestOf(archive),
	}})
	w.set("a", "east", w.service("oci", "oci"), w.service("web", "web"))
	w.settle("a", "oci Deployed, web Deployed")
	w.quiet("a")
	for _, name := range []string{"oci", "web"} {
		if page := w.page(name); page["version"] != "1.0.0" || page["title"] != "hello" {
			t.Errorf("%s: %v", name, page)
		}
	}

	// Other credentials are looked for when the old ones are not accepted any more.
	w.secret("wrong", map[string]string{"username": "ann", "password": "wrong-password", "ca.crt": certificate(web)})
	w.template("wrong", v1alpha1.ServiceTemplateSpec{Helm: &v1alpha1.HelmChart{Repository: web.URL, Chart: "app", Version: "1.0.0", SecretName: "wrong"}})
	w.set("b", "east", w.service("wrong", "wrong"))
	w.settle("b", "wrong Failed")
	says(t, w.stateOf("b", "wrong").FailureMessage, "chart app 1.0.0", "Secret "+w.namespace+"/wrong")
	w.secret("wrong", map[string]string{"username": "ann", "password": "open-sesame", "ca.crt": certificate(web)})
	w.settle("b", "wrong Deployed")
	w.neverTold("open-sesame", "wrong-password")
}

// neverTold checks that texts are in nothing that anybody was told.
func (w *world) neverTold(secrets ...string) {
	w.t.Helper()
	for _, secret := range secrets {
		for place, text := range map[string]string{"what was told": w.all.String(), "the log": w.log.String()} {
			if strings.Contains(text, secret) {
				w.t.Errorf("%s has %q in it", place, secret)
			}
		}
	}
}

func TestWhatIsWrongWithASourceIsSaid(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	schema := `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"title":{"type":"string","maxLength":10}}}`
	web := serve(t, false, repository(map[string][]byte{
		"app-1.0.0.tgz":    chartOf(t, "app", "1.0.0", nil),
		"strict-1.0.0.tgz": chartOf(t, "strict", "1.0.0", files{"values.schema.json": schema}),
		"escape.tgz":       pack(t, files{"../../etc/passwd": "root", "all.yaml": configMapText("escaped", "x")}),
		"evil-1.0.0.tgz":   pack(t, files{"evil/Chart.yaml": "apiVersion: v2\nname: evil\nversion: 1.0.0\n", "evil/../../x": "x"}),
	}))
	large := serve(t, false, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/index.yaml" {
			_, _ = w.Write([]byte("apiVersion: v1\nentries:\n  large:\n  - name: large\n    version: 1.0.0\n    urls: [large-1.0.0.tgz]\n"))
			return
		}
		w.Header().Set("Content-Length", "104857600")
		block := make([]byte, 1<<20)
		for range 100 {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
	chart := func(repository, name string) *v1alpha1.HelmChart {
		return &v1alpha1.HelmChart{Repository: repository, Chart: name, Version: "1.0.0"}
	}
	pinned := chart(web.URL, "app")
	pinned.Digest = "sha256:" + strings.Repeat("0", 64)
	w.template("pinned", v1alpha1.ServiceTemplateSpec{Helm: pinned})
	w.template("missing", v1alpha1.ServiceTemplateSpec{Helm: chart(web.URL, "absent")})
	w.template("strict", v1alpha1.ServiceTemplateSpec{Helm: chart(web.URL, "strict")})
	w.template("large", v1alpha1.ServiceTemplateSpec{Helm: chart(large.URL, "large")})
	w.template("evil", v1alpha1.ServiceTemplateSpec{Helm: chart(web.URL, "evil")})
	w.template("escape", v1alpha1.ServiceTemplateSpec{Resources: &v1alpha1.FileSource{Artifact: &v1alpha1.Artifact{URL: web.URL + "/escape.tgz"}}})
	w.template("good", v1alpha1.ServiceTemplateSpec{Helm: chart(web.URL, "app")})

	strict := w.service("strict", "strict")
	strict.ValuesFrom = []v1alpha1.ValuesFrom{{Kind: "Secret", Name: "title"}}
	w.secret("title", map[string]string{"values.yaml": "title: much-too-long-a-secret\n"})
	unread := w.service("unread", "good")
	unread.ValuesFrom = []v1alpha1.ValuesFrom{{Kind: "ConfigMap", Name: "nowhere"}}
	broken := w.service("broken", "good")
	broken.Values = "title: [\n"
	w.set("a", "east", w.service("pinned", "pinned"), w.service("missing", "missing"), strict, w.service("large", "large"), w.service("evil", "evil"),
		w.service("escape", "escape"), w.service("good", "good"), unread, broken, w.service("without", "nothing"))
	w.settle("a", "broken Failed, escape Failed, evil Failed, good Deployed, large Failed, missing Failed, pinned Failed, strict Failed, unread Failed, without Failed")
	for service, parts := range map[string][]string{
		"pinned":  {"chart app 1.0.0", "digest", "sha256:0000"},
		"missing": {"absent", "not"},
		"strict":  {"title"},
		"large":   {"chart large 1.0.0", "large", "16"},
		"evil":    {"chart evil 1.0.0", ".."},
		"escape":  {"escape.tgz", ".."},
		"unread":  {"ConfigMap " + w.namespace + "/nowhere", "does not exist", "create it"},
		"broken":  {"values of service " + w.namespace + "/broken", "YAML"},
		"without": {"ServiceTemplate " + w.namespace + "/nothing", "does not exist"},
	} {
		state := w.stateOf("a", service)
		if state.Template == "" {
			t.Errorf("the state of %s names no template", service)
		}
		message := state.FailureMessage
		says(t, message, parts...)
		t.Logf("%s: %s", service, message)
		if strings.Contains(message, "\n") {
			t.Errorf("the message has several lines: %q", message)
		}
	}
	w.neverTold("much-too-long-a-secret")

	// Each is repaired on its own.
	w.secret("title", map[string]string{"values.yaml": "title: fine\n"})
	w.configMap("nowhere", map[string]string{"values.yaml": "title: found\n"})
	w.change("a", func(s *v1alpha1.ServiceSet) {
		for i := range s.Spec.Services {
			if s.Spec.Services[i].Name == "broken" {
				s.Spec.Services[i].Values = "title: mended"
			}
		}
	})
	w.settle("a", "broken Deployed, escape Failed, evil Failed, good Deployed, large Failed, missing Failed, pinned Failed, strict Deployed, unread Deployed, without Failed")
	if got := w.page("strict")["title"]; got != "fine" {
		t.Errorf("title: %q", got)
	}
}

// TestWhatIsWrongWithARegistryIsSaid holds that each fault is told with what to do about it, and that doing it is enough: nobody has to
// touch the set.
func TestWhatIsWrongWithARegistryIsSaid(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	store := newRegistry()
	plain := serve(t, false, store)
	host := strings.TrimPrefix(plain.URL, "http://")
	archive := chartOf(t, "app", "1.0.0", nil)
	push(t, host, archive, "app", "1.0.0")
	secure := serve(t, true, login("ann", "open-sesame", store))
	away := serve(t, false, http.NotFoundHandler())
	away.Close()
	oci := func(s *httptest.Server) string { return "oci://" + s.Listener.Addr().String() + "/charts" }

	chart := func(name, repository, chart, version, secret, digest string) {
		w.template(name, v1alpha1.ServiceTemplateSpec{Helm: &v1alpha1.HelmChart{
			Repository: repository, Chart: chart, Version: version, SecretName: secret, Digest: digest,
		}})
	}
	chart("absent", oci(plain), "absent", "1.0.0", "", "")
	chart("version", oci(plain), "app", "2.0.0", "", "")
	chart("pinned", oci(plain), "app", "1.0.0", "", "sha256:"+strings.Repeat("0", 64))
	chart("anonymous", oci(secure), "app", "1.0.0", "authority", "")
	chart("refused", oci(secure), "app", "1.0.0", "login", "")
	chart("untrusted", oci(secure), "app", "1.0.0", "untrusted", "")
	chart("secretless", oci(secure), "app", "1.0.0", "nowhere", "")
	chart("away", "oci://"+away.Listener.Addr().String()+"/charts", "app", "1.0.0", "", "")
	known := map[string]string{"username": "ann", "password": "open-sesame", "ca.crt": certificate(secure)}
	w.secret("authority", map[string]string{"ca.crt": certificate(secure)})
	w.secret("login", map[string]string{"username": "ann", "password": "wrong-password", "ca.crt": certificate(secure)})
	w.secret("untrusted", map[string]string{"username": "ann", "password": "open-sesame"})

	faults := map[string][]string{
		"absent":     {"chart absent 1.0.0", "the registry does not have it", "publish it"},
		"version":    {"chart app 2.0.0", "1.0.0"},
		"pinned":     {"chart app 1.0.0", "the template wants sha256:0000", "pin the right digest"},
		"anonymous":  {"it needs credentials", "Secret " + w.namespace + "/authority", "username and password"},
		"refused":    {"the credentials of the Secret " + w.namespace + "/login are refused", "username"},
		"untrusted":  {"the certificate of the server is not trusted", "ca.crt"},
		"secretless": {"Secret " + w.namespace + "/nowhere does not exist", "create it"},
		"away":       {"chart app 1.0.0", "connection refused"},
	}
	var services []v1alpha1.ServiceWithValues
	for _, name := range slices.Sorted(maps.Keys(faults)) {
		services = append(services, w.service(name, name))
	}
	w.set("a", "east", services...)
	w.settle("a", "absent Failed, anonymous Failed, away Failed, pinned Failed, refused Failed, secretless Failed, untrusted Failed, version Failed")
	for service, parts := range faults {
		state := w.stateOf("a", service)
		if state.Template == "" {
			t.Errorf("the state of %s names no template", service)
		}
		message := state.FailureMessage
		says(t, message, parts...)
		t.Logf("%s: %s", service, message)
		if c := w.condition("a", service, native.ConditionResolved); c.Status != metav1.ConditionFalse || c.Message != message {
			t.Errorf("%s: the condition is %+v", service, c)
		}
	}

	push(t, host, chartOf(t, "absent", "1.0.0", nil), "absent", "1.0.0")
	push(t, host, chartOf(t, "app", "2.0.0", nil), "app", "2.0.0")
	for _, name := range []string{"authority", "login", "untrusted", "nowhere"} {
		w.secret(name, known)
	}
	w.settle("a", "absent Deployed, anonymous Deployed, away Failed, pinned Failed, refused Deployed, secretless Deployed, untrusted Deployed, version Deployed")

	// Nobody has to answer for what runs, not even after a restart.
	plain.Close()
	secure.Close()
	w.restart()
	w.settle("a", "absent Deployed, anonymous Deployed, away Failed, pinned Failed, refused Deployed, secretless Deployed, untrusted Deployed, version Deployed")
	for _, service := range []string{"absent", "anonymous", "refused", "secretless", "untrusted", "version"} {
		if c := w.condition("a", service, native.ConditionResolved); c.Type != "" {
			t.Errorf("%s: the condition is %+v", service, c)
		}
	}
	w.neverTold("open-sesame", "wrong-password")
}

func TestValuesAreMergedInOrderAndSecretsStaySecret(t *testing.T) {
	w := newPlatform(t)
	w.useEast()
	const shown = `apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-shown"}
data: {a: "{{ .Values.a }}", b: "{{ .Values.nested.b }}", c: "{{ .Values.nested.c }}", d: "{{ .Values.nested.d }}", gone: "{{ .Values.gone }}"}
`
	w.charts(map[string][]byte{"app-1.0.0.tgz": chartOf(t, "app", "1.0.0", files{
		"templates/shown.yaml": shown, "values.yaml": "title: hello\na: chart\ngone: chart\nnested: {b: chart, c: chart, d: chart}\n",
	})})
	w.configMap("first", map[string]string{"values.yaml": "a: first\nnested: {b: first, c: first}\n"})
	w.secret("second", map[string]string{"more": "nested: {b: tell-nobody-b, c: tell-nobody-c}\n"})
	app := w.service("app", "app-1.0.0")
	app.ValuesFrom = []v1alpha1.ValuesFrom{{Kind: "ConfigMap", Name: "first"}, {Kind: "Secret", Name: "second", Key: "more"}}
	app.Values = "nested: {c: own}\ngone: null\n"
	w.set("a", "east", app)
	w.settle("a", "app Deployed")
	got := w.onEast("app-shown").Data
	want := map[string]string{"a": "first", "b": "tell-nobody-b", "c": "own", "d": "chart", "gone": ""}
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s is %q, want %q", key, got[key], value)
		}
	}
	w.quiet("a")

	// Another Secret is another configuration.
	before := w.stateOf("a", "app").LastDeployed.Fingerprint
	w.secret("second", map[string]string{"more": "nested: {b: still-nobody}\n"})
	operatortest.Eventually(t, "the new value is there", func() bool {
		_, err := w.step("a")
		return err == nil && w.onEast("app-shown").Data["b"] == "still-nobody"
	})
	w.settle("a", "app Deployed")
	if after := w.stateOf("a", "app").LastDeployed.Fingerprint; after == before {
		t.Error("the fingerprint is the same")
	}
	// Somebody changes what was made of a Secret: the drift does not show it.
	drifted := w.onEast("app-shown")
	drifted.Data["b"] = "changed"
	if err := w.east.Update(t.Context(), drifted); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the drift is told", func() bool {
		_, err := w.step("a")
		return err == nil && w.condition("a", "app", "Drifted").Status == "True"
	})
	w.neverTold("tell-nobody-b", "tell-nobody-c", "still-nobody")
}

// onEast returns a ConfigMap of the cluster east.
func (w *world) onEast(name string) *corev1.ConfigMap {
	w.t.Helper()
	found := &corev1.ConfigMap{}
	if err := w.east.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, found); err != nil {
		w.t.Fatal(err)
	}
	return found
}
