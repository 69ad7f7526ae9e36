package machines_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	moby "github.com/moby/moby/client"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/machines"
	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/operator/operatortest/frameworktest"
	"github.com/operatorkit/operatorkit/resource/deployment/docker"
	"github.com/operatorkit/operatorkit/resource/deployment/docker/dockertest"
)

// of returns the containers of an operator on all engines: "ID image state".
func (w *world) of(operator string) []string {
	w.t.Helper()
	var all []string
	for _, e := range w.engines {
		for _, c := range w.inventory(e).Containers {
			if c.Owner.Operator == operator {
				all = append(all, fmt.Sprintf("%s %s %s", c.ID, c.Spec.Container.Image, c.State))
			}
		}
	}
	slices.Sort(all)
	return all
}

// wantRefusal waits until an event on a service says that an operator does nothing for it, because another one has it.
func (w *world) wantRefusal(svc *v1alpha1.MachineService, operator, holder string) {
	w.t.Helper()
	want := fmt.Sprintf(`MachineService %s is claimed by framework "machineservices" of operator %q, and framework "machineservices" of operator %q does nothing for it`,
		client.ObjectKeyFromObject(svc), holder, operator)
	operatortest.Eventually(w.t, operator+" says that the service is the one of "+holder, func() error {
		events := &corev1.EventList{}
		if err := w.user.List(w.t.Context(), events, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		var all []string
		for i := range events.Items {
			all = append(all, events.Items[i].Message)
			if events.Items[i].InvolvedObject.UID == svc.UID && strings.Contains(events.Items[i].Message, want) {
				return nil
			}
		}
		return fmt.Errorf("the events are %q", all)
	})
}

// claimAnnotation is a public name: people take it off.
const claimAnnotation = "operatorkit.io/claimed-by"

func TestR16OneOfTwoOperatorsHasAServiceAndTheOtherSaysWhose(t *testing.T) {
	w := newWorld(t, 1)
	second := *w
	second.operator = "second"
	stop := w.start()
	web := service("web", "app:1", 1)
	w.create(web)
	w.want(web, "Ready=True Deployed")
	second.start()
	w.wantRefusal(web, "second", "machines")
	change(w, web, func(s *v1alpha1.MachineService) { s.Spec.Container.Image = "app:2" })
	w.want(web, "Ready=True Deployed: all 1 containers work")
	for _, w := range []*world{w, &second} {
		frameworktest.Look(t, w.frameworks["machineservices"], web)
	}
	if first, other := w.of("machines"), w.of("second"); len(first) != 1 || len(other) != 0 {
		t.Errorf("the first one has %q, and the second one %q", first, other)
	}
	if want := []string{machines.ServicesOf("machines").Finalizer()}; !slices.Equal(web.Finalizers, want) {
		t.Errorf("the finalizers are %q, want %q", web.Finalizers, want)
	}

	// One that is not there any more is missed by nobody, and what it has is left alone.
	stop()
	before := w.of("machines")
	change(w, web, func(s *v1alpha1.MachineService) {
		delete(s.Annotations, claimAnnotation)
		s.Spec.Container.Image = "app:1"
	})
	operatortest.Eventually(t, "the second one goes on", func() error {
		if has := w.of("second"); len(has) != 1 || has[0][65:] != "app:1 running" {
			return fmt.Errorf("it has %q", has)
		}
		return nil
	})
	if diff := cmp.Diff(before, w.of("machines")); diff != "" {
		t.Errorf("the second one has touched what is the first one's:\n%s", diff)
	}

	// What comes back takes away what it has when the service goes, and does nothing before.
	w.start()
	w.wantRefusal(web, "machines", "second")
	w.want(web, "Ready=True Deployed: all 1 containers work")
	if diff := cmp.Diff(before, w.of("machines")); diff != "" {
		t.Errorf("what came back has gone on:\n%s", diff)
	}
	if err := w.user.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	w.wantGone(web)
	if left := append(w.of("machines"), w.of("second")...); len(left) > 0 {
		t.Errorf("there is %q still", left)
	}
}

func TestR16ContainersOfARenamedOperatorGoOn(t *testing.T) {
	w := newWorld(t, 2)
	stop := w.start()
	web := service("web", "app:1", 2)
	w.create(web)
	w.want(web, "Ready=True")
	before := w.of("machines")
	stop()

	w.operator, w.former = "fleet", []string{"machines"}
	w.start()
	operatortest.Eventually(t, "the service has the finalizer of the present name", func() bool {
		return w.user.Get(t.Context(), client.ObjectKeyFromObject(web), web) == nil &&
			slices.Equal(web.Finalizers, []string{machines.ServicesOf("fleet").Finalizer()})
	})
	frameworktest.Look(t, w.frameworks["machineservices"], web)
	w.want(web, "Ready=True Deployed: all 2 containers work")
	if by := web.Annotations[claimAnnotation]; by != `v1 framework "machineservices" of operator "fleet"` {
		t.Errorf("the service is claimed by %q", by)
	}
	if diff := cmp.Diff(before, w.of("machines")); diff != "" {
		t.Errorf("containers were touched:\n%s", diff)
	}
	change(w, web, func(s *v1alpha1.MachineService) { s.Spec.Container.Image = "app:2" })
	w.want(web, "Ready=True Deployed")
	if former, present := w.of("machines"), w.of("fleet"); len(former) != 0 || len(present) != 2 {
		t.Errorf("under the former name there is %q, under the present one %q", former, present)
	}
	if err := w.user.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	w.wantGone(web)
	w.wantContainers("web", "", "")
}

func TestR16NamesAndProxiesOfARenamedOperatorGoOn(t *testing.T) {
	dockertest.RequireCaddy(t)
	w := newWorld(t, 1)
	if err := w.engines[0].Load(t.Context(), dockertest.Caddy("caddy:1")); err != nil {
		t.Fatal(err)
	}
	w.names, w.ingress = &docker.Names{Image: "names:1"}, &docker.Ingress{Image: "caddy:1", Internal: true}
	change(w, w.machine(0), func(m *v1alpha1.Machine) { m.Spec.Ingress = &v1alpha1.MachineIngress{} })
	stop := w.start()
	web, backend := servedAt("web", "app:1", ""), service("backend", "app:1", 1)
	backend.Spec.Ports = nil
	w.create(web, backend)
	w.want(web, "Ready=True Deployed")
	w.want(backend, "Ready=True Deployed")
	w.wantServed(w.engines[0], "http://web.example.test/", "version 1 ")
	former := w.shared()
	stop()

	// What is made anew is on the network that is there, beside what is not, and served by the same proxy.
	w.operator, w.former = "fleet", []string{"machines"}
	w.start()
	change(w, web, func(s *v1alpha1.MachineService) { s.Spec.Container.Image = "app:2" })
	w.want(web, "Ready=True Deployed")
	w.wantServed(w.engines[0], "http://web.example.test/", "version 2 ")
	w.wantServed(w.engines[0], "http://web.example.test/fetch?url="+url.QueryEscape("http://backend:8080/"), "version 1 ")
	if diff := cmp.Diff(former, w.shared()); diff != "" || len(former) != 4 {
		t.Errorf("what containers share is not what it was, of %q:\n%s", former, diff)
	}

	// It goes with the last container, and the next one has the present name.
	for _, s := range []*v1alpha1.MachineService{web, backend} {
		if err := w.user.Delete(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		w.wantGone(s)
	}
	operatortest.Eventually(t, "nothing is left that containers share", func() error {
		if left := w.shared(); len(left) > 0 {
			return fmt.Errorf("there is %q", left)
		}
		return nil
	})
	web = servedAt("web", "app:1", "")
	w.create(web)
	w.want(web, "Ready=True Deployed")
	w.wantServed(w.engines[0], "http://web.example.test/", "version 1 ")
	for _, name := range w.shared() {
		if slices.Contains(former, name) {
			t.Errorf("there is %s again, of a former name", name)
		}
	}
}

// shared returns what the containers on the first engine share: networks, servers of names, proxies and their volumes, each with its ID.
func (w *world) shared() []string {
	w.t.Helper()
	engine, err := w.engines[0].Client()
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = engine.Close() }()
	var all []string
	networks, err := engine.NetworkList(w.t.Context(), moby.NetworkListOptions{Filters: moby.Filters{}.Add("label", docker.LabelNames)})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, n := range networks.Items {
		all = append(all, n.Name+" "+n.ID)
	}
	for _, label := range []string{docker.LabelNames, docker.LabelIngress} {
		containers, err := engine.ContainerList(w.t.Context(), moby.ContainerListOptions{All: true, Filters: moby.Filters{}.Add("label", label)})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, c := range containers.Items {
			all = append(all, c.Names[0]+" "+c.ID)
		}
	}
	volumes, err := engine.VolumeList(w.t.Context(), moby.VolumeListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, v := range volumes.Items {
		all = append(all, v.Name)
	}
	return all
}

func TestR16OneOfTwoOperatorsWritesTheStatusOfAMachineAndBothUseIt(t *testing.T) {
	w := newWorld(t, 1)
	second := *w
	second.operator = "second"
	stop := w.start()
	m := w.machine(0)
	w.want(m, "Ready=True Connected")
	first := `v1 framework "machines" of operator "machines"`
	if by := m.Annotations[claimAnnotation]; by != first {
		t.Errorf("the status is told by %q", by)
	}

	second.start()
	web := service("web", "app:1", 1)
	web.Annotations = map[string]string{claimAnnotation: `v1 framework "machineservices" of operator "second"`}
	w.create(web)
	w.want(web, "Ready=True Deployed")

	// While the first one is away nobody else tells how the machine is.
	stop()
	if err := w.engines[0].Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.want(web, "Ready=False MachineUnknown")
	frameworktest.Look(t, second.frameworks["machines"], m)
	w.want(m, "Ready=True Connected")
	if err := w.engines[0].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.want(web, "Ready=True Deployed")
	stop = w.start()
	w.want(m, "Ready=True Connected")
	if by := m.Annotations[claimAnnotation]; by != first {
		t.Errorf("the status is told by %q now", by)
	}

	// It goes only when the containers of both have gone.
	if err := w.user.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the first one lets it go", func() error {
		if err := w.user.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil {
			return err
		}
		if len(m.Finalizers) != 1 || m.DeletionTimestamp == nil {
			return fmt.Errorf("the finalizers are %q", m.Finalizers)
		}
		return nil
	})
	stop()
	if err := w.user.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	w.wantGone(web)
	w.wantGone(m)

	// A Machine that nobody has is the one's who is there.
	later := w.machine(0)
	w.create(later)
	w.want(later, "Ready=True Connected")
	if by := later.Annotations[claimAnnotation]; by != `v1 framework "machines" of operator "second"` {
		t.Errorf("the status is told by %q", by)
	}
}
