package machines_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

func object(name string) *v1alpha1.ObjectReference { return &v1alpha1.ObjectReference{Name: name} }

func key(name, key string) *v1alpha1.KeyReference {
	return &v1alpha1.KeyReference{Name: name, Key: key}
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
}

func texts(data map[string]string) map[string][]byte {
	all := map[string][]byte{}
	for k, v := range data {
		all[k] = []byte(v)
	}
	return all
}

// ask asks the only container of a service, which works.
func (w *world) ask(svc *v1alpha1.MachineService, path, name, value string) string {
	w.t.Helper()
	w.want(svc, "Ready=True")
	port := svc.Status.Machines[0].Containers[0].Ports[0]
	address := fmt.Sprintf("http://%s:%d%s?%s", port.HostIP, port.PublishedPort, path, url.Values{name: {value}}.Encode())
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, address, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(body)
}

// wantEnv waits until the only container of a service has a variable.
func (w *world) wantEnv(svc *v1alpha1.MachineService, name, want string) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("%s is %q in the container", name, want), func() error {
		if got := w.ask(svc, "/env", "name", name); got != want {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

// wantFile waits until the only container of a service has a file.
func (w *world) wantFile(svc *v1alpha1.MachineService, path, want string) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("%s is %q in the container", path, want), func() error {
		if got := w.ask(svc, "/file", "path", path); got != want {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

func TestContainersHaveWhatSecretsAndConfigMapsHave(t *testing.T) {
	w := newWorld(t, 1)
	stop := w.start()
	w.keep("tokens", texts(map[string]string{"TOKEN": "s3cr3t-one", "COLOR": "s3cr3t-color"}))
	w.keep("db", texts(map[string]string{"password": "s3cr3t-two"}))
	settings := configMap("settings", map[string]string{"COLOR": "c0nfig-green", "LIMIT": "c0nfig-10"})
	settings.BinaryData = map[string][]byte{"raw": []byte("\xff\x00c0nfig")}
	w.create(settings)
	web := service("web", "app:1", 1)
	web.Spec.EnvFrom = []v1alpha1.EnvFrom{
		{SecretRef: object("tokens")}, {Prefix: "APP_", ConfigMapRef: object("settings")},
		{Name: "PASSWORD", SecretKeyRef: key("db", "password")}, {Name: "COLOR", ConfigMapKeyRef: key("settings", "COLOR")},
	}
	web.Spec.Container.Env = map[string]string{"APP_LIMIT": "20"}
	web.Spec.Configs = []api.ConfigSpec{{Name: "motd", Content: "hello"}}
	web.Spec.ConfigsFrom = []v1alpha1.ConfigFrom{
		{Name: "key", SecretKeyRef: key("db", "password")}, {Name: "raw", ConfigMapKeyRef: key("settings", "raw")},
	}
	for _, config := range []string{"motd", "key", "raw"} {
		web.Spec.Container.ConfigMounts = append(web.Spec.Container.ConfigMounts, api.ConfigMount{Config: config, Path: "/etc/" + config})
	}
	w.create(web)
	for name, want := range map[string]string{
		"TOKEN": "s3cr3t-one", "APP_COLOR": "c0nfig-green", "PASSWORD": "s3cr3t-two",
		// The later one counts, and what is in the spec before all.
		"COLOR": "c0nfig-green", "APP_LIMIT": "20",
	} {
		w.wantEnv(web, name, want)
	}
	w.wantFile(web, "/etc/motd", "hello")
	w.wantFile(web, "/etc/key", "s3cr3t-two")
	w.wantFile(web, "/etc/raw", "\xff\x00c0nfig")

	// Other values make other containers.
	before := web.Status.Machines[0].Containers[0].Name
	w.keep("tokens", texts(map[string]string{"TOKEN": "s3cr3t-three"}))
	w.wantEnv(web, "TOKEN", "s3cr3t-three")
	w.wantEnv(web, "COLOR", "c0nfig-green")
	if now := web.Status.Machines[0].Containers[0].Name; now == before {
		t.Errorf("it is container %s still", now)
	}
	change(w, settings, func(c *corev1.ConfigMap) { c.BinaryData["raw"] = []byte("\xfec0nfig") })
	w.wantFile(web, "/etc/raw", "\xfec0nfig")
	w.wantContainers("web", "app:1 running")
	stop()
	w.wantSilence("s3cr3t", "c0nfig")
}

func TestServicesWaitForTheSecretsAndConfigMapsThatTheyName(t *testing.T) {
	w := newWorld(t, 1)
	stop := w.start()
	web := service("web", "app:1", 1)
	web.Spec.EnvFrom = []v1alpha1.EnvFrom{{SecretRef: object("tokens")}, {Name: "COLOR", ConfigMapKeyRef: key("settings", "color")}}
	web.Spec.ConfigsFrom = []v1alpha1.ConfigFrom{{Name: "key", SecretKeyRef: key("db", "password")}}
	web.Spec.Container.ConfigMounts = []api.ConfigMount{{Config: "key", Path: "/etc/key"}}
	w.create(web)
	unresolved := func(faults ...string) {
		t.Helper()
		w.want(web, "Blocked=True ReferencesUnresolved: "+strings.Join(faults, "; "))
	}
	in := " in namespace " + w.namespace
	unresolved("envFrom[0]: there is no Secret tokens"+in, "envFrom[1]: there is no ConfigMap settings"+in,
		"configsFrom[0]: there is no Secret db"+in)
	w.keep("tokens", texts(map[string]string{"TOKEN": "s3cr3t"}))
	settings := configMap("settings", map[string]string{"size": "9"})
	w.create(settings)
	unresolved("envFrom[1]: ConfigMap settings has no key color", "configsFrom[0]: there is no Secret db"+in)
	change(w, settings, func(c *corev1.ConfigMap) { c.Data["color"] = "green" })
	w.keep("db", texts(map[string]string{"user": "ann"}))
	unresolved("configsFrom[0]: Secret db has no key password")
	w.keep("tokens", map[string][]byte{"1st": []byte("s3cr3t"), "TOKEN": []byte("s3cr3t\x00"), "WORD": []byte("s3cr3t\xff")})
	text := " of Secret tokens is no text, which environment variables are; use configsFrom"
	unresolved("envFrom[0]: key 1st of Secret tokens makes 1st, which is not a name of an environment variable; add a prefix, or name keys "+
		"one by one", "envFrom[0]: key TOKEN"+text, "envFrom[0]: key WORD"+text)
	w.wantContainers("web", "")
	w.keep("tokens", texts(map[string]string{"TOKEN": "s3cr3t"}))
	w.keep("db", texts(map[string]string{"password": "s3cr3t"}))
	w.wantEnv(web, "TOKEN", "s3cr3t")

	// What runs stays when they go.
	if err := w.user.Delete(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	unresolved("envFrom[1]: there is no ConfigMap settings" + in)
	w.wantContainers("web", "app:1 running")
	w.create(configMap("settings", map[string]string{"color": "blue"}))
	w.wantEnv(web, "COLOR", "blue")
	stop()
	w.wantSilence("s3cr3t")
}

// modal is a service whose mode is in a ConfigMap.
func modal(name string) *v1alpha1.MachineService {
	svc := service(name, "app:1", 1)
	svc.Spec.EnvFrom = []v1alpha1.EnvFrom{{ConfigMapRef: object("mode")}}
	svc.Spec.Update.FailureAction = api.FailureRollback
	return svc
}

// become changes the mode.
func (w *world) become(mode string) {
	w.t.Helper()
	o := configMap("mode", nil)
	o.Namespace = w.namespace
	change(w, o, func(c *corev1.ConfigMap) { c.Data["MODE"] = mode })
}

func TestAnotherValueEndsThePlanOfTheOneBefore(t *testing.T) {
	w := newWorld(t, 1)
	w.start()
	w.create(configMap("mode", map[string]string{"MODE": "slow"}))
	web := modal("web")
	// It does not become healthy, and not unhealthy either, for five minutes.
	web.Spec.Container.HealthCheck = &api.HealthCheck{StartPeriod: metav1.Duration{Duration: 5 * time.Minute}}
	w.create(web)
	operatortest.Eventually(t, "the container is waited for", func() bool {
		return strings.Join(w.containers(w.engines[0], "web"), "") == "app:1 running"
	})
	w.become("")
	w.wantEnv(web, "MODE", "")
	w.wantContainers("web", "app:1 running")
}

func TestAnotherValueIsAnotherVersion(t *testing.T) {
	w := newWorld(t, 1)
	stop := w.start()
	w.create(configMap("mode", map[string]string{"MODE": ""}))
	web := modal("web")
	w.create(web)
	w.want(web, "Ready=True")

	w.become("unhealthy")
	w.want(web, "Blocked=True RolledBack: ")
	if web.Status.GivenUp.References == "" {
		t.Error("the status does not say of which references the version is")
	}
	stop()
	w.start()
	other := service("other", "app:1", 1)
	w.create(other)
	w.want(other, "Ready=True")
	w.want(web, "Blocked=True RolledBack: ")
	w.wantContainers("web", "app:1 running")

	w.become("")
	w.want(web, "Ready=True")
	if web.Status.GivenUp != nil {
		t.Errorf("it is given up still: %v", web.Status.GivenUp)
	}
}

func TestPlansHideWhatSecretsAndConfigMapsHave(t *testing.T) {
	w := newWorld(t, 1)
	w.plan = true
	stop := w.start()
	w.keep("tokens", texts(map[string]string{"TOKEN": "s3cr3t"}))
	w.create(configMap("settings", map[string]string{"COLOR": "c0nfig"}))
	web := service("web", "app:1", 1)
	web.Spec.EnvFrom = []v1alpha1.EnvFrom{{SecretRef: object("tokens")}, {ConfigMapRef: object("settings")}}
	w.create(web)
	w.want(web, "Planned=True ChangesPlanned: 1 to create, 0 to update, 0 to delete")
	text := strings.Join(web.Status.Plan, "\n")
	for _, want := range []string{"+ container.env.TOKEN: (sensitive)", "+ container.env.COLOR: (sensitive)"} {
		if !strings.Contains(text, want) {
			t.Errorf("the plan lacks %q:\n%s", want, text)
		}
	}
	stop()
	w.wantSilence("s3cr3t", "c0nfig")
}
