package machines_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

// newFarWorld has an engine with the image app:1, and no Machine for it.
func newFarWorld(t *testing.T) (*world, *dockertest.Engine) {
	t.Helper()
	w := newWorld(t, 0)
	w.engines = dockertest.Start(t, 1)
	if err := w.engines[0].Load(t.Context(), dockertest.App("app:1", map[string]string{"VERSION": "1"})); err != nil {
		t.Fatal(err)
	}
	return w, w.engines[0]
}

// keep makes what is in a Secret what it should be.
func (w *world) keep(name string, data map[string][]byte) {
	w.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		secret.Data = data
		w.create(secret)
		return
	}
	secret.Data = data
	if err := w.user.Update(w.t.Context(), secret); err != nil {
		w.t.Fatal(err)
	}
}

// attempt is what is in a Secret, and how the message of the Machine that names it begins, and what else is in it.
type attempt struct {
	data          map[string][]byte
	begins, holds string
}

// attempts tries what may be in the Secret of a Machine one after the other. Nothing of it is in the messages.
func (w *world) attempts(m *v1alpha1.Machine, secret string, attempts []attempt) {
	w.t.Helper()
	for _, a := range attempts {
		w.keep(secret, a.data)
		message := w.wantHolding(m, "Ready=Unknown Unreachable: "+a.begins, a.holds)
		for key, value := range a.data {
			for line := range strings.Lines(string(value)) {
				if line = strings.TrimSpace(line); line != "" && strings.Contains(message, line) {
					w.t.Errorf("the message shows what is in %s: %s", key, message)
				}
			}
		}
	}
}

// wantHolding is want, with more of the message of the condition, which it returns.
func (w *world) wantHolding(o client.Object, want, part string) (message string) {
	w.t.Helper()
	operatortest.Eventually(w.t, fmt.Sprintf("the message holds %q", part), func() error {
		w.want(o, want)
		kind, _, _ := strings.Cut(want, "=")
		switch o := o.(type) {
		case *v1alpha1.Machine:
			message = meta.FindStatusCondition(o.Status.Conditions, kind).Message
		case *v1alpha1.MachineService:
			message = meta.FindStatusCondition(o.Status.Conditions, kind).Message
		}
		if !strings.Contains(message, part) {
			return fmt.Errorf("it is %q", message)
		}
		return nil
	})
	return message
}

// without returns all keys but one.
func without(data map[string][]byte, key string) map[string][]byte {
	return with(data, key, nil)
}

// with returns all keys, one of them with another value.
func with(data map[string][]byte, key string, value []byte) map[string][]byte {
	data = maps.Clone(data)
	data[key] = value
	return data
}

func TestMachinesAreReachedByTLSWithWhatTheirSecretHas(t *testing.T) {
	w, engine := newFarWorld(t)
	ours, others := dockertest.NewAuthority(t), dockertest.NewAuthority(t)
	address, err := engine.ListenTLS(t.Context(), ours, engine.Address())
	if err != nil {
		t.Fatal(err)
	}
	dataOf := func(tls *docker.TLS) map[string][]byte {
		return map[string][]byte{v1alpha1.CAKey: tls.CA, v1alpha1.CertificateKey: tls.Cert, v1alpha1.PrivateKeyKey: []byte(tls.Key)}
	}
	right, another, foreign := dataOf(ours.Client(t)), dataOf(ours.Client(t)), dataOf(others.Client(t))
	w.start()
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: engine.Name()}, Spec: v1alpha1.MachineSpec{
		Address: "tcp://" + address, TLS: &v1alpha1.MachineTLS{SecretName: "engine-tls"},
	}}
	w.create(m)
	w.want(m, "Ready=Unknown Unreachable: there is no Secret engine-tls; make it in namespace "+w.namespace+", with ca.crt, tls.crt, tls.key")
	w.attempts(m, "engine-tls", []attempt{
		{without(right, v1alpha1.PrivateKeyKey), "the Secret engine-tls has no tls.key", ""},
		{without(right, v1alpha1.CAKey), "the Secret engine-tls has no ca.crt", ""},
		{with(right, v1alpha1.CAKey, []byte("no-authority")), "the Secret engine-tls is of no use: ", "no certificate in ca.crt"},
		{with(right, v1alpha1.PrivateKeyKey, another[v1alpha1.PrivateKeyKey]), "the Secret engine-tls is of no use: ",
			"read tls.crt and tls.key: tls: private key does not match public key"},
		{with(right, v1alpha1.CAKey, foreign[v1alpha1.CAKey]), "", "certificate signed by unknown authority"},
		{with(foreign, v1alpha1.CAKey, right[v1alpha1.CAKey]), "", "remote error: tls: "},
	})
	w.wantRotated(m, "engine-tls", with(foreign, v1alpha1.CAKey, right[v1alpha1.CAKey]), right, another)
}

