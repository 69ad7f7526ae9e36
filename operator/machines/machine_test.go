package machines_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
)

// machine is the Machine of an engine, by its number.
func (w *world) machine(i int) *v1alpha1.Machine {
	m := machineOf(w.engines[i])
	m.Namespace = w.namespace
	return m
}

func TestMachinesThatAreLostComeBackByThemselves(t *testing.T) {
	w := newWorld(t, 2)
	w.start()
	web := service("web", "app:1", 2)
	w.create(web)
	w.want(web, "Ready=True")

	if err := w.engines[1].Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.want(w.machine(1), "Ready=Unknown Unreachable: ")
	w.want(web, "Ready=False MachineUnknown: left alone: 1 container last seen on engine-2")
	if got := strings.Join(w.containers(w.engines[0], "web"), ", "); got != "app:1 running" {
		t.Errorf("the other machine has %s", got)
	}

	if err := w.engines[1].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.want(w.machine(1), "Ready=True")
	w.want(web, "Ready=True")
	w.wantContainers("web", "app:1 running", "app:1 running")
}

func TestContainersOfMachinesThatAreGoneAreMadeElsewhere(t *testing.T) {
	w := newWorld(t, 2)
	stop := w.start()
	web := service("web", "app:1", 2)
	w.create(web)
	w.want(web, "Ready=True")
	stop()
	if err := w.engines[1].Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Another operator has never seen what was there, nor does it read of it.
	forget := client.RawPatch(types.MergePatchType, []byte(`{"status": {"lastSeen": null}}`))
	if err := w.user.Status().Patch(t.Context(), w.machine(1), forget); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.want(web, "Ready=False MachineUnknown: not made: 1 container that may be on engine-2")
	lost := w.machine(1)
	if err := w.user.Delete(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	w.want(lost, "Ready=Unknown InUse: ")
	change(w, lost, func(m *v1alpha1.Machine) { m.Spec.Gone = true })
	w.wantGone(lost)
	w.want(web, "Ready=True")
	if got := strings.Join(w.containers(w.engines[0], "web"), ", "); got != "app:1 running, app:1 running" {
		t.Errorf("the machine that is left has %s", got)
	}
}

func TestMachinesAreKeptWhileServicesUseThem(t *testing.T) {
	w := newWorld(t, 1)
	w.start()
	web := service("web", "app:1", 1)
	w.create(web)
	w.want(web, "Ready=True")
	m := w.machine(0)
	if err := w.user.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.want(m, "Ready=True InUse: it is deleted once no containers of services are on it: web")
	w.want(web, "Blocked=True Unschedulable: left on engine-1, although it is drained: 1 container, because there is no other machine: "+
		"engine-1: it is being deleted")
	w.want(web, "Ready=True Deployed: all 1 containers work")
	w.want(m, "Ready=True InUse: ")
	if err := w.user.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	w.wantGone(web)
	w.wantGone(m)
	w.wantContainers("web", "")
}

func TestMachinesThatCanNotBeTriedAreUnknownAndSayWhy(t *testing.T) {
	w := newWorld(t, 1)
	w.start()
	far := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "far"}, Spec: v1alpha1.MachineSpec{
		Address: "tcp://127.0.0.1:1", TLS: &v1alpha1.MachineTLS{SecretName: "far-tls"},
	}}
	w.create(far)
	w.want(far, "Ready=Unknown Unreachable: there is no Secret far-tls")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "far-tls"}, Data: map[string][]byte{v1alpha1.CAKey: []byte("x")}}
	w.create(secret)
	w.want(far, "Ready=Unknown Unreachable: the Secret far-tls has no tls.crt, tls.key")
	secret.Data[v1alpha1.CertificateKey], secret.Data[v1alpha1.PrivateKeyKey] = []byte("not a certificate"), []byte("not a key")
	if err := w.user.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	w.want(far, "Ready=Unknown Unreachable: the Secret far-tls is of no use: host tcp://127.0.0.1:1: ")

	// It does not hold up the others.
	w.want(w.machine(0), "Ready=True")
	global := service("global", "app:1", 1)
	global.Spec.Replicas = nil
	global.Spec.Mode = "global"
	w.create(global)
	w.want(global, "Ready=False MachineUnknown: left alone: what is on far")
	w.wantContainers("global", "app:1 running")

	// Nobody has ever been there.
	if err := w.user.Delete(t.Context(), far); err != nil {
		t.Fatal(err)
	}
	w.wantGone(far)
	w.want(global, "Ready=True")
}

// TestAStatusThatSomebodyElseHasWrittenIsPutRight is also about who starts at a server that shows the past: what it says then is written again when
// that server has caught up with what a former process has said.
func TestAStatusThatSomebodyElseHasWrittenIsPutRight(t *testing.T) {
	w := newWorld(t, 1)
	w.start()
	web, m := service("web", "app:1", 1), w.machine(0)
	w.create(web)
	w.want(web, "Ready=True")
	wantOneContainer := func() {
		t.Helper()
		operatortest.Eventually(t, "the statuses say what there is", func() error {
			if err := errors.Join(w.user.Get(t.Context(), client.ObjectKeyFromObject(web), web), w.user.Get(t.Context(), client.ObjectKeyFromObject(m), m)); err != nil {
				return err
			}
			if m.Status.LastSeen == nil || len(m.Status.LastSeen.Containers) != 1 || web.Status.Containers != 1 {
				return fmt.Errorf("the machine has the status %+v, the service %+v", m.Status, web.Status)
			}
			return nil
		})
	}
	wantOneContainer()
	patch := func(o client.Object, status string) {
		t.Helper()
		if err := w.user.Status().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"status": `+status+`}`))); err != nil {
			t.Fatal(err)
		}
	}
	patch(m, `{"lastSeen": null}`)
	patch(web, `{"containers": 7}`)
	wantOneContainer()
}
