package machines_test

import (
	"fmt"
	"net"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/operatorkit/operatorkit/operator/machines/v1alpha1"
	"github.com/operatorkit/operatorkit/operator/operatortest"
	"github.com/operatorkit/operatorkit/resource/deployment/api"
)

// freePort returns a port that is free where all engines publish.
func (w *world) freePort() int {
	w.t.Helper()
	var port int
	err := retry.OnError(retry.DefaultRetry, func(error) bool { return true }, func() error {
		port = 0
		for _, e := range w.engines {
			listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", e.Address(), port))
			if err != nil {
				return err
			}
			defer func() { _ = listener.Close() }()
			port = listener.Addr().(*net.TCPAddr).Port
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return port
}

func TestServicesThatComeAtOnceDoNotTakeOneThing(t *testing.T) {
	w := newWorld(t, 2)
	w.start()
	for i := range w.engines {
		w.want(w.machine(i), "Ready=True")
	}
	ports := []int{w.freePort()}
	for other := w.freePort(); len(ports) < 2; other = w.freePort() {
		if other != ports[0] {
			ports = append(ports, other)
		}
	}
	var services []*v1alpha1.MachineService
	for i := range 4 {
		svc := service(fmt.Sprintf("port-%d", i), "app:1", 1)
		svc.Spec.Ports[0].PublishedPort = uint16(ports[i%2])
		services = append(services, svc)
	}
	for i := range 6 {
		svc := service(fmt.Sprintf("volume-%d", i), "app:1", 1)
		volume := fmt.Sprintf("shared-%d", i%2)
		svc.Spec.Volumes = []api.VolumeSpec{{Name: volume}}
		svc.Spec.Container.VolumeMounts = []api.VolumeMount{{Volume: volume, Path: "/data"}}
		services = append(services, svc)
	}
	for _, svc := range services {
		w.create(svc)
	}
	for _, svc := range services {
		w.want(svc, "Ready=True Deployed")
		if svc.Status.GivenUp != nil {
			t.Errorf("service %s was given up: %v", svc.Name, svc.Status.GivenUp)
		}
	}
	for i := range 2 {
		volume := fmt.Sprintf("shared-%d", i)
		var on []string
		for _, e := range w.engines {
			if slices.ContainsFunc(w.inventory(e).Volumes, func(v api.Volume) bool { return v.Name == volume }) {
				on = append(on, e.Name())
			}
		}
		if len(on) != 1 {
			t.Errorf("volume %s is on %v", volume, on)
		}
	}
}

func TestAPortThatSomebodyTookIsNoFaultOfTheVersion(t *testing.T) {
	w := newWorld(t, 2)
	w.start()
	for i := range w.engines {
		w.want(w.machine(i), "Ready=True")
	}
	port := w.freePort()
	// The first machine would be taken. Who has the port is no container, so that nobody sees it before the engine says so.
	held := listen(t, w.engines[0], port)
	defer func() { _ = held.Close() }()
	web := service("web", "app:1", 1)
	web.Spec.Ports[0].PublishedPort = uint16(port)
	w.create(web)
	w.want(web, "Ready=True Deployed")
	w.wantContainers("web", "", "app:1 running")
	if web.Status.GivenUp != nil {
		t.Errorf("it was given up: %v", web.Status.GivenUp)
	}
}

func TestAMachineThatCantBeSeenHoldsUpOnlyWhatMayBeOnIt(t *testing.T) {
	w := newWorld(t, 2)
	stop := w.start()
	web := service("web", "app:1", 2)
	w.create(web)
	w.want(web, "Ready=True Deployed")
	kept := service("kept", "app:1", 1)
	kept.Spec.Placement.Machines = []string{w.engines[1].Name()}
	kept.Spec.Volumes = []api.VolumeSpec{{Name: "data"}}
	kept.Spec.Container.VolumeMounts = []api.VolumeMount{{Volume: "data", Path: "/data"}}
	w.create(kept)
	w.want(kept, "Ready=True Deployed")
	operatortest.Eventually(t, "the status of the machine says what is on it", func() bool {
		m := w.machine(1)
		return w.user.Get(t.Context(), client.ObjectKeyFromObject(m), m) == nil && m.Status.LastSeen != nil && len(m.Status.LastSeen.Containers) == 2 &&
			slices.ContainsFunc(m.Status.LastSeen.Volumes, func(v v1alpha1.SeenVolume) bool { return v.Name == "data" })
	})
	stop()
	if err := w.engines[1].Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	// An operator that has just started has never seen the machine. Another one was never seen by anybody.
	w.create(&v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "nowhere"}, Spec: v1alpha1.MachineSpec{Address: "unix:///nowhere/docker.sock"}})
	w.start()
	fresh := service("fresh", "app:1", 2)
	w.create(fresh)
	w.want(fresh, "Ready=True Deployed")
	w.want(web, "Ready=False MachineUnknown: left alone: 1 container last seen on engine-2, which can't be seen now")

	// What is missing where it can be seen is made anew.
	cli := w.client(w.engines[0])
	defer func() { _ = cli.Close() }()
	victim := w.inventory(w.engines[0]).Containers
	i := slices.IndexFunc(victim, func(c api.Container) bool { return c.ServiceName == "web" })
	if err := cli.RemoveContainer(ofServices(t.Context()), w.engines[0].Name(), victim[i].ID); err != nil {
		t.Fatal(err)
	}
	operatortest.Eventually(t, "the missing container is made anew", func() error {
		if got := w.containers(w.engines[0], "web"); len(got) != 1 || got[0] != "app:1 running" {
			return fmt.Errorf("there is %q", got)
		}
		return nil
	})

	// A volume that is on the machine is not made anew elsewhere.
	other := service("other", "app:1", 1)
	other.Spec.Volumes, other.Spec.Container.VolumeMounts = kept.Spec.Volumes, kept.Spec.Container.VolumeMounts
	w.create(other)
	w.want(other, "Blocked=True Unschedulable")
	if err := w.engines[1].Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.want(other, "Ready=True Deployed")
	w.wantContainers("other", "", "app:1 running")
	w.want(web, "Ready=True Deployed")
}