func TestMachinesAreReachedBySSHWithWhatTheirSecretHas(t *testing.T) {
	w, engine := newFarWorld(t)
	server, other := dockertest.StartSSH(t), dockertest.StartSSH(t)
	known := server.KnownHosts(server.Address())
	right := map[string][]byte{v1alpha1.SSHPrivateKeyKey: []byte(server.UserKey()), v1alpha1.SSHKnownHostsKey: known}
	foreign := with(right, v1alpha1.SSHPrivateKeyKey, []byte(other.UserKey()))
	w.start()
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: engine.Name()}, Spec: v1alpha1.MachineSpec{
		Address: server.Host(dockertest.SSHUser, engine), SSH: &v1alpha1.MachineSSH{SecretName: "engine-ssh"},
	}}
	w.create(m)
	w.want(m, "Ready=Unknown Unreachable: there is no Secret engine-ssh; make it in namespace "+w.namespace+
		", with ssh-privatekey, known_hosts")
	logIn := "log in to " + server.Address() + " as deploy: "
	w.attempts(m, "engine-ssh", []attempt{
		{without(right, v1alpha1.SSHPrivateKeyKey), "the Secret engine-ssh has no ssh-privatekey", ""},
		{without(right, v1alpha1.SSHKnownHostsKey), "the Secret engine-ssh has no known_hosts", ""},
		{with(right, v1alpha1.SSHPrivateKeyKey, []byte("no-private-key")), "the Secret engine-ssh is of no use: ", "read ssh-privatekey: "},
		{with(right, v1alpha1.SSHKnownHostsKey, []byte("no-line-of-known-hosts")), "the Secret engine-ssh is of no use: ", "read known_hosts: "},
		{with(right, v1alpha1.SSHKnownHostsKey, other.KnownHosts(other.Address())), "the Secret engine-ssh is of no use: ",
			"no key of it is in known_hosts"},
		{with(right, v1alpha1.SSHKnownHostsKey, other.KnownHosts(server.Address())), logIn, "key mismatch"},
		{foreign, logIn, "unable to authenticate"},
	})
	more := append(other.KnownHosts(other.Address()), known...)
	w.wantRotated(m, "engine-ssh", foreign, right, with(right, v1alpha1.SSHKnownHostsKey, more))
}

