package machines_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/operator/machines"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

// reconciliations returns how many a framework has ended.
func (w *world) reconciliations(framework string) (count uint64) {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "operatorkit_framework_reconciliation_duration_seconds" {
			continue
		}
		for _, m := range family.GetMetric() {
			if slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetValue() == framework }) {
				count += m.GetHistogram().GetSampleCount()
			}
		}
	}
	return count
}

func TestImagesArePulledWithTheCredentialsOfTheNamespace(t *testing.T) {
	w := newWorld(t, 1)
	registry := dockertest.StartRegistry(t, "puller", "pass-word")
	image := registry.Host() + "/team/app:3"
	if err := registry.Push(t.Context(), w.engines[0], dockertest.App(image, map[string]string{"VERSION": "3"})); err != nil {
		t.Fatal(err)
	}
	stop := w.start()
	web := service("web", image, 1)
	web.Spec.Container.PullPolicy = api.PullMissing
	w.create(web)
	name := fmt.Sprintf("Secret %s in namespace %s", machines.DefaultRegistrySecret, w.namespace)
	config := func(host, password string) map[string][]byte {
		auth := base64.StdEncoding.EncodeToString([]byte("puller:" + password))
		return map[string][]byte{corev1.DockerConfigJsonKey: fmt.Appendf(nil, `{"auths": {%q: {"auth": %q}}}`, host, auth)}
	}
	w.wantHolding(web, "Ready=False Retrying: ", "registry "+registry.Host()+
		" wants a login; make "+name+", of type kubernetes.io/dockerconfigjson, with an entry for it: ")
	w.keep(machines.DefaultRegistrySecret, map[string][]byte{"config": []byte("{}")})
	w.wantHolding(web, "Ready=False Retrying: ", name+" has no .dockerconfigjson that can be read; kubectl create secret docker-registry")
	w.keep(machines.DefaultRegistrySecret, config("example.com", "pass-word"))
	w.wantHolding(web, "Ready=False Retrying: ", "registry "+registry.Host()+" wants a login; "+name+" has no entry for it: ")
	w.keep(machines.DefaultRegistrySecret, config(registry.Host(), "pass-words"))
	w.wantHolding(web, "Ready=False Retrying: ", "registry "+registry.Host()+" refuses the login; it is that of "+name+": ")
	w.keep(machines.DefaultRegistrySecret, config(registry.Host(), "pass-word"))
	w.want(web, "Ready=True")
	// Whatever the pause after failures is, a change is looked at.
	for i := range 3 {
		before := w.reconciliations("machineservices")
		w.keep(machines.DefaultRegistrySecret, with(config(registry.Host(), "pass-word"), "count", fmt.Append(nil, i)))
		operatortest.Eventually(t, "the service is reconciled", func() bool { return w.reconciliations("machineservices") > before })
	}
	stop()
	w.wantSilence("pass-word", base64.StdEncoding.EncodeToString([]byte("puller:pass-word")))
	w.wantContainers("web", image+" running")
}

func TestAServiceFollowsATagThatMovesIfItAlwaysPulls(t *testing.T) {
	w := newWorld(t, 1)
	registry := dockertest.StartRegistry(t, "puller", "pass-word")
	image := registry.Host() + "/team/app:latest"
	// What happens on the machine itself would have the service looked at.
	elsewhere := pool.Take(t, 1)[0]
	push := func(version string) {
		t.Helper()
		if err := registry.Push(t.Context(), elsewhere, dockertest.App(image, map[string]string{"VERSION": version})); err != nil {
			t.Fatal(err)
		}
	}
	login := func(password string) {
		auth := base64.StdEncoding.EncodeToString([]byte("puller:" + password))
		w.keep(machines.DefaultRegistrySecret, map[string][]byte{
			corev1.DockerConfigJsonKey: fmt.Appendf(nil, `{"auths": {%q: {"auth": %q}}}`, registry.Host(), auth),
		})
	}
	login("pass-word")
	push("1")
	w.start()
	web := service("web", image, 1)
	web.Spec.Container.PullPolicy = api.PullAlways
	w.create(web)
	w.want(web, "Ready=True Deployed: all 1 containers work")
	first := web.Status.Machines[0].Containers[0].Image
	if !strings.HasPrefix(first, image+"@sha256:") || web.Status.Deployed.Image != first {
		t.Errorf("the container is of image %s, and %s is deployed", first, web.Status.Deployed.Image)
	}

	push("2")
	operatortest.Eventually(t, "the service has what the tag stands for", func() error {
		w.want(web, "Ready=True Deployed: ")
		if now := web.Status.Machines[0].Containers[0].Image; now == first {
			return fmt.Errorf("it has %s", now)
		}
		return nil
	})
	login("another")
	w.wantHolding(web, "Ready=True Deployed: all 1 containers work; whether image "+image+" has moved is not known: ", "refuses the login")
}