func TestAMachineWhoseSecretCouldNotBeReadOnceIsTriedAgain(t *testing.T) {
	w := newWorld(t, 0)
	w.engines = pool.Take(t, 2)
	server := dockertest.StartSSH(t)
	byName := strings.Replace(server.Address(), "127.0.0.1", "localhost", 1)
	data := map[string][]byte{
		v1alpha1.SSHPrivateKeyKey: []byte(server.UserKey()),
		v1alpha1.SSHKnownHostsKey: append(server.KnownHosts(server.Address()), server.KnownHosts(byName)...),
	}
	far := func(e *dockertest.Engine) *v1alpha1.Machine {
		w.keep(e.Name()+"-ssh", data)
		m := machineOf(e)
		m.Spec.Address, m.Spec.SSH = server.Host(dockertest.SSHUser, e), &v1alpha1.MachineSSH{SecretName: e.Name() + "-ssh"}
		return m
	}
	first, second := far(w.engines[0]), far(w.engines[1])
	w.faults = operatortest.NewFaults()
	unread := func(m *v1alpha1.Machine) *operatortest.Rule {
		secret := m.Spec.SSH.SecretName
		return w.faults.On(func(r operatortest.Request) bool {
			return r.Verb == "get" && r.Resource == "secrets" && r.Name == secret
		}, operatortest.InternalError())
	}
	w.start()
	w.create(first)
	w.want(first, "Ready=True Connected: engine ")
	history, err := w.user.Watch(t.Context(), &v1alpha1.MachineList{}, client.InNamespace(w.namespace), client.MatchingFields{"metadata.name": first.Name})
	if err != nil {
		t.Fatal(err)
	}
	defer history.Stop()

	// It is read again together with that of a machine that comes.
	again, once := unread(first).Times(1), unread(second).Times(1)
	w.create(second)
	w.want(second, "Ready=True Connected: engine ")
	if again.Hits() != 1 || once.Hits() != 1 {
		t.Errorf("%d and %d times a Secret could not be read, not once each", again.Hits(), once.Hits())
	}
	change(w, first, func(m *v1alpha1.Machine) { metav1.SetMetaDataAnnotation(&m.ObjectMeta, "seen", "all") })
	for e := range history.ResultChan() {
		m, ok := e.Object.(*v1alpha1.Machine)
		if !ok {
			t.Fatalf("the history of %s ends with %v", first.Name, e.Object)
		}
		if c := meta.FindStatusCondition(m.Status.Conditions, "Ready"); c.Status != metav1.ConditionTrue {
			t.Errorf("a machine that is connected to became %s: %s", c.Reason, c.Message)
		}
		if m.Annotations["seen"] != "" {
			break
		}
	}

	// What is known of another address is nothing.
	rule := unread(first)
	change(w, first, func(m *v1alpha1.Machine) {
		m.Spec.Address = strings.Replace(m.Spec.Address, server.Address(), byName, 1)
	})
	w.want(first, "Ready=Unknown Unreachable: read Secret "+first.Spec.SSH.SecretName+": ")
	rule.Remove()
	w.want(first, "Ready=True Connected: engine ")
}

// wantRotated deploys a service by way of the Secret of a Machine once it has what is right, and again after it had not for some time.
func (w *world) wantRotated(m *v1alpha1.Machine, secret string, wrong, right, another map[string][]byte) {
	w.t.Helper()
	w.keep(secret, right)
	w.want(m, "Ready=True Connected: engine ")
	web := service("web", "app:1", 1)
	w.create(web)
	w.want(web, "Ready=True")
	w.keep(secret, wrong)
	w.want(m, "Ready=Unknown Unreachable: ")
	w.want(web, "Ready=False MachineUnknown: left alone: 1 container last seen on engine-1")
	w.keep(secret, another)
	w.want(m, "Ready=True Connected: engine ")
	w.want(web, "Ready=True")
	w.wantContainers("web", "app:1 running")
}

// wantSilence looks for texts in everything that operators, which have stopped, have told: their log, events, and all objects of the
// namespace but Secrets and ConfigMaps.
func (w *world) wantSilence(secrets ...string) {
	w.t.Helper()
	said := w.log.String()
	for _, list := range []client.ObjectList{&corev1.EventList{}, &v1alpha1.MachineServiceList{}, &v1alpha1.MachineList{}} {
		if err := w.user.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			w.t.Fatal(err)
		}
		text, err := json.Marshal(list)
		if err != nil {
			w.t.Fatal(err)
		}
		said += string(text)
	}
	for _, secret := range secrets {
		if i := strings.Index(said, secret); i >= 0 {
			w.t.Errorf("%q was told: …%s…", secret, said[max(0, i-200):min(len(said), i+200)])
		}
	}
}
